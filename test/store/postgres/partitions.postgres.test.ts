/** The days' partitions: made ahead, chosen by the run id, dropped as a whole. */
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { systemClock } from '../../../src/clock.ts';
import { DAY_MS, dayOf, firstId } from '../../../src/store/postgres/partitions.ts';
import type { Store } from '../../../src/store/store.ts';
import { createDatabase, createEmptyDatabase, type Database } from '../../support/postgres.ts';
import { attempt, newDelivery, runIdAt } from '../samples.ts';
import { openTestStore } from './opening.ts';

const TABLES = ['deliveries', 'body_parts', 'attempts', 'settled'];

async function daysOf(database: Database, table: string): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'afterword_${table}'::regclass ORDER BY 1`,
  );
  return rows.map(({ name }) => name.replace(`afterword_${table}_`, ''));
}

async function settle(store: Store, runId: string): Promise<void> {
  const ref = await store.insert({ ...newDelivery({ runId }), begunAt: Date.now() });
  await store.endAttempt(ref, attempt(1), { state: 'delivered' });
}

/** As if all that settled so far had settled `ms` earlier. */
const age = (database: Database, ms: number) =>
  database.query('UPDATE afterword_settled SET settled_at = settled_at - $1', [ms]);

const suffix = (ms: number) => dayOf(ms).suffix;

/** A day that has no partition yet gets one, as if it had been made in its time. */
async function makeDay(database: Database, at: number): Promise<void> {
  const { start } = dayOf(at);
  for (const table of TABLES) {
    await database.query(
      `CREATE TABLE afterword_${table}_${suffix(at)} PARTITION OF afterword_${table}
       FOR VALUES FROM ('${firstId(start)}') TO ('${firstId(start + DAY_MS)}')`,
    );
  }
}

describe('partitions', () => {
  it('are there for yesterday and the days to come, once for all nodes', async () => {
    const database = await createEmptyDatabase();
    await openTestStore(database);
    await openTestStore(database);
    const now = Date.now();
    const days = [-1, 0, 1, 2, 3].map(offset => suffix(now + offset * DAY_MS));
    for (const table of TABLES) {
      const made = (await daysOf(database, table)).filter(day => day !== 'default');
      // The test may have begun on the day before.
      expect(made.slice(0, 5).every(day => days.includes(day) || day < days[0]!)).toBe(true);
      expect(made.length).toBeGreaterThanOrEqual(5);
    }
  });

  it('take deliveries by the day of their run id, and any other day as well', async () => {
    const database = await createDatabase();
    const store = await openTestStore(database);
    const now = Date.now();
    const moments = [now, now + DAY_MS, now - 40 * DAY_MS, now + 40 * DAY_MS];
    const runIds = moments.map(runIdAt);
    for (const runId of runIds) await settle(store, runId);
    for (const runId of runIds) expect(await store.find(runId)).toMatchObject({ state: 'delivered' });
    const places = await database.query<{ id: string; name: string }>(
      'SELECT id, tableoid::regclass::text AS name FROM afterword_deliveries',
    );
    const byId = new Map(places.map(({ id, name }) => [id, name]));
    expect(runIds.map(runId => byId.get(runId))).toEqual([
      `afterword_deliveries_${suffix(now)}`,
      `afterword_deliveries_${suffix(now + DAY_MS)}`,
      'afterword_deliveries_default',
      'afterword_deliveries_default',
    ]);
  });

  it('are dropped when all of a day is old, in a time in which nothing else is', async () => {
    const database = await createDatabase();
    const store = await openTestStore(database);
    const now = Date.now();
    const past = now - 20 * DAY_MS;
    await makeDay(database, past);
    for (let i = 0; i < 3; i += 1) await settle(store, runIdAt(past));
    await age(database, 20 * DAY_MS);
    const fresh = runIdAt(now);
    await settle(store, fresh);

    expect(await store.prune(past - DAY_MS, 10)).toBe(0);
    expect(await store.prune(now - 10 * DAY_MS, 10)).toBe(3);
    for (const table of TABLES) expect(await daysOf(database, table)).not.toContain(suffix(past));
    expect(await store.find(fresh)).toMatchObject({ state: 'delivered' });
    // One more of that day finds its place all the same.
    const late = runIdAt(past);
    await settle(store, late);
    expect(await store.find(late)).toMatchObject({ state: 'delivered' });
  });

  it.each([
    ['is pending', false],
    ['settled later', true],
  ])('stay while something of their day %s', async (_, settled) => {
    const database = await createDatabase();
    const store = await openTestStore(database);
    const past = Date.now() - 20 * DAY_MS;
    await makeDay(database, past);
    const old = runIdAt(past);
    await settle(store, old);
    await age(database, 20 * DAY_MS);
    const late = runIdAt(past);
    if (settled) await settle(store, late);
    else await store.insert(newDelivery({ runId: late }));
    expect(await store.prune(Date.now() - 10 * DAY_MS, 10)).toBe(0);
    expect(await store.find(old)).toMatchObject({ state: 'delivered' });
    expect(await store.find(late)).toBeDefined();
  });

  it('are dropped by one of several nodes that prune at the same moment', async () => {
    const database = await createDatabase();
    const stores = await Promise.all([openTestStore(database), openTestStore(database)]);
    const past = Date.now() - 20 * DAY_MS;
    await makeDay(database, past);
    await settle(stores[0], runIdAt(past));
    await age(database, 20 * DAY_MS);
    const before = Date.now() - 10 * DAY_MS;
    const pruned = await Promise.all([stores[0].prune(before, 10), stores[1].prune(before, 10)]);
    expect(pruned[0] + pruned[1]).toBe(1);
  });

  it('of no day are pruned one delivery at a time, whatever the age', async () => {
    const database = await createDatabase();
    const store = await openTestStore(database);
    const now = Date.now();
    const [far, near] = [runIdAt(now + 40 * DAY_MS), runIdAt(now)];
    await settle(store, far);
    await settle(store, near);
    await age(database, 20 * DAY_MS);
    expect(await store.prune(now - 10 * DAY_MS, 10)).toBe(1);
    expect(await store.find(far)).toBeUndefined();
    expect(await store.find(near)).toBeDefined(); // until its day is over
    expect(await database.query('SELECT FROM afterword_attempts')).toHaveLength(1);
  });
});

describe('a node whose clock is an hour off', () => {
  const HOUR = 3_600_000;
  const slow: Clock = { ...systemClock, now: () => Date.now() - HOUR };

  it('writes the database’s time, and gets its own back', async () => {
    const database = await createDatabase();
    const wrong = await openTestStore({ ...database, clock: slow });
    const right = await openTestStore(database);
    const delivery = newDelivery({ createdAt: slow.now() });
    const ref = await wrong.insert(delivery);
    await wrong.beginAttempt(ref, slow.now());
    await wrong.endAttempt(ref, attempt(1, { startedAt: slow.now() }), {
      state: 'pending',
      dueAt: slow.now() + 5_000,
    });
    const found = await right.find(delivery.runId);
    for (const time of [found!.createdAt, found!.dueAt!, found!.attempts[0]!.startedAt]) {
      expect(Math.abs(time - Date.now())).toBeLessThan(10_000);
    }

    await wrong.release();
    const [claimed] = await right.claim(1);
    expect(claimed!.dueAt).toBeGreaterThan(Date.now());
    expect(claimed!.dueAt).toBeLessThan(Date.now() + 6_000);
    await right.release();
    const [again] = await wrong.claim(1);
    expect(Math.abs(again!.dueAt - slow.now())).toBeLessThan(10_000);
    expect(Math.abs(again!.createdAt - slow.now())).toBeLessThan(10_000);
  });

  it('prunes what is old by the database’s time', async () => {
    const database = await createDatabase();
    const wrong = await openTestStore({ ...database, clock: slow });
    const { runId } = newDelivery();
    await settle(wrong, runId);
    expect(await wrong.prune(slow.now() - 60_000, 10)).toBe(0);
    await age(database, 120_000);
    expect(await wrong.prune(slow.now() - 60_000, 10)).toBe(1);
  });
});
