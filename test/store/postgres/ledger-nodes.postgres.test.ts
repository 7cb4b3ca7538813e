/** People's looks and actions where several nodes share the deliveries: keys, followers, jobs, retention. */
import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DAY_MS } from '../../../src/store/postgres/partitions.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import type { Next, Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { until } from '../../support/waiting.ts';
import { attempt, newDelivery, runIdAt } from '../samples.ts';
import { openCuttable, openTestStore, SHORT_LEASE, type StoreSetup } from './opening.ts';

const REJECTED: Next = { state: 'failed', reason: 'rejected' };
const OTHER = 'https://elsewhere.example/hook';

const node = ({ url }: Database, setup: Partial<StoreSetup> = {}) =>
  openTestStore({ url, lease: SHORT_LEASE, ...setup });

async function settled(store: Store, overrides: Parameters<typeof newDelivery>[0] = {}): Promise<string> {
  const delivery = newDelivery({ ...overrides, begunAt: Date.now() });
  await store.endAttempt(await store.insert(delivery), attempt(1, { status: 500 }), REJECTED);
  return delivery.runId;
}

const redeliver = (store: Store, runId: string, to?: { target: string; authorization?: string }) =>
  store.ledger.redeliver({ runId, at: Date.now(), ...(to && { to }) });

describe('a redelivery, while keys are being changed', () => {
  const [old, young] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const confidential = { secret: Buffer.from('secret') };

  async function rig() {
    const database = await createDatabase();
    const behind = await node(database, { keyring: createKeyring([old]) });
    const ahead = await node(database, { keyring: createKeyring([young, old]) });
    return { behind, ahead };
  }

  it('to another target is sealed with the newest key, and claimed by who has that', async () => {
    const { behind, ahead } = await rig();
    const runId = await settled(behind, { confidential });
    expect(await redeliver(ahead, runId, { target: OTHER })).toMatchObject({ outcome: 'redelivered' });
    expect(await behind.claim(1)).toEqual([]);
    const [claimed] = await ahead.claim(1);
    expect(claimed).toMatchObject({ runId, target: OTHER });
    expect(Buffer.from(claimed!.confidential.secret!)).toEqual(confidential.secret);
    await ahead.endAttempt(claimed!.ref, attempt(1), REJECTED);
    // The next round is the delivery's own again.
    await redeliver(ahead, runId);
    expect(await behind.claim(1)).toMatchObject([{ runId, round: 3 }]);
  });

  it('to another target is not possible where the key is missing; to its own it is', async () => {
    const { behind, ahead } = await rig();
    const runId = await settled(ahead, { confidential });
    expect(await redeliver(behind, runId, { target: OTHER })).toEqual({ outcome: 'unreadable' });
    expect(await redeliver(behind, runId)).toEqual({ outcome: 'redelivered', round: 2 });
    expect(await behind.claim(1)).toEqual([]);
    expect(await ahead.claim(1)).toMatchObject([{ runId }]);
  });
});

describe('a delivery', () => {
  it('is told to be signed or not, by who can know it', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const stranger = await node(database, { keyring: createKeyring([new Uint8Array(32).fill(9)]) });
    const secret = Buffer.from('secret');
    const signed = await settled(store, { confidential: { secret } });
    const unsigned = await settled(store, { confidential: { authorization: 'Basic eDp5' } });
    const bare = await settled(store);
    const told = (by: Store) =>
      Promise.all([signed, unsigned, bare].map(async runId => (await by.find(runId))!.signed));
    expect(await told(store)).toEqual([true, false, false]);
    expect(await told(stranger)).toEqual([undefined, undefined, false]);
  });
});

describe('an action', () => {
  it('makes one round of many that several nodes ask for at once with one key', async () => {
    const database = await createDatabase();
    const stores = await Promise.all([node(database), node(database)]);
    const runId = await settled(stores[0]);
    const idempotency = { key: 'key', fingerprint: Buffer.from('print') };
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        stores[i % 2]!.ledger.redeliver({ runId, at: Date.now(), idempotency }),
      ),
    );
    expect(answers.map(({ outcome }) => outcome).toSorted()).toEqual([
      'redelivered',
      ...Array.from({ length: 7 }, () => 'repeated'),
    ]);
  });

  it('of one node takes effect on what another owns', async () => {
    const database = await createDatabase();
    const [owner, other] = [await node(database), await node(database)];
    const delivery = newDelivery({ begunAt: Date.now() });
    const ref = await owner.insert(delivery);
    expect(await other.ledger.cancel(delivery.runId, Date.now())).toBe('cancelled');
    expect(await owner.endAttempt(ref, attempt(1), { state: 'delivered' })).toBe(false);
    expect(await owner.find(delivery.runId)).toMatchObject({
      state: 'cancelled',
      attempts: [{ number: 1, error: 'cancelled' }],
    });
  });
});

describe('a job', () => {
  it('goes on with another node when its own is cut off', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const rescuer = await node(database);
    const runId = await settled(rescuer);
    await store.ledger.addJob({ id: 'job', filter: {}, createdAt: Date.now(), total: 1 });
    const { ref } = (await store.ledger.claimJob())!;
    relay.hold();
    const taken = await vi.waitUntil(() => rescuer.ledger.claimJob(), { timeout: 10_000, interval: 20 });
    relay.resume();
    expect(await store.ledger.stepJob(ref, { runIds: [runId], at: Date.now() })).toBeUndefined();
    expect(await rescuer.ledger.stepJob(taken.ref, { runIds: [runId], at: Date.now() })).toMatchObject({
      state: 'done',
      redelivered: 1,
    });
  });

  it('is forgotten when it ended long ago', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const at = Date.now() - 20 * DAY_MS;
    await store.ledger.addJob({ id: 'old', filter: {}, createdAt: at, total: 0 });
    await store.ledger.addJob({ id: 'running', filter: {}, createdAt: at + 1, total: 0 });
    await store.ledger.stepJob((await store.ledger.claimJob())!.ref, { runIds: [], at });
    await store.prune(Date.now() - 10 * DAY_MS, 10);
    expect(await store.ledger.findJob('old')).toBeUndefined();
    expect(await store.ledger.findJob('running')).toBeDefined();
  });
});

describe('retention', () => {
  /** As if it had settled so long ago. */
  const age = (database: Database, ms: number) =>
    database.query('UPDATE afterword_settled SET settled_at = settled_at - $1', [ms]);

  it('waits for a redelivery, and deletes what has not come back', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const [back, gone] = [await settled(store), await settled(store)];
    await age(database, DAY_MS);
    const blocker = new Client(database.url);
    await blocker.connect();
    // A redelivery that is not quite done.
    await blocker.query('BEGIN');
    await blocker.query('DELETE FROM afterword_settled WHERE id = $1', [back]);
    expect(await store.prune(Date.now() - DAY_MS / 2, 10)).toBe(1);
    await blocker.query('ROLLBACK');
    await blocker.end();
    expect(await store.find(back)).toMatchObject({ state: 'failed' });
    expect(await store.find(gone)).toBeUndefined();
    expect(await redeliver(store, gone)).toEqual({ outcome: 'not_found' });
  });

  it('leaves a day alone of which something is pending again', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const runId = await settled(store, { runId: runIdAt(Date.now() - DAY_MS) });
    await age(database, 20 * DAY_MS);
    await redeliver(store, runId);
    await store.prune(Date.now() + DAY_MS, 10);
    const [claimed] = await store.claim(1);
    expect(claimed).toMatchObject({ runId, round: 2 });
    expect(await store.body(claimed!.ref)).toBeDefined();
  });
});

describe('follow', () => {
  const WAIT = { timeout: 10_000, interval: 20 };

  /** All that nodes tell each other from now on. */
  async function overhear({ url }: Database): Promise<string[]> {
    const client = new Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    const heard: string[] = [];
    client.on('notification', ({ payload }) => heard.push(payload ?? ''));
    const schema = createHash('sha256').update('public').digest('hex').slice(0, 16);
    await client.query(`LISTEN afterword_${schema}_told`);
    return heard;
  }

  it('tells of all that other nodes do', async () => {
    const database = await createDatabase();
    const [follower, worker] = [await node(database), await node(database)];
    const heard = new Set<string>();
    const end = await follower.ledger.follow(runIds => runIds.forEach(runId => heard.add(runId)));
    const deliveries = Array.from({ length: 500 }, () => newDelivery());
    await Promise.all(deliveries.map(delivery => worker.insert(delivery)));
    await until(() => deliveries.every(({ runId }) => heard.has(runId)));
    end();
    const followers = () => database.query('SELECT FROM afterword_followers');
    await expect.poll(followers, WAIT).toEqual([]);
  });

  it('costs nothing while nobody does', async () => {
    const database = await createDatabase();
    const [follower, worker] = [await node(database), await node(database)];
    const overheard = await overhear(database);
    const silent = newDelivery();
    await worker.insert(silent);
    const end = await follower.ledger.follow(() => {});
    const heard = newDelivery();
    await worker.insert(heard);
    await expect.poll(() => overheard.join(), WAIT).toContain(heard.runId);
    end();
    expect(overheard.join()).not.toContain(silent.runId);
  });

  it('tells to look at everything where something may have been missed', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const worker = await node(database);
    const told: (readonly string[])[] = [];
    const end = await store.ledger.follow(runIds => told.push(runIds));
    const [before, after] = [newDelivery(), newDelivery()];
    await worker.insert(before);
    await expect.poll(() => told.flat(), WAIT).toEqual([before.runId]);
    told.length = 0;
    relay.cut();
    await expect.poll(() => told, WAIT).toContainEqual([]);
    await worker.insert(after);
    await expect.poll(() => told.flat(), WAIT).toEqual([after.runId]);
    end();
  });

  it('tells to look at everything where a dead node’s deliveries were taken over', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const follower = await node(database);
    await store.insert(newDelivery({ begunAt: Date.now() }));
    const told: (readonly string[])[] = [];
    const end = await follower.ledger.follow(runIds => told.push(runIds));
    told.length = 0;
    relay.hold();
    await expect.poll(() => told, WAIT).toContainEqual([]);
    end();
    relay.resume();
  });
});
