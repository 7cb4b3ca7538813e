/** Something that is done again and again, never twice at once. */
import type { Clock } from '../../clock.ts';

export interface Rounds {
  /** The first comes after one pause. */
  start(): void;
  /** Resolves when the one under way is done. */
  stop(): Promise<void>;
}

/** `round` tells the milliseconds until the next one, and never rejects. */
export function createRounds(clock: Clock, first: number, round: () => Promise<number>): Rounds {
  let cancel = () => {};
  let stopped = false;
  let underWay: Promise<void> = Promise.resolve();

  function schedule(ms: number): void {
    if (stopped) return;
    cancel = clock.after(ms, () => {
      underWay = round().then(schedule);
    });
  }

  return {
    start: () => schedule(first),
    async stop() {
      stopped = true;
      cancel();
      await underWay;
    },
  };
}
