/**
 * The command line: which commands there are, and what the end of one means for the exit code (0: done,
 * 1: cannot start, or a check or a call failed, 2: wrong usage or configuration, 130: broken off by Ctrl-C).
 */
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Command, CommanderError } from 'commander';
import { callCommand } from './commands/call.ts';
import { completionCommand } from './commands/completion.ts';
import { configCommand } from './commands/config.ts';
import { deliveriesCommand } from './commands/deliveries.ts';
import { devCommand } from './commands/dev.ts';
import { listenCommand } from './commands/listen.ts';
import { migrateCommand } from './commands/migrate.ts';
import { CheckFailed, Failed, Interrupted, type Io, printError } from './commands/output.ts';
import { runsCommand } from './commands/runs.ts';
import { serveCommand } from './commands/serve.ts';
import { tokenCommand } from './commands/token.ts';
import { verifyCommand } from './commands/verify.ts';
import { StartError, UsageError } from './errors.ts';
import { packageVersion } from './version.ts';

/** In the order of the help. */
const COMMANDS: readonly ((io: Io) => Command)[] = [
  devCommand,
  serveCommand,
  tokenCommand,
  callCommand,
  deliveriesCommand,
  runsCommand,
  listenCommand,
  verifyCommand,
  configCommand,
  migrateCommand,
  completionCommand,
];

const EXAMPLES = `
Examples:
  afterword dev                                 try everything, with no configuration
  afterword serve --config prod.yaml            run the service
  afterword token --project p-demo --ttl 7d     make a token for calls
  afterword call hello/run --data '{}' --async  call a function, in the background
  afterword deliveries list --state failed      see which deliveries have failed
  afterword listen --port 9000 --secret s3cret  receive deliveries and print them
  afterword config check --config prod.yaml     see what a configuration means`;

/** Runs one command; resolves with the exit code. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  try {
    await createProgram(io).parseAsync(argv, { from: 'user' });
    return 0;
  } catch (error) {
    return explain(error, io);
  }
}

/** With all its commands; nothing is run yet. */
export function createProgram(io: Io): Command {
  const program = new Command('afterword')
    .description('A proxy that also sends the answer of any call to a webhook: signed, durable, retried.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .addHelpText('after', EXAMPLES);
  for (const create of COMMANDS) program.addCommand(create(io));
  return settle(program, io);
}

/** Commands made on their own inherit nothing, so each is told how to help, not to exit, and where to write. */
function settle(command: Command, io: Io): Command {
  command
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .exitOverride()
    .showHelpAfterError(`Run 'afterword --help' for how to use it.`)
    .configureOutput({
      writeOut: text => void io.stdout.write(text),
      writeErr: text => void io.stderr.write(text),
      outputError: text => printError(io, text.trimEnd().replace(/^error: /, '')),
    });
  for (const nested of command.commands) settle(nested, io);
  return command;
}

function explain(error: unknown, io: Io): number {
  // Commander has printed its own message already; asking for help or the version ends this way too.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof CheckFailed) return 1;
  if (error instanceof Interrupted) {
    io.stderr.write(`${error.message}\n`);
    return 130;
  }
  if (error instanceof UsageError || error instanceof StartError || error instanceof Failed) {
    printError(io, error.message);
    return error instanceof UsageError ? 2 : 1;
  }
  throw error;
}

/** The real process. */
export function processIo(): Io {
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(0);
  });
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    program: programFrom(process.cwd(), process.argv[1] ?? ''),
    untilStopped,
    onHangUp: listener => void process.on('SIGHUP', listener),
  };
}

/** By its name where it is installed; in a checkout by the launcher's path. */
function programFrom(cwd: string, launcher: string): string {
  const inCheckout = existsSync(join(dirname(launcher), '..', 'src', 'cli.ts'));
  return inCheckout ? `node ${relative(cwd, launcher)}` : 'afterword';
}

/**
 * A terminal sends its signal to the launcher, which passes it on, and to this process too: what follows
 * within a moment is the same wish to stop. After that, a second signal ends the process at once.
 */
const SAME_SIGNAL_MS = 100;

function untilStopped(): Promise<void> {
  return new Promise(resolve => {
    let stoppedAt: number | undefined;
    const stop = (_: NodeJS.Signals, number: number) => {
      stoppedAt ??= performance.now();
      if (performance.now() - stoppedAt > SAME_SIGNAL_MS) process.exit(128 + number);
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  });
}
