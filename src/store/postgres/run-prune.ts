/** Deletes runs that ended long enough ago, and keys whose day is over. */
import { IDEMPOTENCY_MS } from '../runs.ts';
import type { Database, Statement } from './connection.ts';

/** Other nodes do the same at the same time; each takes what no other has. */
const PRUNE: Statement = {
  text: `
    WITH old AS (
      SELECT id FROM afterword_run_ends WHERE ended_at < $1::float8
      ORDER BY ended_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    ), parts AS (
      DELETE FROM afterword_run_parts WHERE id = ANY (ARRAY(SELECT id FROM old))
    ), runs AS (
      DELETE FROM afterword_runs WHERE id = ANY (ARRAY(SELECT id FROM old))
    )
    DELETE FROM afterword_run_ends WHERE id = ANY (ARRAY(SELECT id FROM old))`,
};

const PRUNE_KEYS: Statement = {
  text: `
    DELETE FROM afterword_run_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM afterword_run_keys
      WHERE made_at <= extract(epoch FROM clock_timestamp()) * 1000 - ${IDEMPOTENCY_MS}
      ORDER BY made_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    ))`,
};

/** Up to `limit` that ended before `before`, by the database's clock; tells how many. */
export async function pruneRuns(database: Database, before: number, limit: number): Promise<number> {
  return (await database.query(PRUNE, [before, limit])).rowCount ?? 0;
}

export async function pruneKeys(database: Database, limit: number): Promise<void> {
  await database.query(PRUNE_KEYS, [limit]);
}
