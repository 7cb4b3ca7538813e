/**
 * Starts of runs, counted in the queue before an app is called and taken back where none was reached, both only
 * while this node holds the run; and the mark of those that are to be cancelled.
 */
import type { RunBeginning, RunRef } from '../runs.ts';
import type { Database, Statement } from './connection.ts';
import { givenRows } from './given.ts';
import { HELD, HOLD, holdValues, type RunHold, runRefOf } from './run-hold.ts';

export interface RunStart extends RunHold {
  /** By the database's clock. */
  readonly startedAt: number;
}

/** The start under way is known by its beginning, so counting it twice counts it once. */
const BEGIN: Statement = {
  name: 'afterword_begin_runs',
  text: `
    UPDATE afterword_run_queue q
    SET starts = q.starts + CASE WHEN q.cancelled OR q.begun_at = g.started_at THEN 0 ELSE 1 END,
      begun_at = CASE WHEN q.cancelled THEN q.begun_at ELSE g.started_at END
    FROM ${givenRows([...HOLD, ['started_at', 'float8']], 1)}
    WHERE ${HELD} RETURNING g.id, g.owner, g.claim, q.cancelled`,
};

const WITHDRAW: Statement = {
  name: 'afterword_withdraw_runs',
  text: `
    UPDATE afterword_run_queue q
    SET starts = q.starts - CASE WHEN q.begun_at IS NULL THEN 0 ELSE 1 END, begun_at = NULL,
      owner = NULL, claim = 0
    FROM ${givenRows(HOLD, 1)}
    WHERE ${HELD} RETURNING g.id, g.owner, g.claim`,
};

const MARK: Statement = {
  text: `
    UPDATE afterword_run_queue SET cancelled = true WHERE id = $1::uuid AND project = $2::text RETURNING id`,
};

const MARKED: Statement = {
  name: 'afterword_marked_runs',
  text: `
    SELECT id, owner, claim FROM afterword_run_queue
    WHERE cancelled AND owner >= $1::int AND owner <= $1::int ORDER BY owner, id`,
};

export function runStartRunner(database: Database) {
  return async (starts: readonly RunStart[]): Promise<readonly RunBeginning[]> => {
    const began = starts.map(({ startedAt }) => startedAt);
    const { rows } = await database.query<RunHold & { cancelled: boolean }>(BEGIN, [
      ...holdValues(starts),
      began,
    ]);
    const held = new Map(rows.map(row => [runRefOf(row), row.cancelled ? 'cancelled' : 'begun'] as const));
    return starts.map(start => held.get(runRefOf(start)) ?? 'lost');
  };
}

/**
 * Each result: whether the run was this node's to give up. Once it is given up nothing tells whose it was; so
 * where the answer may have been lost, one that is not held is taken for given up.
 */
export function runWithdrawRunner(database: Database, onUnowned: () => void) {
  return async (holds: readonly RunHold[], replay: boolean): Promise<readonly boolean[]> => {
    const { rows } = await database.query<RunHold>(WITHDRAW, holdValues(holds));
    const given = new Set(rows.map(runRefOf));
    if (replay || given.size > 0) onUnowned();
    return holds.map(hold => replay || given.has(runRefOf(hold)));
  };
}

/** False where the project has no such run that has not ended. */
export async function markRun(database: Database, projectId: string, runId: string): Promise<boolean> {
  return (await database.query(MARK, [runId, projectId])).rows.length > 0;
}

/** Those of an owner. */
export async function markedRuns(database: Database, owner: number): Promise<RunRef[]> {
  return (await database.query<RunHold>(MARKED, [owner])).rows.map(runRefOf);
}
