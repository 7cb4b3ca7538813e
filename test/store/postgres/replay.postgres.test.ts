/** Operations whose answer was lost, so that nobody knows whether they were done: repeated, they change nothing. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Next, Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { attempt, newDelivery, readBody, spooledBody } from '../samples.ts';
import { breakingConnections, losingRig } from './losing.ts';
import { openTestStore } from './opening.ts';

const DELIVERED: Next = { state: 'delivered' };

const queued = (database: Database, where = 'true') =>
  database.query<{ id: string; attempts: number }>(`SELECT id, attempts FROM afterword_queue WHERE ${where}`);

describe('a lost answer', () => {
  it('of an insert', async () => {
    const { database, store, losing } = await losingRig();
    const delivery = newDelivery();
    const ref = await losing(
      () => store.insert(delivery),
      async () => (await queued(database)).length === 1,
    );
    expect(await store.beginAttempt(ref, Date.now())).toBe(true);
    expect(await queued(database)).toEqual([{ id: delivery.runId, attempts: 1 }]);
  });

  it('of an insert that has settled since then', async () => {
    const { database, store, losing } = await losingRig();
    const delivery = newDelivery();
    await losing(
      () => store.insert(delivery),
      async () => (await database.query('DELETE FROM afterword_queue RETURNING id')).length === 1,
    );
    expect(await queued(database)).toEqual([]);
  });

  it('of a body in parts', async () => {
    const { database, store, spoolDir, losing } = await losingRig();
    const delivery = newDelivery();
    const bytes = randomBytes(2_500_000);
    const body = await spooledBody(spoolDir, delivery.runId, bytes);
    const ref = await losing(
      () => store.insert({ ...delivery, body }),
      async () => (await database.query('SELECT FROM afterword_body_parts')).length === 1,
    );
    expect((await readBody(await store.body(ref)))?.equals(bytes)).toBe(true);
  });

  it('of the beginning of an attempt', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await store.insert(newDelivery());
    const begun = losing(
      () => store.beginAttempt(ref, Date.now()),
      async () => (await queued(database, 'in_flight IS NOT NULL')).length === 1,
    );
    expect(await begun).toBe(true);
    expect(await queued(database)).toMatchObject([{ attempts: 1 }]);
  });

  it('of an attempt taken back', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await store.insert({ ...newDelivery(), begunAt: Date.now() });
    const withdrawn = losing(
      () => store.withdrawAttempt(ref),
      async () => (await queued(database, 'in_flight IS NULL')).length === 1,
    );
    expect(await withdrawn).toBe(true);
    expect(await queued(database)).toMatchObject([{ attempts: 0 }]);
  });

  it.each<{ next: Next; where: string }>([
    { next: DELIVERED, where: 'false' },
    { next: { state: 'failed', reason: 'rejected' }, where: 'false' },
    { next: { state: 'pending', dueAt: 1_900_000_000_000 }, where: 'in_flight IS NULL' },
  ])('of an end as $next.state', async ({ next, where }) => {
    const { database, store, losing } = await losingRig();
    const delivery = newDelivery();
    const ref = await store.insert({ ...delivery, begunAt: Date.now() });
    const written = losing(
      () => store.endAttempt(ref, attempt(1), next),
      async () => (await queued(database, `NOT (${where})`)).length === 0,
    );
    expect(await written).toBe(true);
    const found = await store.find(delivery.runId);
    expect(found).toMatchObject({ state: next.state });
    expect(found?.attempts).toHaveLength(1);
  });

  it('of a claim', async () => {
    const { database, store, losing } = await losingRig();
    const deliveries = [newDelivery({ owned: false }), newDelivery({ owned: false })];
    for (const delivery of deliveries) await store.insert(delivery);
    const claimed = await losing(
      () => store.claim(10),
      async () => (await queued(database, 'owner IS NOT NULL')).length === 2,
    );
    expect(claimed.map(({ runId }) => runId)).toEqual(deliveries.map(({ runId }) => runId));
    expect(await store.beginAttempt(claimed[0]!.ref, Date.now())).toBe(true);
  });
});

describe('connections that are ended at random moments', () => {
  /** One delivery from its beginning to its end, in one or two attempts. */
  async function live(store: Store, twice: boolean): Promise<string> {
    const delivery = newDelivery({ body: { bytes: randomBytes(1_000) } });
    const ref = await store.insert({ ...delivery, begunAt: Date.now() });
    const again = async () =>
      (await store.endAttempt(ref, attempt(1), { state: 'pending', dueAt: Date.now() })) &&
      (await store.beginAttempt(ref, Date.now()));
    expect(twice ? await again() : true).toBe(true);
    expect(await store.endAttempt(ref, attempt(twice ? 2 : 1), DELIVERED)).toBe(true);
    return delivery.runId;
  }

  it('lose nothing and double nothing', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url });
    const mend = breakingConnections(database);
    const runs: string[] = [];
    const worker = async (number: number) => {
      for (let i = 0; i < 10; i += 1) runs.push(await live(store, (i + number) % 2 === 0));
    };
    await Promise.all(Array.from({ length: 40 }, (_, number) => worker(number)));
    await mend();

    expect(runs).toHaveLength(400);
    const [counts] = await database.query(`
      SELECT (SELECT count(*)::int FROM afterword_deliveries) AS deliveries,
        (SELECT count(*)::int FROM afterword_settled WHERE state = 1) AS delivered,
        (SELECT count(*)::int FROM afterword_attempts) AS attempts,
        (SELECT count(*)::int FROM afterword_queue) AS queued`);
    expect(counts).toEqual({ deliveries: 400, delivered: 400, attempts: 600, queued: 0 });
  });
});
