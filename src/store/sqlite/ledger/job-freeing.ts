/** Jobs of owners that are gone, or that give them up, are for any node to go on with. */
import type { DatabaseSync } from 'node:sqlite';

/** `whose` says which of the owned jobs, by the number of the present owner. */
export function jobFreeing(db: DatabaseSync, whose: string): (owner: number) => void {
  const free = db.prepare(
    `UPDATE jobs INDEXED BY jobs_running SET owner = NULL, claim = NULL WHERE ended_at IS NULL AND ${whose}`,
  );
  return owner => void free.run(owner);
}
