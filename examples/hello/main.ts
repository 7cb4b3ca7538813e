/**
 * Functions in TypeScript: each one that is exported can be called by its name. It gets the parameters of the
 * call and, if it wants to know, something about the call.
 */
import { setTimeout as sleep } from 'node:timers/promises';

interface Context {
  readonly runId: string;
  /** Aborts when the caller hangs up and nobody waits for the result. */
  readonly signal: AbortSignal;
  readonly log: Pick<Console, 'debug' | 'info' | 'warn' | 'error'>;
}

export function run({ name = 'world' }: { name?: string }, { log }: Context) {
  log.info(`saying hello to ${name}`);
  return { greeting: `Hello, ${name}!` };
}

class OutOfStock extends Error {}

const STOCK: Readonly<Record<string, number>> = { pear: 3, plum: 12 };

/** An error is answered with 500, its class and its message. */
export function order({ item, count = 1 }: { item: string; count?: number }) {
  const left = STOCK[item] ?? 0;
  if (count > left) throw new OutOfStock(`${count} of ${item} ordered, ${left} left`);
  return { item, count };
}

/** `status_code` in the result is the HTTP status of the answer. */
export function find({ item }: { item: string }) {
  const left = STOCK[item];
  return left === undefined ? { status_code: 404, message: `nobody sells ${item}` } : { item, left };
}

/** Takes its time, and gives up when nobody waits any more. */
export async function slow({ seconds = 3 }: { seconds?: number }, { signal }: Context) {
  await sleep(seconds * 1000, undefined, { signal });
  return { slept: seconds };
}
