/**
 * A delivery while a dispatcher holds it in memory.
 */
import type { PendingDelivery } from '../store/store.ts';
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

/** Scheme, host and port: what deliveries to one receiver have in common. */
export function originOf(target: string): string {
  return new URL(target).origin;
}

/** A target as a log may tell it: its query may carry credentials. */
export function withoutQuery(target: string): string {
  const { origin, pathname } = new URL(target);
  return origin + pathname;
}
