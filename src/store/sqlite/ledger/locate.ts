/** Where a delivery is: its key, by its run, and its run, by its key. */
import type { DatabaseSync } from 'node:sqlite';
import { formatRunId, parseRunId } from '../key.ts';

export interface LocateDelivery {
  /** Undefined where there is none. */
  key(runId: string): number | undefined;
  runId(key: number): string | undefined;
}

export function createLocateDelivery(db: DatabaseSync): LocateDelivery {
  const byRun = db.prepare('SELECT id FROM contents WHERE id BETWEEN ? AND ? AND run_id = ?');
  const byKey = db.prepare('SELECT run_id FROM contents WHERE id = ?');
  return {
    key(runId) {
      const range = parseRunId(runId);
      return range && (byRun.get(range.first, range.last, range.bytes)?.['id'] as number | undefined);
    },
    runId(key) {
      const row = byKey.get(key);
      return row && formatRunId(row['run_id'] as Uint8Array);
    },
  };
}
