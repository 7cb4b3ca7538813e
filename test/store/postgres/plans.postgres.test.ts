/**
 * What the statements read of the queue, whatever the planner knows of it. Its counts are those of the last
 * vacuum, and the queue may have been empty then and have thousands now, or the other way round; plans that are
 * right for the one are a hundred times too slow for the other.
 */
import { describe, expect, it } from 'vitest';
import type { PendingDelivery, Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { attempt, newDelivery } from '../samples.ts';
import { openTestStore } from './opening.ts';

const BACKLOG = 4_000;
const TAKEN = 400;
/** Of each statement. */
const BATCHES = [...Array.from({ length: 20 }, () => 5), 300];

async function leave({ url }: Database, count: number): Promise<void> {
  const store = await openTestStore({ url });
  await Promise.all(Array.from({ length: count }, () => store.insert(newDelivery({ owned: false }))));
  await store.close();
}

const count = (database: Database) => database.query('VACUUM (ANALYZE) afterword_queue');

/** Rows of the queue that were fetched. A connection tells its own when it ends, so the stores are closed. */
async function rowsRead(database: Database): Promise<number> {
  const [row] = await database.query<{ read: number }>(
    `SELECT (seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_user_tables
     WHERE relname = 'afterword_queue'`,
  );
  return row!.read;
}

async function send(store: Store, held: readonly PendingDelivery[]): Promise<void> {
  await Promise.all(held.map(({ ref }) => store.beginAttempt(ref, Date.now())));
  await Promise.all(held.map(({ ref }) => store.endAttempt(ref, attempt(1), { state: 'delivered' })));
}

describe.each<[counted: string, prepare: (database: Database) => Promise<void>]>([
  ['never', database => leave(database, BACKLOG)],
  [
    'while the queue was empty',
    async database => {
      await leave(database, 0);
      await count(database);
      await leave(database, BACKLOG);
    },
  ],
  [
    'while it was full',
    async database => {
      await leave(database, BACKLOG);
      await count(database);
    },
  ],
])('a queue that was counted %s', (_counted, prepare) => {
  it('is read only where a statement needs it', async () => {
    const database = await createDatabase();
    await prepare(database);
    await database.query('SELECT pg_stat_reset()');

    const store = await openTestStore({ url: database.url, connections: 2 });
    const held = await store.claim(TAKEN);
    expect(held).toHaveLength(TAKEN);
    for (const size of BATCHES) await send(store, held.splice(0, size));
    await store.close();

    const atTheStart = BACKLOG; // which keys there are
    expect(await rowsRead(database)).toBeLessThan(atTheStart + TAKEN * 5);
  });
});
