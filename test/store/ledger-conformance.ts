/**
 * What every store must do for people who look at deliveries and act on them. `openStore` opens the store of a
 * place as a node that never was before; a store that was closed with what it owned stands for a node that died.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type DeliveryFilter, hostOf, type LedgerPage, type Redelivery } from '../../src/store/ledger.ts';
import { IDEMPOTENCY_MS } from '../../src/store/runs.ts';
import type {
  AttemptResult,
  DeliveryRef,
  DeliveryState,
  FailureReason,
  NewDelivery,
  Next,
  PendingDelivery,
  Store,
} from '../../src/store/store.ts';
import type { OpenStore, Place } from './conformance.ts';
import { attempt, newDelivery, readBody, runIdAt, spooledBody, temporaryDirectory } from './samples.ts';

const WAIT = { timeout: 10_000, interval: 5 };
const OWN = 'https://receiver.example/hook?a=1';
const OTHER = 'https://elsewhere.example:8443/other';
const DELIVERED: Next = { state: 'delivered' };
const REJECTED: Next = { state: 'failed', reason: 'rejected' };
const LATER: Next = { state: 'pending', dueAt: 1_900_000_000_000 };
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** What a delivery comes to, in the order of the table that makes them. */
interface Fate {
  readonly state: DeliveryState;
  readonly reason?: FailureReason;
  /** Of its last attempt, where it has had one that was answered. */
  readonly lastStatus?: number;
}

const FATES: readonly Fate[] = [
  { state: 'pending' },
  { state: 'pending', lastStatus: 404 },
  { state: 'delivered', lastStatus: 200 },
  { state: 'delivered', lastStatus: 204 },
  { state: 'failed', reason: 'rejected', lastStatus: 503 },
  { state: 'failed', reason: 'rejected', lastStatus: 400 },
  { state: 'failed', reason: 'exhausted', lastStatus: 404 },
  { state: 'failed', reason: 'exhausted' },
  { state: 'failed', reason: 'blocked' },
  { state: 'cancelled' },
  { state: 'cancelled', lastStatus: 404 },
];

function nextOf({ state, reason }: Fate): Next {
  if (state === 'delivered') return DELIVERED;
  return state === 'failed' ? { state, reason: reason! } : LATER;
}

/** Deliveries that came one after the other, each in a millisecond of its own. */
function inOrder(count: number, overrides: Partial<NewDelivery> = {}): NewDelivery[] {
  const start = Date.now() - 60_000;
  return Array.from({ length: count }, (_, i) =>
    newDelivery({ runId: runIdAt(start + i), createdAt: start + i, ...overrides }),
  );
}

function idsOf(deliveries: readonly { runId: string }[]): string[] {
  return deliveries.map(({ runId }) => runId);
}

function timeOf(runId: string): number {
  return Number.parseInt(runId.replace('-', '').slice(0, 12), 16);
}

export function ledgerConformance(name: string, openStore: OpenStore): void {
  describe(`${name} as a ledger`, () => {
    let place: Place;
    let store: Store;

    const open = async () => {
      const opened = await openStore(place);
      onTestFinished(() => opened.close());
      return opened;
    };
    /** As another node, after the present one has gone. */
    const reopen = async () => {
      await store.close();
      store = await open();
    };
    const send = async (ref: DeliveryRef, next: Next, result: Partial<AttemptResult> = {}) => {
      const made = attempt(1, result);
      expect(await store.beginAttempt(ref, made.startedAt)).toBe(true);
      expect(await store.endAttempt(ref, made, next)).toBe(true);
    };
    /** Inserts one and brings it to an end. */
    const settled = async (delivery: NewDelivery, next = REJECTED, status = 503): Promise<DeliveryRef> => {
      const ref = await store.insert({ ...delivery, owned: true });
      await send(ref, next, { status });
      return ref;
    };
    const find = async ({ runId }: { runId: string }) => (await store.find(runId))!;
    const redeliver = ({ runId }: NewDelivery, more: Partial<Redelivery> = {}) =>
      store.ledger.redeliver({ runId, at: Date.now(), ...more });
    const claimed = async ({ runId }: NewDelivery): Promise<PendingDelivery> => {
      const found = (await store.claim(1_000)).find(each => each.runId === runId);
      expect(found).toBeDefined();
      return found!;
    };
    /** All of what a filter asks for, page by page. */
    const allIds = async (filter: DeliveryFilter, limit: number): Promise<string[]> => {
      const runIds: string[] = [];
      let page: LedgerPage = { limit };
      for (;;) {
        const { deliveries, next } = await store.ledger.list(filter, page);
        expect(deliveries.length).toBeLessThanOrEqual(limit);
        expect(await store.ledger.runIds(filter, page)).toEqual({
          runIds: idsOf(deliveries),
          ...(next !== undefined && { next }),
        });
        runIds.push(...idsOf(deliveries));
        if (next === undefined) return runIds;
        page = { limit, before: next };
      }
    };

    beforeEach(async () => {
      const dir = temporaryDirectory();
      place = { dir, spoolDir: join(dir, 'spool') };
      store = await open();
    });

    describe('list', () => {
      /** One of each fate for each place that it can go to, all in the order of time. */
      const everything = async () => {
        const kinds = [
          { projectId: 'p-a', app: 'x', target: 'https://one.example/hook' },
          { projectId: 'p-a', app: 'y', target: 'http://one.example:8080/hook' },
          { projectId: 'p-b', app: 'x', target: 'http://two.example:80/hook' },
        ];
        const made = kinds.flatMap(kind => FATES.map(fate => ({ kind, fate })));
        const deliveries = inOrder(made.length);
        const all = made.map(({ kind, fate }, i) => ({ ...deliveries[i]!, ...kind, ...fate }));
        for (const each of all) {
          const ref = await store.insert(each);
          const result = each.lastStatus === undefined ? { error: 'timeout' } : { status: each.lastStatus };
          if (each.lastStatus !== undefined || each.state === 'failed') await send(ref, nextOf(each), result);
          if (each.state === 'cancelled') await store.ledger.cancel(each.runId, Date.now());
        }
        return all;
      };
      type Made = Awaited<ReturnType<typeof everything>>[number];

      const fits = (filter: DeliveryFilter, made: Made): boolean => {
        const { status, host, since, until, ...same } = filter;
        const last = made.lastStatus;
        const time = timeOf(made.runId);
        return (
          Object.entries(same).every(([key, value]) => made[key as keyof Made] === value) &&
          (host === undefined || hostOf(made.target) === host) &&
          (status === undefined || (last !== undefined && last >= status.from && last <= status.to)) &&
          (since === undefined || time >= since) &&
          (until === undefined || time < until)
        );
      };

      const states: DeliveryFilter[] = [
        {},
        ...(['pending', 'delivered', 'failed', 'cancelled'] as const).map(state => ({ state })),
        ...(['rejected', 'exhausted', 'blocked'] as const).map(reason => ({ reason })),
        { state: 'failed', reason: 'rejected' },
        { state: 'delivered', reason: 'rejected' },
      ];
      const statuses: DeliveryFilter[] = [
        {},
        { status: { from: 404, to: 404 } },
        { status: { from: 200, to: 299 } },
        { status: { from: 400, to: 599 } },
        { status: { from: 204, to: 404 } },
      ];
      const places: DeliveryFilter[] = [
        {},
        { projectId: 'p-a' },
        { projectId: 'p-a', app: 'y' },
        { app: 'x' },
        { projectId: 'p-none' },
        { host: 'one.example' },
        { host: 'one.example:8080' },
        { host: 'two.example', projectId: 'p-b', app: 'x' },
        { host: 'two.example', projectId: 'p-a' },
      ];

      it('tells those that a filter asks for, however filters are combined, newest first, in pages', async () => {
        const all = await everything();
        const from = timeOf(all[0]!.runId);
        const times: DeliveryFilter[] = [{}, { since: from + 5, until: from + 25.5 }];
        const filters = states.flatMap(state =>
          statuses.flatMap(status =>
            places.flatMap(where => times.map(time => ({ ...state, ...status, ...where, ...time }))),
          ),
        );
        const told = async (filter: DeliveryFilter) => ({ filter, ids: await allIds(filter, 5) });
        for (const { filter, ids } of await Promise.all(filters.map(told))) {
          const expected = idsOf(all.filter(made => fits(filter, made))).toReversed();
          expect([filter, ids]).toEqual([filter, expected]);
        }
      });

      it.each([1, 7, 33, 100])('has pages of %d', async limit => {
        const all = await everything();
        expect(await allIds({}, limit)).toEqual(idsOf(all).toReversed());
        expect(await allIds({ projectId: 'p-a', state: 'failed' }, limit)).toHaveLength(10);
      });

      it('stays right while others arrive and change', async () => {
        const deliveries = inOrder(40);
        for (const delivery of deliveries) await settled(delivery);
        const got: string[] = [];
        let before: string | undefined;
        do {
          const { deliveries: page, next } = await store.ledger.list(
            { projectId: 'p-demo' },
            { limit: 7, ...(before !== undefined && { before }) },
          );
          got.push(...idsOf(page));
          before = next;
          await settled(newDelivery());
          await redeliver(deliveries.find(({ runId }) => runId === got.at(-1))!);
        } while (before !== undefined);
        expect(got).toEqual(idsOf(deliveries).toReversed());
      });

      it('tells of each what there is to tell', async () => {
        const [fresh, failed, delivered, waiting] = inOrder(4, { statusCode: 201, target: OWN });
        await store.insert(fresh!);
        const ref = await store.insert(failed!);
        await send(ref, LATER, { status: 404 });
        await send(ref, REJECTED, { error: 'timeout' });
        await settled(delivered!, DELIVERED, 200);
        await send(await store.insert(waiting!), LATER, { status: 404 });
        const { deliveries, next } = await store.ledger.list({}, { limit: 10 });
        expect(next).toBeUndefined();
        const common = ({ runId, projectId, app, createdAt }: NewDelivery) => ({
          runId,
          projectId,
          app,
          createdAt,
          target: OWN,
          statusCode: 201,
          round: 1,
        });
        expect(deliveries).toEqual([
          { ...common(waiting!), state: 'pending', attempts: 1, lastStatus: 404, dueAt: 1_900_000_000_000 },
          {
            ...common(delivered!),
            state: 'delivered',
            attempts: 1,
            lastStatus: 200,
            settledAt: (await find(delivered!)).settledAt,
          },
          {
            ...common(failed!),
            state: 'failed',
            reason: 'rejected',
            attempts: 2,
            lastError: 'timeout',
            settledAt: (await find(failed!)).settledAt,
          },
          { ...common(fresh!), state: 'pending', attempts: 0, dueAt: fresh!.createdAt },
        ]);
        const asked = [failed!.runId, fresh!.runId, runIdAt(Date.now()), 'no-run-id'];
        const summaries = await store.ledger.summaries(asked);
        const byId = (a: { runId: string }, b: { runId: string }) => (a.runId < b.runId ? -1 : 1);
        expect(summaries.toSorted(byId)).toEqual(
          [deliveries[3], deliveries[2]].toSorted((a, b) => byId(a!, b!)),
        );
      });

      it('goes by what the last attempt came to, not by one before', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        const listed = (status: number) => allIds({ status: { from: status, to: status } }, 10);
        await send(ref, LATER, { status: 404 });
        expect(await listed(404)).toEqual([delivery.runId]);
        await send(ref, LATER, { error: 'timeout' });
        expect(await listed(404)).toEqual([]);
        await send(ref, REJECTED, { status: 500 });
        expect(await listed(500)).toEqual([delivery.runId]);
      });

      it('goes on where the delivery that it was to go on from is gone', async () => {
        const [first, second, third] = inOrder(3);
        for (const delivery of [first!, second!, third!]) await settled(delivery);
        const { next } = await store.ledger.list({}, { limit: 1 });
        expect(next).toBe(third!.runId);
        await redeliver(first!);
        expect(await store.prune(Date.now() + 1_000, 10)).toBe(2);
        const { deliveries } = await store.ledger.list({}, { limit: 10, before: next! });
        expect(idsOf(deliveries)).toEqual([first!.runId]);
        expect(await store.ledger.list({}, { limit: 10, before: 'no-run-id' })).toEqual({ deliveries: [] });
      });
    });

    describe('content', () => {
      it('is what is sent, in memory or in a file, for as long as the delivery is there', async () => {
        const small = newDelivery({ body: { bytes: Buffer.from('{"a":1}') } });
        const large = newDelivery();
        const bytes = randomBytes(300_000);
        await settled(small);
        await settled({ ...large, body: await spooledBody(place.spoolDir, large.runId, bytes) });
        const contentOf = async ({ runId }: NewDelivery) => readBody(await store.ledger.content(runId));
        expect((await contentOf(small))?.toString()).toBe('{"a":1}');
        expect((await contentOf(large))?.equals(bytes)).toBe(true);
        expect(await contentOf(newDelivery())).toBeUndefined();
        await store.prune(Date.now() + 1_000, 10);
        expect(await contentOf(small)).toBeUndefined();
      });
    });

    describe('traceparent', () => {
      it('is kept with the delivery, for its owner and for who looks at it', async () => {
        const delivery = newDelivery({ traceparent: TRACEPARENT, owned: false });
        await store.insert(delivery);
        expect(await find(delivery)).toMatchObject({ traceparent: TRACEPARENT });
        expect(await claimed(delivery)).toMatchObject({ traceparent: TRACEPARENT });
        const without = newDelivery({ owned: false });
        await store.insert(without);
        expect(await find(without)).not.toHaveProperty('traceparent');
        expect(await claimed(without)).not.toHaveProperty('traceparent');
      });
    });

    describe('pendingOf', () => {
      it('counts what is pending, and tells the one that was answered first', async () => {
        expect(await store.ledger.pendingOf()).toEqual({ pending: 0 });
        const [a, b, c, d] = inOrder(4);
        await settled({ ...a!, projectId: 'p-a' });
        await store.insert({ ...b!, projectId: 'p-a', createdAt: 1_800_000_000_500 });
        await store.insert({ ...c!, projectId: 'p-a', createdAt: 1_800_000_000_400, owned: false });
        await store.insert({ ...d!, projectId: 'p-b', createdAt: 1_800_000_000_300 });
        expect(await store.ledger.pendingOf()).toEqual({ pending: 3, oldestAt: 1_800_000_000_300 });
        expect(await store.ledger.pendingOf('p-a')).toEqual({ pending: 2, oldestAt: 1_800_000_000_400 });
        expect(await store.ledger.pendingOf('p-none')).toEqual({ pending: 0 });
      });
    });

    describe('redeliver', () => {
      const ENDS: [string, (delivery: NewDelivery) => Promise<unknown>][] = [
        ['delivered', delivery => settled(delivery, DELIVERED, 200)],
        ['failed', delivery => settled(delivery)],
        [
          'cancelled',
          async delivery => {
            await store.insert(delivery);
            await store.ledger.cancel(delivery.runId, Date.now());
          },
        ],
      ];

      it.each(ENDS)('makes one that was %s pending again, in a new round', async (_, end) => {
        const confidential = { secret: randomBytes(32), authorization: 'Basic eDp5' };
        const delivery = newDelivery({ confidential });
        await end(delivery);
        const before = await find(delivery);
        const at = 1_800_000_000_000;
        expect(await redeliver(delivery, { at })).toEqual({ outcome: 'redelivered', round: 2 });
        const pending = { state: 'pending', round: 2, dueAt: at, reason: undefined, settledAt: undefined };
        expect(await find(delivery)).toEqual({ ...before, ...pending });
        const got = await claimed(delivery);
        expect(got).toMatchObject({ round: 2, attempts: 0, trigger: 'manual', dueAt: at, target: OWN });
        expect(got.confidential.authorization).toBe('Basic eDp5');
        expect(Buffer.from(got.confidential.secret!)).toEqual(confidential.secret);
        expect((await readBody(await store.body(got.ref)))?.toString()).toBe('{"run_id":"x"}');
        await send(got.ref, DELIVERED, { status: 200 });
        const after = await find(delivery);
        expect(after).toMatchObject({ state: 'delivered', round: 2 });
        expect(after).not.toHaveProperty('reason');
        expect(after.attempts.at(-1)).toMatchObject({ round: 2, number: 1, trigger: 'manual' });
        expect(await redeliver(delivery)).toEqual({ outcome: 'redelivered', round: 3 });
      });

      it('leaves one alone that is pending, that is of another project, or that is not there', async () => {
        const delivery = newDelivery({ owned: false });
        await store.insert(delivery);
        expect(await redeliver(delivery)).toEqual({ outcome: 'pending' });
        expect(await redeliver(delivery, { projectId: 'p-other' })).toEqual({ outcome: 'not_found' });
        expect(await redeliver(newDelivery())).toEqual({ outcome: 'not_found' });
        expect(await redeliver({ ...delivery, runId: 'no-run-id' })).toEqual({ outcome: 'not_found' });
        expect(await find(delivery)).toMatchObject({ state: 'pending', round: 1 });
      });

      it('makes one round of many that are asked for at once', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        const answers = await Promise.all(Array.from({ length: 10 }, () => redeliver(delivery)));
        expect(answers.filter(({ outcome }) => outcome === 'redelivered')).toHaveLength(1);
        expect(answers.filter(({ outcome }) => outcome === 'pending')).toHaveLength(9);
        expect(await find(delivery)).toMatchObject({ round: 2 });
      });

      it('lets nothing happen through a reference of the round before', async () => {
        const delivery = newDelivery();
        const old = await store.insert(delivery);
        await store.beginAttempt(old, Date.now());
        await store.ledger.cancel(delivery.runId, Date.now());
        await redeliver(delivery);
        const { ref } = await claimed(delivery);
        const before = await find(delivery);
        expect(await store.endAttempt(old, attempt(1, { status: 200 }), DELIVERED)).toBe(false);
        expect(await store.beginAttempt(old, Date.now())).toBe(false);
        expect(await store.withdrawAttempt(old)).toBe(false);
        expect(await find(delivery)).toEqual(before);
        await send(ref, DELIVERED);
      });

      it('is there for the next node', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        await redeliver(delivery);
        await store.beginAttempt((await claimed(delivery)).ref, Date.now());
        await reopen();
        expect(await store.recover()).toBe(1);
        expect(await claimed(delivery)).toMatchObject({ round: 2, attempts: 1, trigger: 'manual' });
        expect((await find(delivery)).attempts.at(-1)).toMatchObject({ round: 2, error: 'interrupted' });
      });

      it('keeps one from being deleted, and has it counted as pending', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        await redeliver(delivery);
        expect(await store.prune(Date.now() + 1_000, 10)).toBe(0);
        expect((await store.backlog()).pending).toEqual(new Map([['p-demo', 1]]));
      });

      it('tells those who watch', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        const told = vi.fn();
        store.watch(told);
        await redeliver(delivery);
        await vi.waitFor(() => expect(told).toHaveBeenCalled(), WAIT);
      });
    });

    describe('redeliver to another target', () => {
      const secret = randomBytes(32);

      it('takes the secret along, and not the authorization of the call', async () => {
        const delivery = newDelivery({ confidential: { secret, authorization: 'Basic b3du' } });
        await settled(delivery);
        await redeliver(delivery, { to: { target: OTHER } });
        expect(await find(delivery)).toMatchObject({ target: OWN, otherTarget: OTHER });
        const { target, confidential, ref } = await claimed(delivery);
        expect(target).toBe(OTHER);
        expect(confidential).not.toHaveProperty('authorization');
        expect(Buffer.from(confidential.secret!)).toEqual(secret);
        await send(ref, REJECTED, { status: 500 });
        const found = await find(delivery);
        expect(found).toMatchObject({ state: 'failed', target: OWN, otherTarget: OTHER });
        expect(found.attempts[0]).not.toHaveProperty('target');
        expect(found.attempts[1]).toMatchObject({ round: 2, target: OTHER });
        expect((await store.ledger.list({}, { limit: 1 })).deliveries).toMatchObject([{ target: OTHER }]);
        expect(await allIds({ host: hostOf(OWN) }, 10)).toEqual([delivery.runId]);
      });

      it.each([
        ['a secret and an authorization', { secret, authorization: 'Basic b3du' }],
        ['an authorization', { authorization: 'Basic b3du' }],
        ['nothing', {}],
      ])('gives one with %s the authorization that is given', async (_, confidential) => {
        const delivery = newDelivery({ confidential });
        await settled(delivery);
        await redeliver(delivery, { to: { target: OTHER, authorization: 'Basic bmV3' } });
        await reopen();
        const got = await claimed(delivery);
        expect(got).toMatchObject({ target: OTHER, confidential: { authorization: 'Basic bmV3' } });
        expect('secret' in got.confidential).toBe('secret' in confidential);
      });

      it('is for that round alone', async () => {
        const delivery = newDelivery({ confidential: { secret, authorization: 'Basic b3du' } });
        await settled(delivery);
        for (const to of [{ target: OTHER }, { target: `${OTHER}/2`, authorization: 'Basic bmV3' }]) {
          await redeliver(delivery, { to });
          const got = await claimed(delivery);
          expect(got.target).toBe(to.target);
          expect(got.confidential.authorization).toBe(to.authorization);
          await send(got.ref, REJECTED);
        }
        await redeliver(delivery);
        expect(await find(delivery)).not.toHaveProperty('otherTarget');
        const own = await claimed(delivery);
        expect(own).toMatchObject({ target: OWN, confidential: { authorization: 'Basic b3du' } });
        await send(own.ref, DELIVERED);
        expect((await find(delivery)).attempts.map(({ target }) => target)).toEqual([
          undefined,
          OTHER,
          `${OTHER}/2`,
          undefined,
        ]);
      });

      it('records where an attempt went that was cut off or cancelled', async () => {
        const [cut, cancelled] = [newDelivery(), newDelivery()];
        for (const delivery of [cut, cancelled]) {
          await settled(delivery);
          await redeliver(delivery, { to: { target: OTHER } });
          await store.beginAttempt((await claimed(delivery)).ref, Date.now());
        }
        await store.ledger.cancel(cancelled.runId, Date.now());
        await reopen();
        await store.recover();
        for (const delivery of [cut, cancelled])
          expect((await find(delivery)).attempts.at(-1)).toMatchObject({ round: 2, target: OTHER });
      });
    });

    describe('a key', () => {
      const idempotency = { key: 'a key', fingerprint: Buffer.from('a digest') };
      const other = { ...idempotency, fingerprint: Buffer.from('another') };

      it('stands for the round that came with it', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        expect(await redeliver(delivery, { idempotency })).toEqual({ outcome: 'redelivered', round: 2 });
        expect(await redeliver(delivery, { idempotency })).toEqual({ outcome: 'repeated', round: 2 });
        await reopen();
        await store.recover();
        await send((await claimed(delivery)).ref, DELIVERED);
        expect(await redeliver(delivery, { idempotency })).toEqual({ outcome: 'repeated', round: 2 });
        expect(await redeliver(delivery, { idempotency: other })).toEqual({ outcome: 'conflict' });
        expect(await find(delivery)).toMatchObject({ state: 'delivered', round: 2 });
      });

      it('is free for as long as nothing came of it', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        expect(await redeliver(delivery, { idempotency })).toEqual({ outcome: 'pending' });
        await send(ref, REJECTED);
        expect(await redeliver(delivery, { idempotency: other })).toEqual({
          outcome: 'redelivered',
          round: 2,
        });
      });

      it('is of who asks: one project, or all', async () => {
        const delivery = newDelivery();
        const of = async (projectId: string | undefined) => {
          await send((await claimed(delivery)).ref, DELIVERED);
          return redeliver(delivery, { idempotency, ...(projectId !== undefined && { projectId }) });
        };
        await store.insert({ ...delivery, owned: false });
        expect(await of('p-demo')).toEqual({ outcome: 'redelivered', round: 2 });
        expect(await of(undefined)).toEqual({ outcome: 'redelivered', round: 3 });
        expect(await redeliver(delivery, { idempotency, projectId: 'p-other' })).toEqual({
          outcome: 'not_found',
        });
      });

      it('may be used anew after a day', async () => {
        const delivery = newDelivery();
        const at = Date.now();
        await settled(delivery);
        await redeliver(delivery, { idempotency, at });
        await send((await claimed(delivery)).ref, DELIVERED);
        const again = { idempotency: other, at: at + IDEMPOTENCY_MS };
        expect(await redeliver(delivery, { ...again, at: again.at - 1 })).toEqual({ outcome: 'conflict' });
        expect(await redeliver(delivery, again)).toEqual({ outcome: 'redelivered', round: 3 });
      });
    });

    describe('cancel', () => {
      const at = 1_800_000_000_000;

      it.each([true, false])('ends one that waits (owned: %s), for good', async owned => {
        const delivery = newDelivery({ owned });
        const ref = await store.insert(delivery);
        expect(await store.ledger.cancel(delivery.runId, at, 'p-demo')).toBe('cancelled');
        const found = await find(delivery);
        expect(found).toMatchObject({ state: 'cancelled', settledAt: at, attempts: [] });
        expect(found).not.toHaveProperty('dueAt');
        expect(await store.claim(10)).toEqual([]);
        expect(await store.beginAttempt(ref, Date.now())).toBe(false);
        expect((await store.backlog()).pending).toEqual(new Map());
        await reopen();
        expect(await store.recover()).toBe(0);
        expect(await store.claim(10)).toEqual([]);
      });

      it('records the attempt under way, whose end is then nobody’s', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await send(ref, LATER, { status: 404 });
        const startedAt = 1_800_000_000_777;
        await store.beginAttempt(ref, startedAt);
        expect(await store.ledger.cancel(delivery.runId, at)).toBe('cancelled');
        const recorded = await find(delivery);
        expect(recorded.attempts).toMatchObject([
          { number: 1, status: 404 },
          { number: 2, startedAt, error: 'cancelled', round: 1, trigger: 'automatic' },
        ]);
        expect(await store.endAttempt(ref, attempt(2, { startedAt, status: 200 }), DELIVERED)).toBe(false);
        expect(await find(delivery)).toEqual(recorded);
        expect(await store.ledger.summaries([delivery.runId])).toMatchObject([
          { state: 'cancelled', attempts: 2, lastError: 'cancelled' },
        ]);
      });

      it('leaves one alone that has ended, that is of another project, or that is not there', async () => {
        const delivery = newDelivery();
        await settled(delivery);
        const before = await find(delivery);
        expect(await store.ledger.cancel(delivery.runId, at)).toBe('settled');
        expect(await find(delivery)).toEqual(before);
        expect(await store.ledger.cancel(delivery.runId, at, 'p-other')).toBe('not_found');
        expect(await store.ledger.cancel(runIdAt(Date.now()), at)).toBe('not_found');
        expect(await store.ledger.cancel('no-run-id', at)).toBe('not_found');
      });
    });

    describe('a job', () => {
      const FILTER: DeliveryFilter = { projectId: 'p-demo', state: 'failed', status: { from: 500, to: 599 } };
      const newJob = (more: object = {}) => ({
        id: uuidv7(),
        projectId: 'p-demo',
        filter: FILTER,
        createdAt: 1_800_000_000_000,
        total: 3,
        ...more,
      });
      const at = 1_800_000_001_000;

      it('is told from its beginning to its end', async () => {
        const job = newJob();
        const begun = { ...job, state: 'running', seen: 0, redelivered: 0 };
        expect(await store.ledger.addJob(job)).toEqual(begun);
        expect(await store.ledger.findJob(job.id)).toEqual(begun);
        const { ref, ...taken } = (await store.ledger.claimJob())!;
        expect(taken).toEqual(begun);
        expect(await store.ledger.claimJob()).toBeUndefined();

        const [failed, pending, delivered] = inOrder(3, { owned: true });
        await settled(failed!);
        await store.insert(pending!);
        await settled(delivered!, DELIVERED, 200);
        const runIds = [delivered!.runId, pending!.runId];
        const half = { ...begun, seen: 2, redelivered: 1 };
        expect(await store.ledger.stepJob(ref, { runIds, next: pending!.runId, at })).toEqual(half);
        expect(await store.ledger.findJob(job.id)).toEqual(half);
        const done = { ...half, seen: 3, redelivered: 2, state: 'done', endedAt: at };
        expect(await store.ledger.stepJob(ref, { runIds: [failed!.runId], at })).toEqual(done);
        expect(await store.ledger.findJob(job.id)).toEqual(done);
        expect(await store.ledger.stepJob(ref, { runIds: [], at })).toBeUndefined();
        expect(await store.ledger.claimJob()).toBeUndefined();

        const round = { state: 'pending', round: 2, dueAt: at };
        expect(await Promise.all([failed!, delivered!].map(find))).toMatchObject([round, round]);
        expect(await find(pending!)).toMatchObject({ round: 1 });
        expect(await store.claim(10)).toMatchObject([{ trigger: 'manual' }, { trigger: 'manual' }]);
      });

      it('sends to the delivery’s own target, and touches no other project', async () => {
        const [mine, foreign] = [newDelivery(), newDelivery({ projectId: 'p-other' })];
        await settled(mine);
        await redeliver(mine, { to: { target: OTHER } });
        await send((await claimed(mine)).ref, REJECTED);
        await settled(foreign);
        await store.ledger.addJob(newJob());
        const { ref } = (await store.ledger.claimJob())!;
        const runIds = [mine.runId, foreign.runId, runIdAt(Date.now())];
        expect(await store.ledger.stepJob(ref, { runIds, at })).toMatchObject({ seen: 3, redelivered: 1 });
        expect(await claimed(mine)).toMatchObject({ round: 3, target: OWN });
        expect(await find(foreign)).toMatchObject({ state: 'failed', round: 1 });
      });

      it('may be for all projects', async () => {
        const job = { id: uuidv7(), filter: {}, createdAt: at, total: 1 };
        const delivery = newDelivery({ projectId: 'p-other' });
        await settled(delivery);
        expect(await store.ledger.addJob(job)).not.toHaveProperty('projectId');
        const { ref } = (await store.ledger.claimJob())!;
        const runIds = [delivery.runId];
        expect(await store.ledger.stepJob(ref, { runIds, at })).toMatchObject({ redelivered: 1 });
        expect(await store.ledger.findJob(job.id, 'p-demo')).toBeUndefined();
      });

      it('is for its own project alone', async () => {
        const job = newJob();
        await store.ledger.addJob(job);
        expect(await store.ledger.findJob(job.id, 'p-demo')).toBeDefined();
        expect(await store.ledger.findJob(job.id, 'p-other')).toBeUndefined();
        expect(await store.ledger.findJob(uuidv7())).toBeUndefined();
      });

      it('goes on with the next node where the last one died', async () => {
        await store.ledger.addJob(newJob());
        const delivery = newDelivery();
        await settled(delivery);
        const { ref: old } = (await store.ledger.claimJob())!;
        await store.ledger.stepJob(old, { runIds: [], next: delivery.runId, at });
        await reopen();
        expect(await store.ledger.claimJob()).toBeUndefined();
        await store.recover();
        expect(await store.ledger.stepJob(old, { runIds: [delivery.runId], at })).toBeUndefined();
        const taken = await store.ledger.claimJob();
        expect(taken).toMatchObject({ before: delivery.runId, state: 'running' });
        expect(await store.ledger.stepJob(old, { runIds: [delivery.runId], at })).toBeUndefined();
        expect(await find(delivery)).toMatchObject({ state: 'failed', round: 1 });
        expect(await store.ledger.stepJob(taken!.ref, { runIds: [], at })).toMatchObject({ state: 'done' });
      });

      it('is given up by a node that releases what it owns', async () => {
        await store.ledger.addJob(newJob());
        const { ref } = (await store.ledger.claimJob())!;
        await store.release();
        expect(await store.ledger.stepJob(ref, { runIds: [], at })).toBeUndefined();
        expect(await store.ledger.claimJob()).toBeDefined();
      });

      it('comes back for its key', async () => {
        const idempotency = { key: 'a key', fingerprint: Buffer.from('a digest') };
        const job = newJob();
        const begun = await store.ledger.addJob({ ...job, idempotency });
        expect(await store.ledger.addJob({ ...newJob(), idempotency })).toEqual(begun);
        const other = { ...idempotency, fingerprint: Buffer.from('another') };
        expect(await store.ledger.addJob({ ...newJob(), idempotency: other })).toBe('conflict');
        const foreign = newJob({ projectId: 'p-other', idempotency: other });
        expect(await store.ledger.addJob(foreign)).toMatchObject({ id: foreign.id });
        expect(await store.ledger.claimJob()).toMatchObject({ id: job.id });
        expect(await store.ledger.claimJob()).toMatchObject({ id: foreign.id });
        expect(await store.ledger.claimJob()).toBeUndefined();
        const late = newJob({ idempotency: other, createdAt: job.createdAt + IDEMPOTENCY_MS });
        expect(await store.ledger.addJob(late)).toMatchObject({ id: late.id });
      });
    });

    describe('follow', () => {
      const CHANGES: [string, (delivery: NewDelivery) => Promise<unknown>][] = [
        ['was made', delivery => store.insert(delivery)],
        ['had an attempt', delivery => settled(delivery)],
        [
          'was cancelled',
          async ({ runId }) => {
            await store.ledger.cancel(runId, Date.now());
          },
        ],
        ['has a new round', delivery => redeliver(delivery)],
      ];

      it('tells what has changed, and nothing after its end', async () => {
        const heard = new Set<string>();
        const end = await store.ledger.follow(runIds => runIds.forEach(runId => heard.add(runId)));
        const [made, sent, cancelled, redelivered] = Array.from({ length: 4 }, () => newDelivery());
        const told = async (delivery: NewDelivery) => {
          await vi.waitUntil(() => heard.has(delivery.runId), WAIT);
          heard.clear();
        };
        const before: Record<string, NewDelivery> = {
          'was made': made!,
          'had an attempt': sent!,
          'was cancelled': cancelled!,
          'has a new round': redelivered!,
        };
        await store.insert(cancelled!);
        await told(cancelled!);
        await settled(redelivered!);
        await told(redelivered!);
        for (const [what, change] of CHANGES) {
          await change(before[what]!);
          await told(before[what]!);
        }
        end();
        const again = vi.fn();
        const endAgain = await store.ledger.follow(again);
        heard.clear();
        await store.insert(newDelivery());
        await vi.waitUntil(() => again.mock.calls.length > 0, WAIT);
        expect(heard).toEqual(new Set());
        endAgain();
      });
    });
  });
}
