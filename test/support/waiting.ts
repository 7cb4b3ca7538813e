/**
 * Waiting for something to become so, for what gives no signal of its own.
 */
import { setTimeout } from 'node:timers/promises';

const POLL_MS = 5;

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await setTimeout(POLL_MS);
}

/** Waits until a count that has begun to grow stands still, and gives it. */
export async function stalled(count: () => number): Promise<number> {
  let last = -1;
  for (let still = 0; still < 10; ) {
    await setTimeout(20);
    still = count() === last && last > 0 ? still + 1 : 0;
    last = count();
  }
  return last;
}
