/** Rows of deliveries and attempts, which both stores have in the same form, as the records that they stand for. */
import { REASONS, STATES, TRIGGERS } from './codes.ts';
import type { DeliverySummary } from './ledger.ts';
import { type Keyring, unseal } from './seal.ts';
import type { AttemptRecord, AttemptResult, DeliveryRecord } from './store.ts';

export interface DeliveryRow {
  readonly project: string;
  readonly app: string;
  readonly target: string;
  /** Of its present or last round, where that goes elsewhere. */
  readonly other_target: string | null;
  readonly status: number;
  readonly created_at: number;
  readonly state: number;
  readonly reason: number | null;
  readonly round: number;
  /** Not null while it is pending. */
  readonly due_at: number | null;
  readonly settled_at: number | null;
}

/** One that is told with everything. */
export interface DeliveryDetailRow extends DeliveryRow {
  readonly traceparent: string | null;
}

/** One in a list, with what there is to tell of its attempts. */
export interface SummaryRow extends DeliveryRow {
  /** Attempts that have ended. */
  readonly attempts: number;
  readonly last_status: number | null;
  readonly last_error: string | null;
}

export const ATTEMPT_COLUMNS = `round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms,
  first_byte_ms, total_ms, status, error, target, headers, excerpt`;

export interface AttemptRow {
  readonly round: number;
  readonly number: number;
  readonly cause: number;
  readonly started_at: number;
  readonly queue_ms: number;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number;
  readonly status: number | null;
  readonly error: string | null;
  /** Where it went elsewhere. */
  readonly target: string | null;
  readonly headers: string | null;
  readonly excerpt: Uint8Array | null;
}

export function deliveryRecord(
  runId: string,
  row: DeliveryDetailRow,
  attempts: readonly AttemptRecord[],
): DeliveryRecord {
  const state = STATES[row.state]!;
  return {
    runId,
    projectId: row.project,
    app: row.app,
    target: row.target,
    statusCode: row.status,
    createdAt: row.created_at,
    state,
    ...(row.reason !== null && { reason: REASONS[row.reason]! }),
    round: row.round,
    ...(row.other_target !== null && { otherTarget: row.other_target }),
    ...(row.traceparent !== null && { traceparent: row.traceparent }),
    attempts,
    ...(state === 'pending' && { dueAt: row.due_at! }),
    ...(row.settled_at !== null && { settledAt: row.settled_at }),
  };
}

/** What is sealed with a delivery. */
export interface SealedRow {
  readonly key_id: string | null;
  readonly sealed: Uint8Array | null;
}

/** Whether it has a secret to be signed with, as far as that can be told. */
export function signedOf(row: SealedRow, runId: string, keyring: Keyring): Pick<DeliveryRecord, 'signed'> {
  const { key_id: keyId, sealed } = row;
  if (keyId === null || sealed === null) return { signed: false };
  const confidential = unseal({ keyId, sealed }, runId, keyring);
  return confidential === undefined ? {} : { signed: confidential.secret !== undefined };
}

export function deliverySummary(runId: string, row: SummaryRow): DeliverySummary {
  const state = STATES[row.state]!;
  return {
    runId,
    projectId: row.project,
    app: row.app,
    target: row.other_target ?? row.target,
    statusCode: row.status,
    createdAt: row.created_at,
    state,
    ...(row.reason !== null && { reason: REASONS[row.reason]! }),
    round: row.round,
    attempts: row.attempts,
    ...(row.last_status !== null && { lastStatus: row.last_status }),
    ...(row.last_error !== null && { lastError: row.last_error }),
    ...(state === 'pending' && { dueAt: row.due_at! }),
    ...(row.settled_at !== null && { settledAt: row.settled_at }),
  };
}

/** How much an attempt has of the receiver's answer. */
export function sizeOfAnswer({ headers = '', excerpt }: AttemptResult): number {
  return headers.length + (excerpt?.byteLength ?? 0);
}

export function attemptRecord(row: AttemptRow): AttemptRecord {
  return {
    round: row.round,
    number: row.number,
    trigger: TRIGGERS[row.cause]!,
    startedAt: row.started_at,
    timings: {
      queueMs: row.queue_ms,
      ...(row.dns_ms !== null && { dnsMs: row.dns_ms }),
      ...(row.connect_ms !== null && { connectMs: row.connect_ms }),
      ...(row.tls_ms !== null && { tlsMs: row.tls_ms }),
      ...(row.first_byte_ms !== null && { firstByteMs: row.first_byte_ms }),
      totalMs: row.total_ms,
    },
    ...(row.status !== null && { status: row.status }),
    ...(row.error !== null && { error: row.error }),
    ...(row.target !== null && { target: row.target }),
    ...(row.headers !== null && { headers: row.headers }),
    ...(row.excerpt !== null && { excerpt: row.excerpt }),
  };
}
