/**
 * A child process that cannot outlive this one, whatever ends it.
 *
 * The program runs under a small shell at the head of a process group of its own. The shell holds the
 * reading end of a pipe whose other end is here: when this process is gone, even by kill -9, the pipe ends
 * and the shell's guard kills the whole group. Neither needs the program's help, however busy it is.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';

/** A signal that ended the program, or its exit code. */
export type Exit = { readonly signal: string } | { readonly code: number };

export interface GuardedProcess {
  /** Of the head of its process group; undefined where it could not be started. */
  readonly pid: number | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when it has ended, and what it left behind is killed. */
  readonly exited: Promise<Exit>;
  /** Asks the program to end. */
  terminate(): void;
  /** Ends it and everything that it started, at once. */
  kill(): void;
}

export interface GuardedOptions {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The shell hears requests to end from the first, and passes on one that comes while the program starts; the two
 * names are long since the program may have variables of its own. `wait` returns early when the shell is asked to
 * end, so it is repeated until the program is gone. The guard gives up the program's output, so that it does not
 * keep the pipes open.
 */
const GUARD = `
afterword_asked= afterword_program=
trap 'afterword_asked=1; kill -TERM $afterword_program 2>/dev/null' TERM
"$@" 3<&- </dev/null &
afterword_program=$!
[ -z "$afterword_asked" ] || kill -TERM "$afterword_program"
{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
guard=$!
while :; do
  wait "$afterword_program" 2>/dev/null
  code=$?
  kill -0 "$afterword_program" 2>/dev/null || break
done
kill -KILL "$guard" 2>/dev/null
exit "$code"
`;

export function spawnGuarded({ command, cwd, env }: GuardedOptions): GuardedProcess {
  const child = spawn('/bin/sh', ['-c', GUARD, 'afterword-app', ...command], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const group = child.pid;

  function signalGroup(): void {
    try {
      if (group !== undefined) process.kill(-group, 'SIGKILL');
    } catch {
      // nobody is left in it
    }
  }

  async function end(): Promise<Exit> {
    try {
      const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
      return signal === null ? exitOf(code!) : { signal };
    } catch {
      return { code: 127 }; // the shell could not be started: no such directory, say
    } finally {
      signalGroup(); // what the program left behind
    }
  }

  return {
    pid: group,
    stdout: child.stdout!,
    stderr: child.stderr!,
    exited: end(),
    terminate: () => void child.kill('SIGTERM'),
    kill: signalGroup,
  };
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A shell tells of a signal as 128 and its number. */
function exitOf(code: number): Exit {
  const signal = SIGNALS.get(code - 128);
  return signal === undefined ? { code } : { signal };
}
