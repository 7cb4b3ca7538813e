/**
 * What the statements read of the queues, whatever the planner knows of them. Its counts are those of the last
 * vacuum, and a queue may have been empty then and have thousands now, or the other way round; plans that are
 * right for the one are a hundred times too slow for the other.
 */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { attempt, newDelivery, newRun } from '../samples.ts';
import { openTestStore, untilGone } from './opening.ts';

const BACKLOG = 4_000;
const TAKEN = 400;
/** Of each statement. */
const BATCHES = [...Array.from({ length: 20 }, () => 5), 300];

/** What a queue has, and what becomes of `TAKEN` of it. */
interface Kind {
  readonly queue: string;
  leave(store: Store): Promise<unknown>;
  /** Tells how many. */
  work(store: Store): Promise<number>;
}

const DELIVERIES: Kind = {
  queue: 'afterword_queue',
  leave: store => store.insert(newDelivery({ owned: false })),
  async work(store) {
    const held = await store.claim(TAKEN);
    const count = held.length;
    for (const size of BATCHES) {
      const batch = held.splice(0, size);
      await Promise.all(batch.map(({ ref }) => store.beginAttempt(ref, Date.now())));
      await Promise.all(batch.map(({ ref }) => store.endAttempt(ref, attempt(1), { state: 'delivered' })));
    }
    return count;
  },
};

const END = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 } as const;
const RESULT = { result: { bytes: Buffer.from('{}') } };
const RUNS: Kind = {
  queue: 'afterword_run_queue',
  leave: store => store.runs.insert(newRun({ app: Math.random() < 0.5 ? 'hello' : 'other' })),
  async work(store) {
    let count = 0;
    for (const limit of BATCHES) {
      const batch = await store.runs.claim([{ projectId: 'p-demo', app: 'hello', limit, each: false }]);
      await Promise.all(batch.map(({ ref }) => store.runs.begin(ref, Date.now())));
      await Promise.all(batch.map(({ ref }) => store.runs.end(ref, END, RESULT)));
      count += batch.length;
    }
    expect(await store.runs.toCancel()).toEqual([]);
    expect(await store.runs.oldestQueuedAt()).toBeDefined();
    expect(await store.runs.claimStrays(['hello', 'other'].map(inDemo), Date.now(), 10)).toEqual([]);
    return count;
  },
};

const inDemo = (app: string) => ({ projectId: 'p-demo', app });

async function leave(database: Database, kind: Kind, count: number): Promise<void> {
  const store = await openTestStore({ url: database.url });
  await Promise.all(Array.from({ length: count }, () => kind.leave(store)));
  await store.close();
  await untilGone(database);
}

const count = (database: Database, { queue }: Kind) => database.query(`VACUUM (ANALYZE) ${queue}`);

/** Rows of the queue that were fetched. A connection tells its own when it ends, so the stores are closed. */
async function rowsRead(database: Database, { queue }: Kind): Promise<number> {
  const [row] = await database.query<{ read: number }>(
    `SELECT (seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_user_tables WHERE relname = $1`,
    [queue],
  );
  return row!.read;
}

describe.each<[counted: string, prepare: (database: Database, kind: Kind) => Promise<void>]>([
  ['never', (database, kind) => leave(database, kind, BACKLOG)],
  [
    'while the queue was empty',
    async (database, kind) => {
      await leave(database, kind, 0);
      await count(database, kind);
      await leave(database, kind, BACKLOG);
    },
  ],
  [
    'while it was full',
    async (database, kind) => {
      await leave(database, kind, BACKLOG);
      await count(database, kind);
    },
  ],
])('a queue that was counted %s', (_counted, prepare) => {
  it.each([
    ['deliveries', DELIVERIES],
    ['runs', RUNS],
  ])('of %s is read only where a statement needs it', async (_name, kind) => {
    const database = await createDatabase();
    await prepare(database, kind);
    await database.query('SELECT pg_stat_reset()');

    const store = await openTestStore({ url: database.url, connections: 2 });
    expect(await kind.work(store)).toBe(TAKEN);
    await store.close();
    await untilGone(database);

    const atTheStart = BACKLOG; // which keys there are
    expect(await rowsRead(database, kind)).toBeLessThan(atTheStart + TAKEN * 5);
  });
});
