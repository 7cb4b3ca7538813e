/**
 * Deliveries that wait in memory until their next attempt is due.
 */
import type { Clock } from '../clock.ts';
import { MAX_GAP } from './policy.ts';

export interface Retries<T> {
  add(delivery: T, dueAt: number): void;
  /** Forgets them all. */
  clear(): void;
}

export function createRetries<T>({ clock, due }: { clock: Clock; due: (delivery: T) => void }): Retries<T> {
  const cancels = new Map<T, () => void>();
  return {
    add(delivery, dueAt) {
      // A clock that was set back must not stretch the gap.
      const wait = Math.min(Math.max(0, dueAt - clock.now()), MAX_GAP);
      const cancel = clock.after(wait, () => {
        cancels.delete(delivery);
        due(delivery);
      });
      cancels.set(delivery, cancel);
    },
    clear() {
      for (const cancel of cancels.values()) cancel();
      cancels.clear();
    },
  };
}
