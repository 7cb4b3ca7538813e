/** Answers of the database that are lost, so that nobody knows whether an operation was done. */
import { setTimeout } from 'node:timers/promises';
import { LEASE } from '../../../src/store/postgres/lease.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { until } from '../../support/waiting.ts';
import { temporaryDirectory } from '../samples.ts';
import { openCuttable } from './opening.ts';

export async function losingRig() {
  const database = await createDatabase();
  const spoolDir = temporaryDirectory();
  const { relay, store } = await openCuttable(database, { spoolDir, lease: LEASE });

  /**
   * Begins the operation, and loses its answer once `done` can be seen in the database. Of one that has several
   * steps, the answer is that to the step with `last` in it.
   */
  async function losing<T>(
    operation: () => Promise<T>,
    done: () => Promise<boolean>,
    last?: string,
  ): Promise<T> {
    await store.backlog(); // there is a connection, so that nothing is held but the answer
    relay.holdAnswers(last);
    const result = operation();
    await until(done);
    relay.cut();
    return result;
  }
  return { database, store, spoolDir, losing };
}

/** Ends connections of the nodes at random moments, until it is told to end. */
export function breakingConnections(database: Database): () => Promise<void> {
  const done = new AbortController();
  const breaking = (async () => {
    while (!done.signal.aborted) {
      await setTimeout(Math.random() * 100);
      await database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'afterword' AND datname = current_database() AND random() < 0.5`,
      );
    }
  })();
  return async () => {
    done.abort();
    await breaking;
  };
}
