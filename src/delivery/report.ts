/**
 * What a dispatcher tells the outside: one log line per attempt, one more for a delivery that failed for good,
 * and events for the metrics. Neither the secret nor a target's query or credentials appear.
 */
import type { Logger } from '../log.ts';
import type { AttemptResult, Next } from '../store/store.ts';
import { type Held, withoutQuery } from './held.ts';

export type Settled = Exclude<Next, { state: 'pending' }>;

/** Whose attempt it was, or who ended. */
export type ReportedDelivery = Pick<Held, 'projectId' | 'origin' | 'round'>;

export interface DispatcherEvents {
  /** A delivery is durable. */
  readonly made?: (delivery: { readonly projectId: string }) => void;
  /** The store refused one. */
  readonly storeFailed?: (operation: 'insert_delivery') => void;
  readonly attempt?: (result: AttemptResult, delivery: ReportedDelivery) => void;
  readonly settled?: (next: Settled, delivery: ReportedDelivery) => void;
}

export interface Report {
  attempt(held: Held, result: AttemptResult, next: Next): void;
  settled(held: Held, result: AttemptResult, next: Settled): void;
}

export function createReport({ log, events }: { log: Logger; events: DispatcherEvents }): Report {
  return {
    attempt(held, result, next) {
      log.info(
        {
          run_id: held.runId,
          project_id: held.projectId,
          app: held.app,
          target: withoutQuery(held.target),
          attempt: result.number,
          round: held.round,
          ...answerOf(result),
          duration_ms: Math.round(result.timings.totalMs),
          next: next.state,
        },
        'attempt',
      );
      events.attempt?.(result, held);
    },
    settled(held, result, next) {
      if (next.state === 'failed') {
        const target = withoutQuery(held.target);
        const { reason } = next;
        log.error({ run_id: held.runId, target, reason, ...answerOf(result) }, 'delivery failed');
      }
      events.settled?.(next, held);
    },
  };
}

function answerOf({ status, error }: AttemptResult): { status?: number; error?: string } {
  return { ...(status !== undefined && { status }), ...(error !== undefined && { error }) };
}
