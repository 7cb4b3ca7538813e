/** The lanes of writes, one for each kind, and what their faults say about the store. */
import type { Logger } from '../../log.ts';
import type { Availability } from '../availability.ts';
import type { RunBeginning, RunInsertion } from '../runs.ts';
import { type Counting, countingRunner, type Ending, endingRunner, sizeOfEnding } from './attempts.ts';
import type { Database } from './connection.ts';
import { type Insertion, insertRunner, sizeOfInsertion } from './insert.ts';
import { createLane, type Lane } from './lane.ts';
import type { Persistence } from './persistence.ts';
import { type RunEnding, runEndRunner, sizeOfRunEnding } from './run-end.ts';
import type { RunHold } from './run-hold.ts';
import { type NewRunRow, runInsertRunner, sizeOfRun } from './run-insert.ts';
import { type RunStart, runStartRunner, runWithdrawRunner } from './run-starts.ts';
import type { Tenure } from './tenure.ts';

/** Why the store may be unavailable. */
export type Obstacle =
  | 'inserts_fail'
  | 'counts_fail'
  | 'outcomes_fail'
  | 'run_inserts_fail'
  | 'run_starts_fail'
  | 'run_withdrawals_fail'
  | 'run_ends_fail'
  | 'beats_fail';

/** Of one statement. */
const ROWS = 500;

export interface Lanes {
  readonly inserts: Lane<Insertion, string>;
  readonly counts: Lane<Counting, boolean>;
  readonly outcomes: Lane<Ending, boolean>;
  readonly runs: RunLanes;
}

export interface RunLanes {
  readonly inserts: Lane<NewRunRow, RunInsertion>;
  readonly starts: Lane<RunStart, RunBeginning>;
  readonly withdrawals: Lane<RunHold, boolean>;
  readonly ends: Lane<RunEnding, boolean>;
}

export interface LanesOptions {
  readonly database: Database;
  readonly persistence: Persistence;
  readonly tenure: Pick<Tenure, 'current' | 'owner'>;
  readonly availability: Availability<Obstacle>;
  readonly log: Logger;
  /** Deliveries or runs were left without an owner. */
  readonly onUnowned: () => void;
}

export function createLanes({
  database,
  persistence,
  tenure,
  availability,
  log,
  onUnowned,
}: LanesOptions): Lanes {
  const owner = () => tenure.owner;
  const sureOwner = () => (tenure.current === undefined ? undefined : tenure.owner);
  const shared = (kind: string, obstacle: Obstacle) => ({
    length: ROWS,
    persistence,
    onTry: (fault: string | undefined) => availability.set(obstacle, fault),
    onGivenUp: (operations: number, error: unknown) =>
      log.error(
        { event: 'store_closed_unwritten', kind, operations, err: error },
        'the store closes with operations that could not be written',
      ),
  });
  return {
    inserts: createLane({
      ...shared('insert', 'inserts_fail'),
      width: 2,
      run: insertRunner({ database, owner: sureOwner, onUnowned }),
      sizeOf: sizeOfInsertion,
    }),
    counts: createLane({
      ...shared('count', 'counts_fail'),
      width: 1,
      run: countingRunner({ database, owner }),
      sizeOf: () => 0,
    }),
    outcomes: createLane({
      ...shared('outcome', 'outcomes_fail'),
      width: 1,
      run: endingRunner({ database, owner }),
      sizeOf: sizeOfEnding,
    }),
    runs: {
      inserts: createLane({
        ...shared('run', 'run_inserts_fail'),
        width: 2,
        run: runInsertRunner({ database, onUnowned }),
        sizeOf: sizeOfRun,
      }),
      starts: createLane({
        ...shared('run_start', 'run_starts_fail'),
        width: 1,
        run: runStartRunner(database),
        sizeOf: () => 0,
      }),
      withdrawals: createLane({
        ...shared('run_withdrawal', 'run_withdrawals_fail'),
        width: 1,
        run: runWithdrawRunner(database, onUnowned),
        sizeOf: () => 0,
      }),
      ends: createLane({
        ...shared('run_end', 'run_ends_fail'),
        width: 1,
        run: runEndRunner({ database, owner: sureOwner, onUnowned }),
        sizeOf: sizeOfRunEnding,
      }),
    },
  };
}
