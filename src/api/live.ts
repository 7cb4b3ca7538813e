/**
 * Deliveries as they change, for whoever looks on: the store is followed once for all of them, and asked once
 * for what it tells.
 */
import type { Logger } from '../log.ts';
import type { DeliverySummary, Ledger } from '../store/ledger.ts';

export type Onlooker = (deliveries: readonly DeliverySummary[]) => void;

export interface Live {
  /** Tells of every change from now on; the returned function ends that. */
  watch(onlooker: Onlooker): () => void;
}

export interface LiveOptions {
  readonly ledger: Pick<Ledger, 'follow' | 'summaries'>;
  readonly log: Logger;
}

/** Changes that are not told yet; beyond, the oldest are forgotten: an onlooker sees later ones. */
const MOST_CHANGED = 10_000;
/** Asked for at once. */
const AT_ONCE = 500;

export function createLive({ ledger, log }: LiveOptions): Live {
  const onlookers = new Set<Onlooker>();
  const changed = new Set<string>();
  let unfollow: (() => void) | undefined;
  let telling = false;

  function take(runIds: readonly string[]): void {
    for (const runId of runIds) {
      changed.delete(runId); // it is as new as its last change
      changed.add(runId);
    }
    for (const runId of changed) {
      if (changed.size <= MOST_CHANGED) break;
      changed.delete(runId);
    }
    if (!telling) void tell();
  }

  async function tell(): Promise<void> {
    telling = true;
    try {
      while (changed.size > 0 && onlookers.size > 0) {
        const runIds = [...changed].slice(0, AT_ONCE);
        for (const runId of runIds) changed.delete(runId);
        const deliveries = await ledger.summaries(runIds);
        const order = new Map(runIds.map((runId, index) => [runId, index]));
        const inOrder = deliveries.toSorted((a, b) => order.get(a.runId)! - order.get(b.runId)!);
        for (const onlooker of onlookers) onlooker(inOrder);
      }
    } catch (error) {
      log.warn({ err: error as Error }, 'changes of deliveries could not be told');
    }
    telling = false;
  }

  return {
    watch(onlooker) {
      unfollow ??= ledger.follow(take);
      onlookers.add(onlooker);
      return () => {
        onlookers.delete(onlooker);
        if (onlookers.size > 0) return;
        unfollow?.();
        unfollow = undefined;
        changed.clear();
      };
    },
  };
}
