/**
 * What a dispatcher tells the outside: one log line per attempt, one more for a delivery that failed for good,
 * and events for the metrics. Neither the secret nor a target's query or credentials appear.
 */
import type { Logger } from '../log.ts';
import type { AttemptResult, Next } from '../store/store.ts';
import { type Held, withoutQuery } from './held.ts';

export type Settled = Exclude<Next, { state: 'pending' }>;

export interface DispatcherEvents {
  readonly attempt?: (attempt: {
    readonly status?: number;
    readonly error?: string;
    readonly queueMs: number;
    readonly totalMs: number;
  }) => void;
  readonly settled?: (next: Settled) => void;
}

export interface Report {
  attempt(held: Held, result: AttemptResult, next: Next): void;
  settled(held: Held, result: AttemptResult, next: Settled): void;
}

export function createReport({ log, events }: { log: Logger; events: DispatcherEvents }): Report {
  return {
    attempt(held, result, next) {
      const { queueMs, totalMs } = result.timings;
      log.info(
        {
          run_id: held.runId,
          project_id: held.projectId,
          app: held.app,
          target: withoutQuery(held.target),
          attempt: result.number,
          round: held.round,
          ...answerOf(result),
          duration_ms: Math.round(totalMs),
          next: next.state,
        },
        'attempt',
      );
      events.attempt?.({ ...answerOf(result), queueMs, totalMs });
    },
    settled(held, result, next) {
      if (next.state === 'failed') {
        const target = withoutQuery(held.target);
        const { reason } = next;
        log.error({ run_id: held.runId, target, reason, ...answerOf(result) }, 'delivery failed');
      }
      events.settled?.(next);
    },
  };
}

function answerOf({ status, error }: AttemptResult): { status?: number; error?: string } {
  return { ...(status !== undefined && { status }), ...(error !== undefined && { error }) };
}
