/** A clock on which one time passes only when a test says so. */
import { type Clock, systemClock } from '../../src/clock.ts';

export function endingByHand(time: number): { readonly clock: Clock; readonly end: () => void } {
  let end: (() => void) | undefined;
  const after: Clock['after'] = (ms, task) => {
    if (ms !== time) return systemClock.after(ms, task);
    end = task;
    return () => {};
  };
  return {
    clock: { ...systemClock, after },
    end() {
      if (end === undefined) throw new Error('nobody waits for it');
      end();
    },
  };
}
