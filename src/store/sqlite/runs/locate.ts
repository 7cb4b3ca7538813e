/** Where a run is: its key, among those that have not ended or those that have. */
import type { DatabaseSync } from 'node:sqlite';
import { parseRunId } from '../key.ts';

export interface Locate {
  /** Undefined where no such run waits or runs. */
  live(runId: string): number | undefined;
  /** Undefined where no such run has ended, or it is deleted. */
  ended(runId: string): number | undefined;
}

export function createLocate(db: DatabaseSync): Locate {
  const among = (table: string) => {
    const select = db.prepare(`SELECT id FROM ${table} WHERE id BETWEEN ? AND ? AND run_id = ?`);
    return (runId: string) => {
      const key = parseRunId(runId);
      return key && (select.get(key.first, key.last, key.bytes)?.['id'] as number | undefined);
    };
  };
  return { live: among('run_requests'), ended: among('ended_runs') };
}
