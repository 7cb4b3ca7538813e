/** What is read of deliveries: one with its attempts, the count of those pending, with that of runs. */
import { STATES } from '../codes.ts';
import {
  ATTEMPT_COLUMNS,
  type AttemptRow,
  attemptRecord,
  type DeliveryDetailRow,
  deliveryRecord,
  type SealedRow,
  signedOf,
} from '../rows.ts';
import type { Keyring } from '../seal.ts';
import type { Backlog, DeliveryRecord } from '../store.ts';
import type { Database, Statement } from './connection.ts';

const DELIVERY: Statement = {
  text: `
    SELECT d.project, d.app, d.target, d.status, d.created_at, q.due_at,
      coalesce(s.state, ${STATES.indexOf('pending')}) AS state, s.reason,
      coalesce(s.round, q.round) AS round, s.settled_at, d.traceparent,
      coalesce(s.other_target, q.other_target) AS other_target, d.key_id, d.sealed
    FROM afterword_deliveries d
    LEFT JOIN afterword_queue q ON q.id = d.id LEFT JOIN afterword_settled s ON s.id = d.id
    WHERE d.id = $1::uuid AND (q.id IS NOT NULL OR s.id IS NOT NULL) -- neither: it is being pruned`,
};

const ATTEMPTS: Statement = {
  text: `
    SELECT ${ATTEMPT_COLUMNS}
    FROM afterword_attempts WHERE id = $1::uuid ORDER BY round, number, started_at`,
};

const PENDING: Statement = {
  name: 'afterword_backlog',
  text: `
    SELECT project, count(*)::int AS count
    FROM (SELECT project FROM afterword_queue UNION ALL SELECT project FROM afterword_run_queue) pending
    GROUP BY project`,
};

/** Its times are by the database's clock. */
export async function findDelivery(
  database: Database,
  runId: string,
  keyring: Keyring,
): Promise<DeliveryRecord | undefined> {
  const [row] = (await database.query<DeliveryDetailRow & SealedRow>(DELIVERY, [runId])).rows;
  if (row === undefined) return undefined;
  const attempts = (await database.query<AttemptRow>(ATTEMPTS, [runId])).rows;
  return { ...deliveryRecord(runId, row, attempts.map(attemptRecord)), ...signedOf(row, runId, keyring) };
}

export async function countPending(database: Database): Promise<Backlog> {
  const { rows } = await database.query<{ project: string; count: number }>(PENDING);
  return { pending: new Map(rows.map(({ project, count }) => [project, count])) };
}
