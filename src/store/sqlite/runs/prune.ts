/** Deletes runs that ended long enough ago, and keys whose day is over. Files of results go after the commit. */
import type { DatabaseSync } from 'node:sqlite';
import { formatRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';

export function pruneRunsHandler(db: DatabaseSync): Handlers['pruneRuns'] {
  const old = db.prepare(
    `SELECT id, run_id, file_size FROM ended_runs INDEXED BY ended_runs_ended
     WHERE ended_at < ? ORDER BY ended_at LIMIT ?`,
  );
  const remove = db.prepare('DELETE FROM ended_runs WHERE id = ?');
  return ({ before, limit }) => {
    const rows = old.all(before, limit);
    for (const row of rows) remove.run(row['id'] as number);
    const files = rows.filter(row => row['file_size'] !== null);
    return { count: rows.length, files: files.map(row => formatRunId(row['run_id'] as Uint8Array)) };
  };
}

export function pruneRunKeysHandler(db: DatabaseSync): Handlers['pruneRunKeys'] {
  const remove = db.prepare(
    `DELETE FROM run_keys WHERE (project, key) IN (
       SELECT project, key FROM run_keys INDEXED BY run_keys_made WHERE made_at <= ? LIMIT ?)`,
  );
  return ({ before, limit }) => Number(remove.run(before, limit).changes);
}
