/**
 * Writes deliveries and their attempts as JSON.
 */
import type { z } from '@hono/zod-openapi';
import { headerPairs } from '../delivery/answer-headers.ts';
import { explain } from '../delivery/explanations.ts';
import type { DeliverySummary, Job as JobRecord } from '../store/ledger.ts';
import type { RunRecord } from '../store/runs.ts';
import type { AttemptRecord, AttemptTimings, DeliveryRecord } from '../store/store.ts';
import type { Attempt, Delivery, DeliveryDetail, Job } from './delivery-contract.ts';
import { factsOf, isoTime } from './run-json.ts';

export function deliveryJson(delivery: DeliverySummary): z.output<typeof Delivery> {
  const { lastStatus, lastError, dueAt, settledAt, reason } = delivery;
  return {
    run_id: delivery.runId,
    project_id: delivery.projectId,
    app: delivery.app,
    target: delivery.target,
    status_code: delivery.statusCode,
    state: delivery.state,
    ...(reason !== undefined && { reason }),
    round: delivery.round,
    attempt_count: delivery.attempts,
    ...(lastStatus !== undefined && { last_status: lastStatus }),
    ...(lastError !== undefined && { last_error: lastError }),
    created_at: isoTime(delivery.createdAt),
    ...(dueAt !== undefined && { next_attempt_at: isoTime(dueAt) }),
    ...(settledAt !== undefined && { settled_at: isoTime(settledAt) }),
  };
}

/** `run`: where the call was asynchronous. */
export function detailJson(
  delivery: DeliveryRecord,
  run: RunRecord | undefined,
): z.output<typeof DeliveryDetail> {
  const { target, otherTarget, traceparent, attempts } = delivery;
  const traceId = traceparent?.split('-')[1];
  return {
    ...deliveryJson(summaryOf(delivery)),
    ...(otherTarget !== undefined && { own_target: target }),
    ...(traceId !== undefined && { trace_id: traceId }),
    ...(run !== undefined && { run: runFactsOf(run) }),
    attempts: attempts.map(attemptJson),
  };
}

export function jobJson(job: JobRecord): z.output<typeof Job> {
  const { id, state, total, seen, redelivered, createdAt, endedAt } = job;
  return {
    job_id: id,
    state,
    total,
    seen,
    redelivered,
    created_at: isoTime(createdAt),
    ...(endedAt !== undefined && { ended_at: isoTime(endedAt) }),
  };
}

function summaryOf({ attempts, otherTarget, ...delivery }: DeliveryRecord): DeliverySummary {
  const last = attempts.at(-1);
  return {
    ...delivery,
    target: otherTarget ?? delivery.target,
    attempts: attempts.length,
    ...(last?.status !== undefined && { lastStatus: last.status }),
    ...(last?.error !== undefined && { lastError: last.error }),
  };
}

function runFactsOf(run: RunRecord): NonNullable<z.output<typeof DeliveryDetail>['run']> {
  const { delivery: _, ...facts } = factsOf(run);
  return facts;
}

function attemptJson(attempt: AttemptRecord): z.output<typeof Attempt> {
  const { round, number, trigger, target, startedAt, timings, status, error, headers, excerpt } = attempt;
  return {
    round,
    number,
    trigger,
    ...(target !== undefined && { target }),
    started_at: isoTime(startedAt),
    timings: timingsJson(timings),
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error: { code: error, ...explain(error) } }),
    ...(headers !== undefined && { headers: headerPairs(headers) }),
    ...(excerpt !== undefined && excerptJson(excerpt)),
  };
}

function timingsJson(timings: AttemptTimings): z.output<typeof Attempt>['timings'] {
  const { queueMs, dnsMs, connectMs, tlsMs, firstByteMs, totalMs } = timings;
  return {
    queue: queueMs,
    ...(dnsMs !== undefined && { dns: dnsMs }),
    ...(connectMs !== undefined && { connect: connectMs }),
    ...(tlsMs !== undefined && { tls: tlsMs }),
    ...(firstByteMs !== undefined && { first_byte: firstByteMs }),
    total: totalMs,
  };
}

/** A character of UTF-8 has four bytes at most, and the excerpt may end within one. */
const LONGEST_REST = 3;

function excerptJson(excerpt: Uint8Array): { excerpt: string; excerpt_encoding?: 'base64' } {
  for (let cut = 0; cut <= Math.min(LONGEST_REST, excerpt.length); cut += 1) {
    const text = utf8(excerpt.subarray(0, excerpt.length - cut));
    if (text !== undefined) return { excerpt: text };
  }
  return { excerpt: Buffer.from(excerpt).toString('base64'), excerpt_encoding: 'base64' };
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
