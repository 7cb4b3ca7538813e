/**
 * The two ways that a delivery goes through a store, at the pace of the store alone: the receiver answers at
 * once. As in the dispatcher, the next attempt begins while the outcome of the last is being written. Whatever
 * the store answers is checked on the way; what is wrong ends the bench.
 */
import { uuidv7 } from 'uuidv7';
import type { DeliveryRef, PendingDelivery, Store } from '../../src/store/store.ts';
import { DELIVERED, deliveryOf, firstAttempt, isBodyOf, isSecret } from './deliveries.ts';

export interface Share {
  readonly deliveries: number;
  /** Bytes of each body. */
  readonly size: number;
  /** Attempts at a time, and as many outcomes. */
  readonly inFlight: number;
}

export interface Done {
  /** Deliveries that this node settled. */
  readonly settled: number;
  /** How long the first writes took: the insert that a caller waits for, or the count before the sending. */
  readonly firstWrites: readonly number[];
}

/** As the dispatcher does; fewer where that would be most of a node's share. */
const CLAIM = 500;

/** The common way: stored and counted in one, sent by the node that stored it. */
export async function handOff(store: Store, { deliveries, size, inFlight }: Share): Promise<Done> {
  let left = deliveries;
  return sendAll(store, inFlight, async timed => {
    if (left === 0) return undefined;
    left -= 1;
    const delivery = deliveryOf(uuidv7(), size);
    const startedAt = delivery.createdAt;
    const ref = await timed(store.insert({ ...delivery, owned: true, begunAt: startedAt }));
    return { ref, startedAt };
  });
}

/** Stores deliveries for any node to claim. */
export async function leave(store: Store, { deliveries, size, inFlight }: Share): Promise<void> {
  let left = deliveries;
  await inParallel(inFlight, async () => {
    while (left > 0) {
      left -= 1;
      await store.insert({ ...deliveryOf(uuidv7(), size), owned: false });
    }
  });
}

/** The other way: claimed, counted, read and sent, until there are no more. */
export async function drain(store: Store, { deliveries, size, inFlight }: Share): Promise<Done> {
  const next = claims(store, Math.min(CLAIM, Math.ceil(deliveries / 4)));
  return sendAll(store, inFlight, async timed => {
    const held = await next();
    if (held === undefined) return undefined;
    const { ref, runId, confidential } = held;
    const startedAt = Date.now();
    if (!(await timed(store.beginAttempt(ref, startedAt)))) throw wrong('could not be begun', runId);
    if (!isSecret(confidential.secret)) throw wrong('came back without its secret', runId);
    if (!isBodyOf(runId, size, await store.body(ref))) throw wrong('has another body', runId);
    return { ref, startedAt };
  });
}

interface Begun {
  readonly ref: DeliveryRef;
  readonly startedAt: number;
}

type Timed = <T>(firstWrite: Promise<T>) => Promise<T>;

/** Begins one after the other in each of the lanes and settles them, until `begin` has no more. */
async function sendAll(
  store: Store,
  lanes: number,
  begin: (timed: Timed) => Promise<Begun | undefined>,
): Promise<Done> {
  const waits: number[] = [];
  const timed: Timed = async write => {
    const asked = performance.now();
    const answer = await write;
    waits.push(performance.now() - asked);
    return answer;
  };
  await inParallel(lanes, async () => {
    let ending = Promise.resolve();
    for (;;) {
      const [begun] = await Promise.all([begin(timed), ending]);
      if (begun === undefined) return;
      ending = end(store, begun);
    }
  });
  return { settled: waits.length, firstWrites: waits };
}

async function end(store: Store, { ref, startedAt }: Begun): Promise<void> {
  const written = await store.endAttempt(ref, firstAttempt(startedAt), DELIVERED);
  if (!written) throw wrong('could not be settled', ref);
}

/** One delivery at each call, undefined after the last; the next batch is claimed before this one is used up. */
function claims(store: Store, size: number): () => Promise<PendingDelivery | undefined> {
  const held: PendingDelivery[] = [];
  let claiming: Promise<void> | undefined;
  let dry = false;

  async function claim(): Promise<void> {
    const claimed = await store.claim(size);
    dry = claimed.length === 0;
    held.push(...claimed);
    claiming = undefined;
  }

  return async () => {
    while (held.length === 0 && !dry) await (claiming ??= claim());
    if (held.length < size && !dry) {
      claiming ??= claim();
      claiming.catch(() => {}); // told to whoever waits for it
    }
    return held.shift();
  };
}

async function inParallel(count: number, lane: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, lane));
}

function wrong(what: string, which: DeliveryRef): Error {
  return new Error(`delivery ${which} ${what}`);
}
