/**
 * Deletes deliveries that ended longer ago than `retention`, a little at a time, so that the store always
 * has time for what is new. Where nodes share a store, each does: what one has deleted is gone for all.
 */
import type { Clock } from './clock.ts';
import type { Logger } from './log.ts';
import type { Store } from './store/store.ts';

export interface RetentionOptions {
  readonly store: Pick<Store, 'prune'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** In milliseconds. */
  readonly retention: number;
}

export interface Retention {
  start(): void;
  /** Does not wait for what is under way: a store that cannot write keeps it until it is closed itself. */
  stop(): void;
}

const BATCH = 200;
/** Between two batches while there is more to delete, and between two looks otherwise. */
const BUSY_MS = 20;
const IDLE_MS = 60_000;

export function createRetention({ store, clock, log, retention }: RetentionOptions): Retention {
  let cancel: (() => void) | undefined;
  let stopped = false;

  async function prune(): Promise<void> {
    let deleted = 0;
    try {
      deleted = await store.prune(clock.now() - retention, BATCH);
    } catch (error) {
      if (!stopped) log.error({ err: error as Error }, 'old deliveries could not be deleted');
    }
    if (!stopped) schedule(deleted < BATCH ? IDLE_MS : BUSY_MS);
  }

  function schedule(ms: number): void {
    cancel = clock.after(ms, () => void prune());
  }

  return {
    start: () => schedule(BUSY_MS),
    stop() {
      stopped = true;
      cancel?.();
    },
  };
}
