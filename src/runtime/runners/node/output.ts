/**
 * What the process prints, in whole lines, of which those printed by a call begin with `@<run id>` and a
 * tab: calls run at the same time, and the supervisor has to tell their lines apart. A call's lines are
 * known by its asynchronous context, whoever prints them.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A line longer than this is broken, so that one without an end does not fill the memory. */
const MAX_LINE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** Prints with the run's id, also where the asynchronous context is lost. */
export type RunLog = Readonly<Record<LogLevel, (...parts: unknown[]) => void>>;

export interface Output {
  /** What `call` prints carries the run's id. */
  within<T>(runId: string, call: (log: RunLog) => Promise<T>): Promise<T>;
}

/** Takes over what is written to the streams. */
export function captureOutput(streams: readonly NodeJS.WriteStream[]): Output {
  const context = new AsyncLocalStorage<RunLines>();
  const outside = new RunLines('');
  const flushes = streams.map(stream => takeOver(stream, () => context.getStore() ?? outside));
  const flush = (lines: RunLines): void => flushes.forEach(each => each(lines));
  process.once('exit', () => flush(outside));

  return {
    async within(runId, call) {
      const lines = new RunLines(`@${runId}\t`);
      const print =
        (level: LogLevel) =>
        (...parts: unknown[]) =>
          context.run(lines, () => console[level](...parts));
      const log = { debug: print('debug'), info: print('info'), warn: print('warn'), error: print('error') };
      try {
        return await context.run(lines, call, log);
      } finally {
        flush(lines);
      }
    },
  };
}

/** Returns what prints the beginning of a line that has no end yet. */
function takeOver(stream: NodeJS.WriteStream, current: () => RunLines): (lines: RunLines) => void {
  const write = stream.write.bind(stream) as (bytes: Uint8Array, done?: WriteDone) => boolean;
  stream.write = (chunk: string | Uint8Array, ...rest: [(BufferEncoding | WriteDone)?, WriteDone?]) => {
    const encoding = typeof rest[0] === 'string' ? rest[0] : undefined;
    const done = rest.find(each => typeof each === 'function');
    const whole = current().add(stream, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
    return write(whole, done);
  };
  return lines => {
    const unended = lines.end(stream);
    if (unended.length > 0) write(unended);
  };
}

type WriteDone = (error?: Error | null) => void;

/** The lines of one run, or of none. */
class RunLines {
  readonly #prefix: Buffer;
  readonly #begun = new Map<object, Buffer>();

  constructor(prefix: string) {
    this.#prefix = Buffer.from(prefix);
  }

  /** The lines that are whole with these bytes. */
  add(stream: object, bytes: Uint8Array): Buffer {
    const all = Buffer.concat([this.#begun.get(stream) ?? NOTHING, bytes]);
    const pieces: Uint8Array[] = [];
    let start = 0;
    for (let end = all.indexOf(NEWLINE); end >= 0; end = all.indexOf(NEWLINE, start)) {
      pieces.push(this.#prefix, all.subarray(start, end + 1));
      start = end + 1;
    }
    this.#begun.set(stream, all.subarray(start));
    if (all.length - start > MAX_LINE_BYTES) pieces.push(this.end(stream));
    return Buffer.concat(pieces);
  }

  /** The line that has no end yet, ended. */
  end(stream: object): Buffer {
    const begun = this.#begun.get(stream) ?? NOTHING;
    this.#begun.delete(stream);
    return begun.length === 0 ? NOTHING : Buffer.concat([this.#prefix, begun, Buffer.of(NEWLINE)]);
  }
}
