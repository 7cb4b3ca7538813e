/**
 * What the bench's commands have in common: options that are refused with the usage, an end at a signal, and
 * figures on standard output as a table or as JSON.
 */
import { availableParallelism } from 'node:os';

export interface Command<Options extends { readonly json: boolean }, Figures> {
  readonly usage: string;
  /** Throws where an option is wrong. */
  readonly readOptions: (args: readonly string[]) => Options;
  /** What was measured with, to be shown beside the figures. */
  readonly scale: (options: Options) => Readonly<Record<string, number>>;
  readonly run: (options: Options, interrupted: AbortSignal) => Promise<Figures>;
  readonly asText: (figures: Figures) => string;
}

/** Tells the exit code. */
export async function runCommand<Options extends { readonly json: boolean }, Figures>(
  { usage, readOptions, scale, run, asText }: Command<Options, Figures>,
  args: readonly string[],
): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
  } catch (error) {
    process.stderr.write(`error: ${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interruption.abort(new Error('interrupted')));
  }
  const machine = { cores: availableParallelism(), node: process.versions.node };
  try {
    const figures = await run(options, interruption.signal);
    if (options.json) {
      process.stdout.write(`${JSON.stringify({ ...machine, ...scale(options), figures }, null, 2)}\n`);
    } else {
      const counts = Object.entries(scale(options)).map(([name, count]) => `${count} ${name}`);
      process.stdout.write(`${machine.cores} cores, Node ${machine.node}; ${counts.join(', ')}\n\n`);
      process.stdout.write(asText(figures));
    }
    return 0;
  } catch (error) {
    const reason = interruption.signal.aborted ? interruption.signal.reason : error;
    process.stderr.write(`error: ${(reason as Error).message}\n`);
    return 1;
  }
}

export function positive(name: string, text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new Error(`${name}: expected a whole number from 1, not "${text}"`);
  return Number(text);
}

/** Those of `known` that `--only` names. */
export function chosen<Name extends string>(text: string, known: readonly Name[]): Name[] {
  return text.split(',').map(name => {
    const found = known.find(each => each === name);
    if (found === undefined) throw new Error(`--only: there is no "${name}"; there are ${known.join(', ')}`);
    return found;
  });
}
