/**
 * Shows that something goes on, for what has no measure of how far it is: one line, drawn over on a terminal.
 */
import type { Clock } from '../clock.ts';
import { isTerminal } from './output.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 100;
const CLEAR_TO_END_OF_LINE = '\u001b[K';

export interface Progress {
  /** From now on. */
  tell(state: string): void;
  /** Removes the line. */
  end(): void;
}

const SILENT: Progress = { tell() {}, end() {} };

/** `what` goes on since now; elsewhere than on a terminal nothing is shown. */
export function createProgress(stream: NodeJS.WritableStream, what: string, clock: Clock): Progress {
  if (!isTerminal(stream)) return SILENT;
  const began = clock.elapsed();
  let state = '';
  let frame = 0;
  let cancel = () => {};

  function draw(): void {
    const seconds = Math.floor((clock.elapsed() - began) / 1000);
    stream.write(`\r${FRAMES[frame]} ${what} ${state} ${seconds} s${CLEAR_TO_END_OF_LINE}`);
    frame = (frame + 1) % FRAMES.length;
    cancel = clock.after(FRAME_MS, draw);
  }

  return {
    tell(now) {
      state = now;
      cancel();
      draw();
    },
    end() {
      cancel();
      stream.write(`\r${CLEAR_TO_END_OF_LINE}`);
    },
  };
}
