/**
 * Ends a pending delivery by hand, whoever owns it: it leaves the queue, so that its owner can do nothing more
 * with it. An attempt under way is recorded, since nobody else will.
 */
import { STATES } from '../codes.ts';
import type { Cancelled } from '../ledger.ts';
import type { Database, Statement } from './connection.ts';
import { CANCELLED } from './cut-off.ts';

const CANCEL: Statement = {
  text: `
    WITH ended AS (
      DELETE FROM afterword_queue WHERE id = $1::uuid AND ($3::text IS NULL OR project = $3::text) RETURNING *
    ), recorded AS (
      INSERT INTO afterword_attempts (id, round, number, cause, started_at, queue_ms, total_ms, error, target)
      SELECT id, round, attempts, cause, in_flight, 0, greatest(0, $2::float8 - in_flight), '${CANCELLED}',
        other_target
      FROM ended WHERE in_flight IS NOT NULL ON CONFLICT DO NOTHING
    )
    INSERT INTO afterword_settled (id, state, round, settled_at, project, app, host, last_status, other_target)
    SELECT id, ${STATES.indexOf('cancelled')}, round, $2::float8, project, app, host,
      CASE WHEN in_flight IS NULL THEN last_status END, other_target
    FROM ended RETURNING id`,
};

const ENDED: Statement = {
  text: `
    SELECT s.state FROM afterword_deliveries d LEFT JOIN afterword_settled s ON s.id = $1::uuid
    WHERE d.id = $1::uuid AND ($2::text IS NULL OR d.project = $2::text)`,
};

export interface Cancellation {
  readonly runId: string;
  /** All projects where undefined. */
  readonly projectId: string | undefined;
  /** By the database's clock. */
  readonly at: number;
}

/** Where the answer may have been lost, one that is cancelled is taken for cancelled now. */
export async function cancelDelivery(
  database: Database,
  { runId, at, projectId }: Cancellation,
  replay: boolean,
): Promise<Cancelled> {
  if ((await database.query(CANCEL, [runId, at, projectId])).rows.length > 0) return 'cancelled';
  const [ended] = (await database.query<{ state: number | null }>(ENDED, [runId, projectId])).rows;
  if (ended === undefined) return 'not_found';
  return replay && ended.state === STATES.indexOf('cancelled') ? 'cancelled' : 'settled';
}
