/**
 * One batch, one transaction. A fault of the environment undoes the batch as a whole, to be tried again; an
 * operation that fails by itself takes no other with it.
 */
import type { Database } from './database.ts';
import { describe, isEnvironmental } from './faults.ts';
import type { Answer, Handlers, Kind, Operation, Outcome } from './protocol.ts';

export interface Batch {
  readonly operations: readonly Operation[];
  readonly replay: boolean;
}

export type RunBatch = (batch: Batch) => Answer;

export function createBatchRunner({ db, owner: own }: Database, handlers: Handlers): RunBatch {
  const run = <K extends Kind>(
    { kind, args, blobs, owner = own }: Operation<K>,
    replay: boolean,
  ): Outcome => ({ value: handlers[kind](args, blobs, replay, owner) });

  function transact(work: () => Outcome[]): Answer {
    db.exec('BEGIN IMMEDIATE');
    try {
      const outcomes = work();
      db.exec('COMMIT');
      return { outcomes };
    } catch (error) {
      // Some faults make SQLite roll back by itself.
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }

  /** A savepoint costs as much as a small operation, so it is used only when one is known to fail. */
  function isolate(operation: Operation, replay: boolean): Outcome {
    db.exec('SAVEPOINT operation');
    try {
      const outcome = run(operation, replay);
      db.exec('RELEASE operation');
      return outcome;
    } catch (error) {
      if (isEnvironmental(error)) throw error;
      db.exec('ROLLBACK TO operation; RELEASE operation');
      return { error: describe(error) };
    }
  }

  return ({ operations, replay }) => {
    try {
      return transact(() => operations.map(operation => run(operation, replay)));
    } catch (error) {
      if (isEnvironmental(error)) return { fault: describe(error) };
    }
    try {
      return transact(() => operations.map(operation => isolate(operation, replay)));
    } catch (error) {
      if (isEnvironmental(error)) return { fault: describe(error) };
      return { outcomes: operations.map(() => ({ error: describe(error) })) };
    }
  };
}
