/**
 * Deletes deliveries that settled long enough ago: whole days where all of a day is that old, which costs next
 * to nothing. Single ones only where the age asked for is too short for days to do, and in the default
 * partitions, which are never dropped.
 */
import { WRITING } from './by-index.ts';
import { type ConnectionOptions, type Database, type DatabasePool, withClient } from './connection.ts';
import { DAY_MS, dropDay, existingDays, PARTITIONED } from './partitions.ts';
import type { Persistence } from './persistence.ts';

/** Below this age, in milliseconds, single deliveries are deleted. */
const SHORT_AGE = 2 * DAY_MS;
/** Counting what a day has can take a while. */
const DROP_TIMEOUT_MS = 60_000;

export interface PruneOptions {
  readonly connection: ConnectionOptions;
  readonly database: DatabasePool;
  readonly persistence: Persistence;
}

export interface Pruner {
  /** Drops the days that were over before `before`, by the database's clock; tells how many deliveries. */
  days(before: number): Promise<number>;
  /** Deletes up to `limit` that settled before `before`; `age` is how long ago that is. */
  single(before: number, age: number, limit: number): Promise<number>;
}

export function createPruner({ connection, database, persistence }: PruneOptions): Pruner {
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
      return persistence.persist(() =>
        database.transaction(WRITING, writer => removeOldest(writer, table, before, limit)),
      );
    },
  };
}

/** Whoever is about to give one of them a new round is waited for, or waits and then does not find it. */
async function removeOldest(
  database: Database,
  table: string,
  before: number,
  limit: number,
): Promise<number> {
  const text = `
    SELECT id FROM ${table} WHERE settled_at < $1::float8 ORDER BY settled_at LIMIT $2::int
    FOR UPDATE SKIP LOCKED`;
  const { rows } = await database.query<{ id: string }>({ text }, [before, limit]);
  if (rows.length === 0) return 0;
  const ids = rows.map(({ id }) => id);
  for (const from of PARTITIONED)
    await database.query({ text: `DELETE FROM ${from} WHERE id = ANY ($1::uuid[])` }, [ids]);
  return ids.length;
}
