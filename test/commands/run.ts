/**
 * Runs a command of this checkout in the test's own process, with streams that are kept.
 */
import { Readable, Writable } from 'node:stream';
import { main } from '../../src/cli.ts';
import type { Io } from '../../src/commands/output.ts';

export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  /** Somebody sits at it: reads along, without colours, and types `stdin`. */
  readonly terminal?: boolean;
}

export interface Running {
  /** Resolves with the exit code. */
  readonly exit: Promise<number>;
  readonly stdout: Captured;
  readonly stderr: Captured;
  /** What SIGTERM would do. */
  stop(): void;
}

/** Everything written so far, and a way to wait for more. */
export class Captured extends Writable {
  text = '';
  readonly #waiting = new Set<() => void>();

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    for (const look of this.#waiting) look();
    done();
  }

  get lines(): string[] {
    return this.text.split('\n').slice(0, -1);
  }

  /** Resolves once the text has a match. */
  match(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise(resolve => {
      const look = () => {
        const match = pattern.exec(this.text);
        if (match === null) return;
        this.#waiting.delete(look);
        resolve(match);
      };
      this.#waiting.add(look);
      look();
    });
  }
}

export function start(
  argv: readonly string[],
  { stdin = '', env = {}, cwd = '/', terminal = false }: RunOptions = {},
): Running {
  const stopped = Promise.withResolvers<void>();
  const [stdout, stderr] = [new Captured(), new Captured()];
  const typed = Readable.from([Buffer.from(stdin)]);
  for (const stream of terminal ? [typed, stdout, stderr] : []) {
    Object.assign(stream, { isTTY: true, getColorDepth: () => 1 });
  }
  const io: Io = {
    stdin: typed,
    stdout,
    stderr,
    env,
    cwd,
    program: 'afterword',
    untilStopped: () => stopped.promise,
    onHangUp() {},
  };
  return { exit: main(argv, io), stdout, stderr, stop: stopped.resolve };
}

export async function run(argv: readonly string[], options?: RunOptions) {
  const { exit, stdout, stderr } = start(argv, options);
  return { code: await exit, stdout: stdout.text, stderr: stderr.text };
}
