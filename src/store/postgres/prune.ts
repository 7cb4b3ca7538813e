/**
 * Deletes deliveries that settled long enough ago: whole days where all of a day is that old, which costs next
 * to nothing. Single ones only where the age asked for is too short for days to do, and in the default
 * partitions, which are never dropped.
 */
import { type ConnectionOptions, type Database, withClient } from './connection.ts';
import { DAY_MS, dropDay, existingDays, PARTITIONED } from './partitions.ts';
import type { Persistence } from './persistence.ts';

/** Below this age, in milliseconds, single deliveries are deleted. */
const SHORT_AGE = 2 * DAY_MS;
/** Counting what a day has can take a while. */
const DROP_TIMEOUT_MS = 60_000;

export interface PruneOptions {
  readonly connection: ConnectionOptions;
  readonly database: Database;
  readonly persistence: Persistence;
}

export interface Pruner {
  /** Drops the days that were over before `before`, by the database's clock; tells how many deliveries. */
  days(before: number): Promise<number>;
  /** Deletes up to `limit` that settled before `before`; `age` is how long ago that is. */
  single(before: number, age: number, limit: number): Promise<number>;
}

export function createPruner({ connection, database, persistence }: PruneOptions): Pruner {
  async function remove(ids: readonly string[]): Promise<number> {
    let count = 0;
    // What says that it is there goes last, so that what is cut off is found again.
    for (const table of PARTITIONED) {
      const text = `DELETE FROM ${table} WHERE id = ANY ($1::uuid[])`;
      const { rowCount } = await persistence.persist(() => database.query({ text }, [ids]));
      count = rowCount ?? 0;
    }
    return count;
  }

  return {
    async days(before) {
      const days = await persistence.persist(() => existingDays(database));
      const over = days.filter(({ start }) => start + DAY_MS <= before);
      if (over.length === 0) return 0;
      return persistence.persist(() =>
        withClient({ connection, timeoutMs: DROP_TIMEOUT_MS }, async client => {
          let count = 0;
          for (const day of over) count += await dropDay(client, day, before);
          return count;
        }),
      );
    },

    async single(before, age, limit) {
      const table = age < SHORT_AGE ? 'afterword_settled' : 'afterword_settled_default';
      const text = `
        SELECT id FROM ${table} WHERE settled_at < $1::float8 ORDER BY settled_at LIMIT $2::int`;
      const { rows } = await persistence.persist(() =>
        database.query<{ id: string }>({ text }, [before, limit]),
      );
      return rows.length === 0 ? 0 : remove(rows.map(({ id }) => id));
    },
  };
}
