/**
 * A function that yields: the caller gets each value as an event the moment it is there, the receiver all of
 * them as one array. In Python it is a function with `yield`, or an `async def` with it.
 */
import { setTimeout as sleep } from 'node:timers/promises';

interface Context {
  readonly signal: AbortSignal;
}

/** Speaks word by word, as a chat does. */
export async function* run(
  { text, delay = 200 }: { text: string; delay?: number },
  { signal }: Context,
): AsyncGenerator<{ word: string }> {
  for (const word of text.split(/\s+/)) {
    await sleep(delay, undefined, { signal });
    yield { word };
  }
}

/** An error in the middle is the last event. */
export function* countdown({ from = 3 }: { from?: number }): Generator<number> {
  for (let left = from; left > 0; left--) yield left;
  throw new RangeError('there is nothing below 1');
}
