/** What is read of deliveries: one with its attempts, a body, the count of those pending. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { AttemptRecord, DeliveryRecord } from '../store.ts';
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import { formatRunId, KEYS_PER_MS, parseRunId } from './key.ts';
import type { Handlers } from './protocol.ts';

export interface DeliveryRow {
  readonly id: number;
  readonly project: string;
  readonly app: string;
  readonly target: string;
  readonly status: number;
  readonly created_at: number;
  readonly state: number;
  readonly reason: number | null;
  readonly round: number;
  readonly due_at: number;
  readonly settled_at: number | null;
}

interface AttemptRow {
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
  readonly excerpt: Uint8Array | null;
}

export function findHandler(db: DatabaseSync): Handlers['find'] {
  const delivery = db.prepare(
    `SELECT d.id, d.project, c.app, c.target, c.status, c.created_at, d.state, d.reason, d.round, d.due_at,
       d.settled_at
     FROM contents c JOIN deliveries d ON d.id = c.id WHERE c.id BETWEEN ? AND ? AND c.run_id = ?`,
  );
  const attemptsOf = attemptsReader(db);
  return ({ runId }) => {
    const key = parseRunId(runId);
    if (key === undefined) return undefined;
    const row = delivery.get(key.first, key.first + KEYS_PER_MS - 1, key.bytes) as DeliveryRow | undefined;
    if (row === undefined) return undefined;
    return deliveryRecord(runId, row, attemptsOf(row.id));
  };
}

/** The attempts of a delivery, in their order. */
export function attemptsReader(db: DatabaseSync): (id: number) => AttemptRecord[] {
  const attempts = db.prepare(
    `SELECT round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms,
       status, error, excerpt
     FROM attempts WHERE delivery = ? ORDER BY ordinal`,
  );
  return id => (attempts.all(id) as unknown as AttemptRow[]).map(attemptRecord);
}

export function bodyHandler(db: DatabaseSync, spoolDir: string): Handlers['body'] {
  const select = db.prepare('SELECT run_id, file_size, body FROM contents WHERE id = ?');
  return ({ id }) => {
    const row = select.get(id);
    if (row === undefined) return undefined;
    if (row['file_size'] === null) return { bytes: (row['body'] ?? new Uint8Array()) as Uint8Array }; // no bytes are NULL
    const runId = formatRunId(row['run_id'] as Uint8Array);
    return { file: join(spoolDir, runId), size: row['file_size'] as number };
  };
}

export function backlogHandler(db: DatabaseSync): Handlers['backlog'] {
  const count = db.prepare(
    `SELECT project, count(*) AS count FROM deliveries INDEXED BY deliveries_pending
     WHERE state = 0 GROUP BY project`,
  );
  return () => ({
    pending: new Map(count.all().map(row => [row['project'] as string, row['count'] as number])),
  });
}

export function spooledHandler(db: DatabaseSync): Handlers['spooled'] {
  const spooled = db.prepare(
    'SELECT 1 FROM contents WHERE id BETWEEN ? AND ? AND run_id = ? AND file_size IS NOT NULL',
  );
  return ({ runIds }) =>
    runIds.filter(runId => {
      const key = parseRunId(runId);
      return key && spooled.get(key.first, key.first + KEYS_PER_MS - 1, key.bytes) !== undefined;
    });
}

export function deliveryRecord(
  runId: string,
  row: DeliveryRow,
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
    attempts,
    ...(state === 'pending' && { dueAt: row.due_at }),
    ...(row.settled_at !== null && { settledAt: row.settled_at }),
  };
}

function attemptRecord(row: AttemptRow): AttemptRecord {
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
    ...(row.excerpt !== null && { excerpt: row.excerpt }),
  };
}
