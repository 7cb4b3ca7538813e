/** Runs of owners that are gone, or that give them up, are queued again. Starts that were counted stay counted. */
import type { DatabaseSync } from 'node:sqlite';

/** `whose` says which of the owned runs, by the number of the present owner. Tells how many were freed. */
export function runFreeing(db: DatabaseSync, whose: string): (owner: number, limit: number) => number {
  const free = db.prepare(
    `UPDATE live_runs SET owner = NULL, claim = NULL, begun = 0 WHERE id IN (
       SELECT id FROM live_runs INDEXED BY live_runs_owned WHERE ${whose} LIMIT ?)`,
  );
  return (owner, limit) => Number(free.run(owner, limit).changes);
}
