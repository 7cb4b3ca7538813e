/**
 * Deletes what ended longer ago than its retention, deliveries and runs, a little at a time, so that the store
 * always has time for what is new. Where nodes share a store, each does: what one has deleted is gone for all.
 */
import type { Clock } from './clock.ts';
import type { AsyncConfig, WebhooksConfig } from './config/config.ts';
import type { Logger } from './log.ts';
import type { RunStore } from './store/runs.ts';
import type { Store } from './store/store.ts';

/** What can be deleted of a store. */
export interface Prunable extends Pick<Store, 'prune'> {
  readonly runs: Pick<RunStore, 'prune'>;
}

export interface RetentionOptions {
  readonly store: Prunable;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: {
    readonly webhooks: Pick<WebhooksConfig, 'retention'>;
    readonly async: Pick<AsyncConfig, 'retention'>;
  };
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

export function createRetention({ store, clock, log, config }: RetentionOptions): Retention {
  let cancel: (() => void) | undefined;
  let stopped = false;

  async function prune(): Promise<void> {
    let deleted = 0;
    try {
      const now = clock.now();
      deleted = await store.prune(now - config.webhooks.retention, BATCH);
      deleted = Math.max(deleted, await store.runs.prune(now - config.async.retention, BATCH));
    } catch (error) {
      if (!stopped) log.error({ err: error as Error }, 'what is old could not be deleted');
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
