/**
 * How far something has come: a bar that is drawn over on a terminal, a line for each tenth elsewhere.
 */
import type { WriteStream } from 'node:tty';

const BAR = 30;
const CLEAR_TO_END_OF_LINE = '\u001b[K';

export interface Meter {
  begin(total: number): void;
  advance(count: number): void;
}

/** `what` is counted, in the plural. */
export function createMeter(stream: NodeJS.WritableStream, what: string): Meter {
  const terminal = 'isTTY' in stream && (stream as WriteStream).isTTY;
  let total = 0;
  let done = 0;

  function draw(): void {
    const filled = Math.floor((done / total) * BAR);
    const bar = '█'.repeat(filled) + '░'.repeat(BAR - filled);
    const end = done < total ? '' : '\n';
    stream.write(
      `\r${bar} ${percentOf(done, total)} ${done} of ${total} ${what}${CLEAR_TO_END_OF_LINE}${end}`,
    );
  }

  return {
    begin(number) {
      total = number;
      if (terminal && total > 0) draw();
    },
    advance(count) {
      const before = Math.floor((done / total) * 10);
      done += count;
      if (terminal) draw();
      else if (Math.floor((done / total) * 10) > before) {
        stream.write(`${percentOf(done, total)} ${done} of ${total} ${what}\n`);
      }
    },
  };
}

function percentOf(done: number, total: number): string {
  return `${Math.floor((done / total) * 100)}%`.padStart(4);
}
