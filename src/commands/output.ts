/**
 * What a command knows of the process around it, and how it prints: data to standard output, everything
 * else to standard error, colours only where the stream shows them (NO_COLOR and FORCE_COLOR are honoured).
 */
import { styleText } from 'node:util';

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** How this program is called from `cwd`, for commands to paste. */
  readonly program: string;
  /** Resolves when the process is asked to end; a command that runs on waits for it. */
  untilStopped(): Promise<void>;
  /** Calls back at every SIGHUP, which from then on does not end the process. */
  onHangUp(listener: () => void): void;
}

/** A check said no, and the command has printed why: it exits 1. */
export class CheckFailed extends Error {
  override readonly name = 'CheckFailed';
}

/** What the command was to do cannot be done, for a reason outside it: it prints the message and exits 1. */
export class Failed extends Error {
  override readonly name = 'Failed';
}

/** The user broke it off: the command prints the message and exits as a process does that Ctrl-C ended. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

export type Colour = 'bold' | 'dim' | 'green' | 'red' | 'yellow';

export function paint(stream: NodeJS.WritableStream, colour: Colour, text: string): string {
  return styleText(colour, text, { stream });
}

export function isTerminal(stream: object): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}

/** One line of JSON. */
export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${JSON.stringify(value)}\n`);
}

export function printWarning(io: Io, message: string): void {
  io.stderr.write(`${paint(io.stderr, 'yellow', 'warning:')} ${message}\n`);
}

export function printError(io: Io, message: string): void {
  io.stderr.write(`${paint(io.stderr, 'red', 'error:')} ${message}\n`);
}

/** Makes control characters visible: what came from outside must not move a terminal's cursor. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    char => `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}
