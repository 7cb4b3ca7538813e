/**
 * One attempt of a held delivery: counted in the store, unless it came counted, then sent, then judged. It is
 * sent only while the tenure lasts in which it was counted.
 */
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Body, Next, Store } from '../store/store.ts';
import type { OpenSpan, Tracing } from '../trace.ts';
import type { Outcome, Sender, Withheld } from './attempt.ts';
import type { Held } from './held.ts';
import { judgeOutcome } from './outcome.ts';
import { afterAttempt } from './policy.ts';

export interface SendingOptions {
  readonly store: Pick<Store, 'beginAttempt' | 'body' | 'tenure'>;
  readonly sender: Pick<Sender, 'send'>;
  readonly clock: Clock;
  /** At least 0, below 1. */
  readonly random: () => number;
  readonly log: Logger;
  /** Whether a project wants the Standard Webhooks headers. */
  readonly standardWebhooks: (projectId: string) => boolean;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

/** What came of an attempt, and what follows. */
export interface Sent {
  readonly outcome: Outcome;
  readonly next: Next;
}

/** No further attempt can bring back a body that the store has lost. */
const BODY_LOST: Next = { state: 'failed', reason: 'exhausted' };

export interface Sending {
  readonly held: Held;
  /** The store's, from before the attempt is counted. */
  readonly tenure: number;
  /** The body, where memory has it. */
  readonly kept: Body | undefined;
}

/** Undefined when the delivery is no longer this node's to send. */
export async function sendHeld(
  { store, sender, clock, random, log, standardWebhooks, tracing }: SendingOptions,
  { held, tenure, kept }: Sending,
): Promise<Sent | Withheld | undefined> {
  const { ref, runId, projectId, target, confidential } = held;
  const startedAt = clock.now();
  if (held.counted) {
    held.counted = false;
  } else if (await store.beginAttempt(ref, startedAt)) {
    held.attempts += 1;
  } else {
    log.debug({ run_id: runId }, 'the delivery is no longer ours to send');
    return undefined;
  }
  const number = held.attempts;
  const body = kept ?? (await store.body(ref));
  if (body === undefined) {
    return { outcome: { error: 'body_missing', startedAt, timings: { totalMs: 0 } }, next: BODY_LOST };
  }
  const span = tracing && spanOf(tracing, held);
  const outcome = await sender.send({
    runId,
    target,
    confidential,
    body,
    number,
    standardWebhooks: standardWebhooks(projectId),
    trace: span?.context,
    permitted: () => store.tenure === tenure,
  });
  // What was not sent is no attempt, and its span is not told.
  if ('withheld' in outcome) return outcome;
  span?.end({ status: outcome.status, error: outcome.error });
  const verdict = judgeOutcome(outcome);
  return { outcome, next: afterAttempt({ verdict, attempts: number, now: clock.now(), random }) };
}

function spanOf(tracing: Tracing, held: Held): OpenSpan {
  const { runId, projectId, app, round, origin, traceparent, attempts: number } = held;
  return tracing.attempt({ runId, projectId, app, round, origin, traceparent, number });
}
