/**
 * A delivery while a dispatcher holds it in memory.
 */
import type { DeliveryRef, NewDelivery, PendingDelivery } from '../store/store.ts';
import type { Guest } from './room.ts';
import type { Turn } from './turns.ts';

export interface Held extends PendingDelivery, Turn, Guest {
  attempts: number;
  dueAt: number;
  repeated: boolean;
  /** Its next attempt is in the store already: counted along with the insert. */
  counted: boolean;
  /** The body, for the first attempt, where there was room to keep it; otherwise the store has it. */
  bytes: Uint8Array | undefined;
}

export interface HandOff {
  readonly ref: DeliveryRef;
  readonly delivery: Omit<NewDelivery, 'owned' | 'begunAt'>;
  readonly guest: Guest & Turn;
  readonly counted: boolean;
  readonly bytes: Uint8Array | undefined;
}

/** Straight from its call. */
export function heldByHandOff({ ref, delivery, guest, counted, bytes }: HandOff): Held {
  const { runId, app, target, createdAt, confidential, traceparent } = delivery;
  const of = traceparent === undefined ? {} : { traceparent };
  const first = { round: 1, attempts: counted ? 1 : 0, trigger: 'automatic', dueAt: createdAt } as const;
  return { ...guest, ...first, ...of, counted, ref, runId, app, target, createdAt, confidential, bytes };
}

/** From the store. */
export function heldByClaim(delivery: PendingDelivery): Held {
  const origin = originOf(delivery.target);
  const repeated = delivery.attempts > 0;
  return { ...delivery, origin, repeated, claimed: true, counted: false, bytes: undefined };
}

/** Scheme, host and port: what deliveries to one receiver have in common. */
export function originOf(target: string): string {
  return new URL(target).origin;
}

/** A target as a log may tell it: its query may carry credentials. */
export function withoutQuery(target: string): string {
  const { origin, pathname } = new URL(target);
  return origin + pathname;
}
