/**
 * What an app prints, line by line, in the service's log under the app's name, and with the run's id where
 * the runner says which call printed it (`@<run id>\t` before the line).
 */
import type { Readable } from 'node:stream';
import type { Logger } from '../log.ts';

/** A longer line is broken into several. */
const LONGEST_LINE = 16 * 1024;
const RUN = /^@([0-9a-f-]{36})\t/;

/** `onLine` is told the text of each line as well. */
export function logOutput(
  stream: Readable,
  name: 'stdout' | 'stderr',
  log: Logger,
  onLine: (text: string) => void = () => {},
): void {
  const decoder = new TextDecoder();
  let rest = '';
  /** What is known of the line that `rest` goes on with, where its beginning has been printed already. */
  let begun: object | undefined;

  const print = (line: string): void => {
    const run = begun === undefined ? RUN.exec(line) : null;
    const fields = begun ?? { stream: name, ...(run !== null && { run_id: run[1] }) };
    const text = line.slice(run?.[0].length ?? 0);
    if (text === '' && begun === undefined) log.info(fields, text);
    if (begun === undefined) onLine(text);
    for (let at = 0; at < text.length; at += LONGEST_LINE) {
      log.info(fields, text.slice(at, at + LONGEST_LINE));
    }
    begun = fields;
  };
  const printWhole = (line: string): void => {
    print(line.endsWith('\r') ? line.slice(0, -1) : line);
    begun = undefined;
  };
  const take = (text: string): void => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) printWhole(line);
    // A program that never ends its line does not fill the memory with it.
    if (rest.length > LONGEST_LINE) {
      print(rest);
      rest = '';
    }
  };
  stream.on('data', (chunk: Buffer) => take(decoder.decode(chunk, { stream: true })));
  stream.on('end', () => {
    take(decoder.decode());
    if (rest !== '') printWhole(rest);
  });
  stream.on('error', () => {}); // the process has ended, and its exit says how
}

const LAST_LINES = 20;
const LAST_LINE_LENGTH = 200;

/** A line that an app has printed, as far as it is kept. */
export interface PrintedLine {
  /** In milliseconds since the epoch. */
  readonly at: number;
  readonly text: string;
}

/** The last few lines that an app has printed, each cut short. */
export class LastLines {
  readonly #lines: PrintedLine[] = [];

  add(line: PrintedLine): void {
    this.#lines.push({ at: line.at, text: line.text.slice(0, LAST_LINE_LENGTH) });
    if (this.#lines.length > LAST_LINES) this.#lines.shift();
  }

  /** The oldest first. */
  get all(): readonly PrintedLine[] {
    return [...this.#lines];
  }
}
