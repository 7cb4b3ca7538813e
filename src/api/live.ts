/**
 * Deliveries as they change, for whoever looks on: the store is followed once for all of them, and asked once
 * for what it tells.
 */
import type { Logger } from '../log.ts';
import type { DeliverySummary, Ledger } from '../store/ledger.ts';

/** What has changed, or `missed`: changes that nobody will be told of one by one. */
export type News = readonly DeliverySummary[] | 'missed';
export type Onlooker = (news: News) => void;

export interface Live {
  /** From the moment that there is one, an onlooker may be told of every change. */
  watch(): Promise<Watch>;
}

export interface Watch {
  tell(onlooker: Onlooker): void;
  end(): void;
}

export interface LiveOptions {
  readonly ledger: Pick<Ledger, 'follow' | 'summaries'>;
  readonly log: Logger;
}

/** Changes that are not told yet; beyond, they are missed. */
const MOST_CHANGED = 10_000;
/** Asked for at once. */
const AT_ONCE = 500;

export function createLive({ ledger, log }: LiveOptions): Live {
  const onlookers = new Set<Onlooker>();
  const changed = new Set<string>();
  let following: Promise<() => void> | undefined;
  let telling = false;
  let watches = 0;

  function take(runIds: readonly string[]): void {
    for (const runId of runIds) {
      changed.delete(runId); // it is as new as its last change
      changed.add(runId);
    }
    if (runIds.length === 0 || changed.size > MOST_CHANGED) miss();
    else if (!telling) void tell();
  }

  function miss(): void {
    changed.clear();
    for (const onlooker of onlookers) onlooker('missed');
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
      miss();
    }
    telling = false;
  }

  function leave(): void {
    watches -= 1;
    if (watches > 0) return;
    following?.then(
      unfollow => unfollow(),
      () => {}, // it has never begun
    );
    following = undefined;
    changed.clear();
  }

  return {
    async watch() {
      watches += 1;
      try {
        await (following ??= ledger.follow(take));
      } catch (error) {
        leave();
        throw error;
      }
      let own: Onlooker | undefined;
      return {
        tell(onlooker) {
          own = onlooker;
          onlookers.add(own);
        },
        end() {
          if (own !== undefined) onlookers.delete(own);
          leave();
        },
      };
    },
  };
}
