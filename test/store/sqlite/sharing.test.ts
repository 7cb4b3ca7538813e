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
import type { Body, Store } from '../../../src/store/store.ts';
import { type PortPair, portPair } from '../../support/ports.ts';
import { type Place, storeConformance } from '../conformance.ts';
import { attempt, newDelivery, temporaryDirectory } from '../samples.ts';
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

storeConformance('SQLite through another process', async place => {
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
});

const WAIT = { timeout: 10_000, interval: 5 };

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
