/** Several nodes on one database: who owns what, who takes over from whom, and what is fenced off. */
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { createKeyring } from '../../../src/store/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { captureLog } from '../../support/log.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { until } from '../../support/waiting.ts';
import { attempt, newDelivery, readBody, spooledBody, temporaryDirectory } from '../samples.ts';
import { createTestStore, openCuttable, openTestStore, SHORT_LEASE, type StoreSetup } from './opening.ts';

const DELIVERED = { state: 'delivered' } as const;

const other = ({ url }: Database, setup: Partial<StoreSetup> = {}) =>
  openTestStore({ url, lease: SHORT_LEASE, ...setup });

const ownersOf = (database: Database) =>
  database.query<{ id: string; owner: number | null; attempts: number; in_flight: number | null }>(
    'SELECT id, owner, attempts, in_flight FROM afterword_queue ORDER BY id',
  );

/** Waits until nobody owns anything any more. */
const takenOver = (database: Database) =>
  until(async () => (await ownersOf(database)).every(({ owner }) => owner === null));

describe('claims of several nodes', () => {
  it('never take a delivery twice', async () => {
    const database = await createDatabase();
    const stores = await Promise.all([other(database), other(database), other(database)]);
    const deliveries = Array.from({ length: 900 }, () => newDelivery({ owned: false }));
    await Promise.all(deliveries.map((delivery, i) => stores[i % 3]!.insert(delivery)));
    const claimed: string[] = [];
    const drain = async (store: Store) => {
      while (claimed.length < 900) claimed.push(...(await store.claim(37)).map(({ runId }) => runId));
    };
    await Promise.all(stores.map(drain));
    expect(claimed.toSorted()).toEqual(deliveries.map(({ runId }) => runId).toSorted());
  });

  it('leave alone what is sealed with a key that the node does not have', async () => {
    const database = await createDatabase();
    const [old, young] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const behind = await other(database, { keyring: createKeyring([old]) });
    const ahead = await other(database, { keyring: createKeyring([young, old]) });
    const secret = Buffer.from('secret');
    const mine = newDelivery({ owned: false, confidential: { secret } });
    const theirs = newDelivery({ owned: false, confidential: { secret } });
    await ahead.insert(theirs);
    await behind.insert(mine);
    expect((await behind.claim(10)).map(({ runId }) => runId)).toEqual([mine.runId]);
    const [claimed] = await ahead.claim(10);
    expect(claimed).toMatchObject({ runId: theirs.runId });
    expect(Buffer.from(claimed!.confidential.secret!)).toEqual(secret);
  });

  it('end what is sealed and damaged, on record', async () => {
    const database = await createDatabase();
    const { log, lines } = captureLog();
    const store = await other(database, { log });
    const bad = newDelivery({ owned: false, confidential: { secret: Buffer.from('secret') } });
    const good = newDelivery({ owned: false });
    await store.insert(bad);
    await store.insert(good);
    await database.query('UPDATE afterword_deliveries SET sealed = $1 WHERE id = $2', [
      Buffer.alloc(40),
      bad.runId,
    ]);
    expect((await store.claim(10)).map(({ runId }) => runId)).toEqual([good.runId]);
    expect(await store.find(bad.runId)).toMatchObject({
      state: 'failed',
      reason: 'blocked',
      attempts: [{ number: 1, error: 'secret_unreadable' }],
    });
    expect(lines).toMatchObject([{ event: 'secret_unreadable', runId: bad.runId }]);
  });
});

describe('watch', () => {
  it('tells at once of deliveries that others leave', async () => {
    const database = await createDatabase();
    // So that nothing but the bell can tell in time.
    const lease = { ...SHORT_LEASE, look: 600_000 };
    const gateway = await other(database, { lease });
    const store = createTestStore({ url: database.url, lease });
    let told = 0;
    store.watch(() => (told += 1));
    await store.open();
    await until(() => told > 0); // it listens
    const before = told;
    await gateway.insert(newDelivery({ owned: false }));
    await until(() => told > before);
    expect(await store.claim(1)).toHaveLength(1);
  });

  it('tells without the bell, soon', async () => {
    const database = await createDatabase();
    const store = createTestStore({ url: database.url, lease: SHORT_LEASE });
    let told = 0;
    store.watch(() => (told += 1));
    await store.open();
    await until(() => told > 0); // the bell, when it begins to listen
    const { runId } = newDelivery();
    const before = told;
    await database.query(
      `INSERT INTO afterword_queue (id, round, attempts, cause, due_at, project, app, host, created_at)
       VALUES ($1, 1, 0, 0, 0, 'p', 'a', 'h', 0)`,
      [runId],
    );
    await until(() => told > before);
    expect(told).toBeGreaterThan(before);
  });
});

describe('a node that is cut off', () => {
  it('loses its tenure, and gets another when it is back', async () => {
    const { relay, store } = await openCuttable(await createDatabase());
    let told = 0;
    await until(() => store.tenure !== undefined);
    const first = store.tenure;
    relay.hold();
    await until(() => store.tenure === undefined);
    await until(() => !store.available);
    store.watch(() => (told += 1));
    relay.resume();
    await until(() => store.tenure !== undefined && store.available);
    expect(store.tenure).not.toBe(first);
    await until(() => told > 0);
  });

  it('keeps its tenure when a connection breaks', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database, {
      lease: { ...SHORT_LEASE, valid: 10_000, dead: 11_000 },
    });
    const first = store.tenure;
    const beat = async () =>
      (await database.query('SELECT beat_at FROM afterword_nodes'))[0]!['beat_at'] as Date;
    for (let times = 0; times < 5; times += 1) {
      relay.cut();
      await store.backlog();
      const before = await beat();
      await until(async () => (await beat()) > before);
    }
    expect(store.tenure).toBe(first);
  });

  it('is taken over from, and can then write nothing that it held', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const { log, lines } = captureLog();
    const rescuer = await other(database, { log });
    const [begun, waiting] = [newDelivery(), newDelivery()];
    const refs = [await store.insert({ ...begun, begunAt: Date.now() }), await store.insert(waiting)];

    relay.hold();
    const lapsed = store.tenure;
    await takenOver(database);
    expect(store.tenure).toBeUndefined();
    await until(() => lines.length > 0);
    expect(lines).toMatchObject([{ level: 'warn', event: 'takeover', deliveries: 2 }]);

    relay.resume();
    await until(() => store.tenure !== undefined);
    expect(store.tenure).not.toBe(lapsed);
    for (const ref of refs) {
      expect(await store.withdrawAttempt(ref)).toBe(false);
      expect(await store.endAttempt(ref, attempt(1), DELIVERED)).toBe(false);
      expect(await store.beginAttempt(ref, Date.now())).toBe(false);
    }
    expect(await rescuer.find(begun.runId)).toMatchObject({
      state: 'pending',
      attempts: [{ number: 1, error: 'interrupted' }],
    });
    const claimed = await rescuer.claim(10);
    expect(claimed.map(({ runId }) => runId).toSorted()).toEqual([begun.runId, waiting.runId].toSorted());
  });

  it('does nothing by old references to what it claimed again itself', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    await other(database);
    const delivery = newDelivery();
    const old = await store.insert({ ...delivery, begunAt: Date.now() });
    relay.hold();
    await takenOver(database);
    relay.resume();
    const [claimed] = await store.claim(1);
    expect(claimed).toMatchObject({ runId: delivery.runId, attempts: 1 });
    expect(await store.beginAttempt(claimed!.ref, Date.now())).toBe(true);
    expect(await store.withdrawAttempt(old)).toBe(false);
    expect(await store.endAttempt(old, attempt(1), DELIVERED)).toBe(false);
    // In one batch, too.
    expect(
      await Promise.all([
        store.endAttempt(old, attempt(1), DELIVERED),
        store.endAttempt(claimed!.ref, attempt(2, { status: 404 }), { state: 'pending', dueAt: Date.now() }),
      ]),
    ).toEqual([false, true]);
    expect(await store.beginAttempt(old, Date.now())).toBe(false);
    expect((await store.find(delivery.runId))?.attempts.map(({ number }) => number)).toEqual([1, 2]);
  });

  it('stores what it is given meanwhile without an owner, and not as begun', async () => {
    const database = await createDatabase();
    const store = await other(database);
    const blocker = new Client(database.url);
    await blocker.connect();
    await blocker.query('BEGIN; SELECT FROM afterword_nodes FOR UPDATE'); // its beats wait, and nothing else
    await until(() => store.tenure === undefined);

    const delivery = newDelivery();
    const ref = await store.insert({ ...delivery, begunAt: Date.now() });
    expect(await ownersOf(database)).toEqual([
      { id: delivery.runId, owner: null, attempts: 0, in_flight: null },
    ]);
    await blocker.end();
    await until(() => store.tenure !== undefined);
    expect(await store.withdrawAttempt(ref)).toBe(false);
    expect(await store.claim(1)).toMatchObject([{ runId: delivery.runId, attempts: 0 }]);
  });

  it('owns nothing under a number that is no longer known, and gets a new one', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const first = store.tenure;
    relay.hold();
    await database.query('DELETE FROM afterword_nodes');
    relay.resume();
    await until(() => store.tenure !== undefined && store.tenure !== first);
    const ref = await store.insert(newDelivery());
    expect(await store.beginAttempt(ref, Date.now())).toBe(true);
  });
});

describe('takeover', () => {
  it('follows a close at once', async () => {
    const database = await createDatabase();
    const lease = { ...SHORT_LEASE, valid: 300_000, dead: 600_000 };
    const [leaving, staying] = [await other(database, { lease }), await other(database, { lease })];
    await leaving.insert(newDelivery());
    await leaving.close();
    await takenOver(database);
    expect(await staying.claim(10)).toHaveLength(1);
    expect(await database.query("SELECT FROM afterword_nodes WHERE beat_at = '-infinity'")).toHaveLength(1);
  });

  it('is not needed after a close that left nothing', async () => {
    const database = await createDatabase();
    const store = await other(database);
    const ref = await store.insert(newDelivery());
    await store.endAttempt(ref, attempt(1), DELIVERED);
    await store.close();
    expect(await database.query('SELECT FROM afterword_nodes')).toEqual([]);
  });

  it('gives all nodes time after the database was away', async () => {
    const database = await createDatabase();
    // Only `recover` takes over here.
    const lease = { ...SHORT_LEASE, beat: 5_000, valid: 10_000, dead: 11_000, look: 600_000 };
    const store = await other(database, { lease });
    await store.insert(newDelivery());
    // As after an outage: the last beat of one is old, and another is the first to be back.
    await database.query(`UPDATE afterword_nodes SET beat_at = beat_at - interval '1 minute'`);
    const first = await other(database, { lease });
    expect(await first.recover()).toBe(0);
    expect((await ownersOf(database))[0]!.owner).not.toBeNull();
    // When it has been there for long enough, the other one has had its time.
    await database.query(`UPDATE afterword_nodes SET since = since - interval '1 minute'`);
    expect(await first.recover()).toBe(1);
  });

  it('reads the bodies that another node stored', async () => {
    const database = await createDatabase();
    const spoolDir = temporaryDirectory();
    const store = await other(database, { spoolDir });
    const delivery = newDelivery({ owned: false });
    const bytes = Buffer.alloc(2_500_000, 'abc');
    const body = await spooledBody(spoolDir, delivery.runId, bytes);
    await store.insert({ ...delivery, body });
    await store.close();
    const next = await other(database);
    const [claimed] = await next.claim(1);
    expect((await readBody(await next.body(claimed!.ref)))?.equals(bytes)).toBe(true);
  });
});
