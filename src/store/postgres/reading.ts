/** What is read of deliveries: one with its attempts, the count of those pending. */
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import type { AttemptRecord, Backlog, DeliveryRecord } from '../store.ts';
import type { Database, Statement } from './connection.ts';

interface DeliveryRow {
  readonly project: string;
  readonly app: string;
  readonly target: string;
  readonly status: number;
  readonly created_at: number;
  /** Of the queue. */
  readonly due_at: number | null;
  readonly state: number | null;
  readonly reason: number | null;
  readonly round: number | null;
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

const DELIVERY: Statement = {
  text: `
    SELECT d.project, d.app, d.target, d.status, d.created_at, q.due_at, s.state, s.reason,
      coalesce(s.round, q.round) AS round, s.settled_at
    FROM afterword_deliveries d
    LEFT JOIN afterword_queue q ON q.id = d.id LEFT JOIN afterword_settled s ON s.id = d.id
    WHERE d.id = $1::uuid`,
};

const ATTEMPTS: Statement = {
  text: `
    SELECT round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms,
      status, error, excerpt
    FROM afterword_attempts WHERE id = $1::uuid ORDER BY round, number, started_at`,
};

const PENDING: Statement = {
  name: 'afterword_backlog',
  text: 'SELECT project, count(*)::int AS count FROM afterword_queue GROUP BY project',
};

/** Its times are by the database's clock. */
export async function findDelivery(database: Database, runId: string): Promise<DeliveryRecord | undefined> {
  const [row] = (await database.query<DeliveryRow>(DELIVERY, [runId])).rows;
  // Neither queued nor settled: it is being pruned at this moment.
  if (row === undefined || row.round === null) return undefined;
  const attempts = (await database.query<AttemptRow>(ATTEMPTS, [runId])).rows;
  return {
    runId,
    projectId: row.project,
    app: row.app,
    target: row.target,
    statusCode: row.status,
    createdAt: row.created_at,
    state: row.state === null ? 'pending' : STATES[row.state]!,
    ...(row.reason !== null && { reason: REASONS[row.reason]! }),
    round: row.round,
    attempts: attempts.map(attemptRecord),
    ...(row.state === null && row.due_at !== null && { dueAt: row.due_at }),
    ...(row.settled_at !== null && { settledAt: row.settled_at }),
  };
}

export async function countPending(database: Database): Promise<Backlog> {
  const { rows } = await database.query<{ project: string; count: number }>(PENDING);
  return { pending: new Map(rows.map(({ project, count }) => [project, count])) };
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
