/**
 * The embedded store used through another process: it does all that every store does, each process is a node
 * of its own, and what one leaves behind is there for the others.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/log.ts';
import type { Share, SharedStore } from '../../../src/store/store-port.ts';
import { createRemoteStore } from '../../../src/store/sqlite/remote.ts';
import { createSharedSqliteStore } from '../../../src/store/sqlite/sharing.ts';
import type { NewRun, RunEnd, RunOutcome, RunRef } from '../../../src/store/runs.ts';
import type { Body, Store } from '../../../src/store/store.ts';
import { type PortPair, portPair } from '../../support/ports.ts';
import { type OpenStore, type Place, storeConformance } from '../conformance.ts';
import { ledgerConformance } from '../ledger-conformance.ts';
import { runsConformance } from '../runs-conformance.ts';
import { attempt, newDelivery, newRun, temporaryDirectory } from '../samples.ts';
import { statsConformance } from '../stats-conformance.ts';
import { KEYRING } from './opening.ts';

const parts = { keyring: KEYRING, clock: systemClock, log: silentLogger };

async function openShared(place: Place): Promise<SharedStore> {
  const shared = createSharedSqliteStore({ ...place, ...parts, nodeId: randomUUID() });
  await shared.open();
  onTestFinished(() => shared.close());
  return shared;
}

interface Tenant {
  readonly store: Store;
  readonly share: Share;
  readonly ports: PortPair<unknown, unknown>;
  /** Whether the process that has the directory is there. */
  connected: boolean;
}

async function enter(shared: SharedStore, { spoolDir }: Place): Promise<Tenant> {
  const ports = portPair<unknown, unknown>();
  const share = shared.share(ports.here);
  const tenant: Tenant = {
    store: createRemoteStore({
      ...parts,
      spoolDir,
      nodeId: randomUUID(),
      port: ports.there,
      connected: () => tenant.connected,
    }),
    share,
    ports,
    connected: true,
  };
  await tenant.store.open();
  return tenant;
}

function newPlace(): Place {
  const dir = temporaryDirectory();
  return { dir, spoolDir: join(dir, 'spool') };
}

/** Each place has one process that keeps its store open; those that `recover` finds gone were its tenants. */
const places = new Map<string, { shared: Promise<SharedStore>; gone: Share[] }>();

const openTenant: OpenStore = async place => {
  const known = places.get(place.dir) ?? { shared: openShared(place), gone: [] };
  places.set(place.dir, known);
  const { store, share } = await enter(await known.shared, place);
  return Object.create(store, {
    close: {
      async value() {
        await store.close();
        known.gone.push(share);
      },
    },
    recover: {
      async value() {
        const freed = await Promise.all(known.gone.splice(0).map(each => each.end()));
        return freed.reduce((sum, count) => sum + count, 0);
      },
    },
  }) as Store;
};

storeConformance('SQLite through another process', openTenant);
runsConformance('SQLite through another process', openTenant);
ledgerConformance('SQLite through another process', openTenant);
statsConformance('SQLite through another process', openTenant);

const WAIT = { timeout: 10_000, interval: 5 };
const WANTED = { projectId: 'p-demo', app: 'hello', limit: 3, each: true };
const ENDED: RunEnd = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 };
const RESULT: RunOutcome = { result: { bytes: Buffer.from('{}') } };

describe('several processes on one store', () => {
  it('are nodes of their own: what one owns is not for another to send or to claim', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    const ref = await one.store.insert(newDelivery());
    expect(await other.store.claim(10)).toEqual([]);
    expect(await other.store.beginAttempt(ref, Date.now())).toBe(false);
    expect(await one.store.beginAttempt(ref, Date.now())).toBe(true);
    expect(await other.store.endAttempt(ref, attempt(1), { state: 'delivered' })).toBe(false);
    expect(await other.store.recover()).toBe(0);
    expect(await one.store.endAttempt(ref, attempt(1), { state: 'delivered' })).toBe(true);
  });

  it('share commits, and each gets its own answers, in whatever order they ask', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const tenants = await Promise.all([1, 2, 3].map(() => enter(shared, place)));
    const inserted = tenants.map(async ({ store }) => {
      const deliveries = Array.from({ length: 200 }, () =>
        newDelivery({ body: { bytes: Buffer.from(randomUUID()) } }),
      );
      const refs = await Promise.all(deliveries.map(delivery => store.insert(delivery)));
      const bodies = await Promise.all(refs.map(ref => store.body(ref)));
      const textOf = (body: Body | undefined) =>
        body && 'bytes' in body && Buffer.from(body.bytes).toString();
      expect(bodies.map(textOf)).toEqual(deliveries.map(({ body }) => textOf(body)));
      return refs;
    });
    expect(new Set((await Promise.all(inserted)).flat())).toHaveLength(600);
  });

  it('tells of one operation that fails alone', async () => {
    const place = newPlace();
    const { store } = await enter(await openShared(place), place);
    const [good, bad] = await Promise.allSettled([
      store.insert(newDelivery()),
      store.insert(newDelivery({ runId: 'no run id' })),
    ]);
    expect([good.status, bad.status]).toEqual(['fulfilled', 'rejected']);
    expect((bad as PromiseRejectedResult).reason).toMatchObject({
      message: 'not a usable run id: no run id',
    });
  });

  it('frees what one owned that is gone, its attempt on record, and tells the others', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [dead, other] = [await enter(shared, place), await enter(shared, place)];
    const told = vi.fn();
    other.store.watch(told);
    const delivery = newDelivery();
    const ref = await dead.store.insert(delivery);
    await dead.store.beginAttempt(ref, Date.now());
    const mine = await other.store.insert(newDelivery());

    dead.ports.cut();
    expect(await dead.share.end()).toBe(1);
    await vi.waitUntil(() => told.mock.calls.length > 0, WAIT);
    expect(await other.store.claim(10)).toMatchObject([{ runId: delivery.runId, attempts: 1 }]);
    expect(await other.store.find(delivery.runId)).toMatchObject({
      attempts: [{ number: 1, error: 'interrupted' }],
    });
    expect(await other.store.beginAttempt(mine, Date.now())).toBe(true);
  });

  it('keeps what one had asked for before it was gone, and frees it as well', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const dead = await enter(shared, place);
    const delivery = newDelivery();
    dead.store.insert(delivery).catch(() => {}); // nobody is there to hear of it
    await new Promise(resolve => setImmediate(resolve)); // it is on its way
    await new Promise(resolve => setImmediate(resolve)); // it has been heard
    dead.ports.cut();
    expect(await dead.share.end()).toBe(1);
    const { store } = await enter(shared, place);
    expect(await store.claim(10)).toMatchObject([{ runId: delivery.runId }]);
  });

  it('tells the others of a delivery that its own process leaves unowned', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    const told = { one: vi.fn(), other: vi.fn() };
    one.store.watch(told.one);
    other.store.watch(told.other);
    await one.store.insert(newDelivery());
    await one.store.insert(newDelivery({ owned: false }));
    await vi.waitUntil(() => told.other.mock.calls.length > 0, WAIT);
    expect([told.one.mock.calls.length, told.other.mock.calls.length]).toEqual([0, 1]);
  });

  it('keep the limit of an app together, and let no other touch the runs of one', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    for (let count = 0; count < 5; count += 1) await one.store.runs.insert(newRun());
    const claims = await Promise.all([one, other].map(({ store }) => store.runs.claim([WANTED])));
    expect(claims.flat()).toHaveLength(WANTED.limit);
    const [mine] = claims.flat();
    const [owner, stranger] = claims[0]!.includes(mine!) ? [one, other] : [other, one];
    expect(await stranger.store.runs.begin(mine!.ref, Date.now())).toBe('lost');
    expect(await owner.store.runs.begin(mine!.ref, Date.now())).toBe('begun');
    expect(await stranger.store.runs.end(mine!.ref, ENDED, RESULT)).toBeUndefined();
    expect(await owner.store.runs.end(mine!.ref, ENDED, RESULT)).toEqual({});
    expect(await stranger.store.runs.claim([WANTED])).toHaveLength(1);
  });

  it('free the runs of one that is gone', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [dead, other] = [await enter(shared, place), await enter(shared, place)];
    const run = newRun();
    await dead.store.runs.insert(run);
    const [claimed] = await dead.store.runs.claim([WANTED]);
    await dead.store.runs.begin(claimed!.ref, Date.now());
    dead.ports.cut();
    expect(await dead.share.end()).toBe(1);
    expect(await other.store.runs.claim([WANTED])).toMatchObject([{ runId: run.runId, starts: 1 }]);
  });

  const LEFT: [string, (store: Store, run: NewRun, ref: RunRef) => Promise<unknown>][] = [
    ['came in', store => store.runs.insert(newRun())],
    ['was given up', (store, _run, ref) => store.runs.withdraw(ref)],
    ['is to be cancelled', (store, run) => store.runs.cancel(run.projectId, run.runId)],
    ['has ended and made room', (store, _run, ref) => store.runs.end(ref, ENDED, RESULT)],
    ['was released', store => store.release()],
  ];

  it.each(LEFT)('tells the others of a run that %s', async (_, leave) => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    const run = newRun();
    await one.store.runs.insert(run);
    const [claimed] = await one.store.runs.claim([WANTED]);
    const told = vi.fn();
    await other.store.backlog(); // it has heard of all that was before
    other.store.watch(told);
    await one.store.runs.begin(claimed!.ref, Date.now());
    await leave(one.store, run, claimed!.ref);
    await vi.waitUntil(() => told.mock.calls.length > 0, WAIT);
    expect(told).toHaveBeenCalledOnce();
  });

  it('lets the process with the directory delete old runs', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const { store } = await enter(shared, place);
    await store.runs.insert(newRun());
    const [claimed] = await store.runs.claim([WANTED]);
    await store.runs.end(claimed!.ref, ENDED, RESULT);
    expect(await shared.runs.prune(ENDED.endedAt + 1, 10)).toBe(1);
    expect(await store.runs.find('p-demo', claimed!.runId)).toBeUndefined();
  });

  it('tells every one of what was done by hand, also the one that was asked', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    const delivery = newDelivery();
    const ref = await one.store.insert(delivery);
    await one.store.endAttempt(ref, attempt(1), { state: 'delivered' });
    const told = [vi.fn(), vi.fn()];
    one.store.watch(told[0]!);
    other.store.watch(told[1]!);
    await one.store.ledger.redeliver({ runId: delivery.runId, at: Date.now() });
    await vi.waitUntil(() => told.every(each => each.mock.calls.length > 0), WAIT);
    const claims = await Promise.all([one, other].map(({ store }) => store.claim(10)));
    expect(claims.flat()).toMatchObject([{ runId: delivery.runId, round: 2 }]);
  });

  it('tells those who follow of what happened anywhere, and only those', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const [one, other] = [await enter(shared, place), await enter(shared, place)];
    const said = vi.fn();
    one.ports.there.listen(said); // nothing more is to come to it
    const heard: string[] = [];
    const end = await other.store.ledger.follow(runIds => void heard.push(...runIds));
    const delivery = newDelivery();
    const ref = await other.store.insert(delivery);
    await vi.waitUntil(() => heard.includes(delivery.runId), WAIT);
    heard.length = 0;
    await other.store.beginAttempt(ref, Date.now());
    await other.share.end();
    const third = await enter(shared, place);
    const again: string[] = [];
    await third.store.ledger.follow(runIds => void again.push(...runIds));
    await third.store.insert(newDelivery());
    await vi.waitUntil(() => again.length > 0, WAIT);
    expect(heard).toEqual([]);
    expect(said.mock.calls.filter(([message]) => message.type === 'changed')).toEqual([]);
    end();
  });

  it('lets the process with the directory delete old numbers', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const { store } = await enter(shared, place);
    const host = { projectId: 'p-demo', host: 'a.example', hour: 3_600_000, attempts: 1, failures: 1 };
    await store.stats.add([], [host]);
    await shared.stats.prune(host.hour + 1);
    expect(await store.stats.failingHosts({ since: 0 }, 10)).toEqual([]);
  });

  it('is unavailable for all while the database cannot be written, and nothing is lost', async () => {
    const place = newPlace();
    const shared = await openShared(place);
    const { store } = await enter(shared, place);
    expect(store.available).toBe(true);
    const db = new DatabaseSync(join(place.dir, 'afterword.db'));
    db.exec('BEGIN IMMEDIATE');
    const inserting = store.insert(newDelivery());
    await vi.waitUntil(() => !store.available, WAIT);
    db.exec('ROLLBACK');
    db.close();
    await inserting;
    await vi.waitUntil(() => store.available, WAIT);
    expect((await store.backlog()).pending.get('p-demo')).toBe(1);
  });

  it('has no tenure where the process with the directory is gone', async () => {
    const place = newPlace();
    const tenant = await enter(await openShared(place), place);
    expect(tenant.store.tenure).toBe(1);
    tenant.connected = false;
    expect(tenant.store.tenure).toBeUndefined();
  });

  it('takes nothing before it is open and after it is closed', async () => {
    const place = newPlace();
    const { store } = await enter(await openShared(place), place);
    const insert = store.insert(newDelivery());
    await store.close();
    await insert;
    expect([store.available, store.tenure]).toEqual([false, undefined]);
    await expect(store.insert(newDelivery())).rejects.toThrow('not open');
  });
});
