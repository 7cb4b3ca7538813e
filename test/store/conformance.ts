/**
 * What every store must do, whatever it is made of. `openStore` opens the store of a place as a node that
 * never was before; a store that was closed with deliveries of its own stands for a node that died.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { DeliveryRef, FailureReason, Next, Store } from '../../src/store/store.ts';
import { attempt, newDelivery, readBody, runIdAt, spooledBody, temporaryDirectory } from './samples.ts';

export interface Place {
  readonly dir: string;
  readonly spoolDir: string;
}

export type OpenStore = (place: Place) => Promise<Store>;

const LATER: Next = { state: 'pending', dueAt: 1_900_000_000_000 };
const DELIVERED: Next = { state: 'delivered' };

export function storeConformance(name: string, openStore: OpenStore): void {
  describe(`${name} as a store`, () => {
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
    /** Runs one attempt from beginning to end. */
    const send = async (ref: DeliveryRef, number: number, next: Next) => {
      expect(await store.beginAttempt(ref, Date.now())).toBe(true);
      expect(await store.endAttempt(ref, attempt(number, { status: 404 }), next)).toBe(true);
    };

    beforeEach(async () => {
      const dir = temporaryDirectory();
      place = { dir, spoolDir: join(dir, 'spool') };
      store = await open();
    });

    describe('life of a delivery', () => {
      it('tells a new one as pending, due at once, with no attempts', async () => {
        const delivery = newDelivery({ statusCode: 201, createdAt: 1_800_000_000_123 });
        await store.insert(delivery);
        const { runId, projectId, app, target } = delivery;
        const { signed: _signed, ...found } = (await store.find(runId))!;
        expect(found).toEqual({
          runId,
          projectId,
          app,
          target,
          statusCode: 201,
          createdAt: 1_800_000_000_123,
          state: 'pending',
          round: 1,
          attempts: [],
          dueAt: 1_800_000_000_123,
        });
      });

      it('records an attempt in full', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        const result = attempt(1, {
          startedAt: 1_800_000_000_500,
          timings: {
            queueMs: 0.25,
            dnsMs: 1.5,
            connectMs: 2.5,
            tlsMs: 3.5,
            firstByteMs: 9.125,
            totalMs: 10.75,
          },
          status: 200,
          headers: 'Server: "a", \\b\nX-Größe: {NULL}\tü',
          excerpt: Buffer.from('received'),
        });
        await store.beginAttempt(ref, result.startedAt);
        await store.endAttempt(ref, result, DELIVERED);

        const found = await store.find(delivery.runId);
        expect(found).toMatchObject({ state: 'delivered', round: 1 });
        expect(found).not.toHaveProperty('dueAt');
        expect(found?.settledAt).toBeGreaterThan(0);
        const [recorded] = found!.attempts;
        expect({ ...recorded, excerpt: Buffer.from(recorded!.excerpt!).toString() }).toEqual({
          ...result,
          round: 1,
          trigger: 'automatic',
          excerpt: 'received',
        });
      });

      it('leaves out of an attempt what there was not', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        const result = attempt(1, { error: 'connection_refused' });
        await store.beginAttempt(ref, result.startedAt);
        await store.endAttempt(ref, result, LATER);
        const found = await store.find(delivery.runId);
        expect(found?.attempts).toEqual([{ ...result, round: 1, trigger: 'automatic' }]);
        expect(found).toMatchObject({ state: 'pending', dueAt: 1_900_000_000_000 });
      });

      it('keeps the attempts in their order', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await send(ref, 1, LATER);
        await send(ref, 2, LATER);
        await send(ref, 3, { state: 'failed', reason: 'exhausted' });
        const found = await store.find(delivery.runId);
        expect(found).toMatchObject({ state: 'failed', reason: 'exhausted' });
        expect(found?.attempts.map(({ number }) => number)).toEqual([1, 2, 3]);
      });

      it.each<FailureReason>(['exhausted', 'rejected', 'blocked'])('fails as %s', async reason => {
        const delivery = newDelivery();
        await send(await store.insert(delivery), 1, { state: 'failed', reason });
        expect(await store.find(delivery.runId)).toMatchObject({ state: 'failed', reason });
      });

      it('takes times that have fractions', async () => {
        const delivery = newDelivery({ createdAt: 1_800_000_000_000.5 });
        const ref = await store.insert(delivery);
        await store.beginAttempt(ref, 1_800_000_001_000.25);
        await store.endAttempt(ref, attempt(1), { state: 'pending', dueAt: 1_800_000_002_000.75 });
        expect((await store.find(delivery.runId))?.dueAt).toBeCloseTo(1_800_000_002_000.75, 0);
      });

      it('does not find what there is not', async () => {
        await store.insert(newDelivery());
        expect(await store.find(runIdAt(Date.now()))).toBeUndefined();
        expect(await store.find('no-run-id')).toBeUndefined();
        expect(await store.find("' OR 1=1 --")).toBeUndefined();
      });

      it('tells apart the runs of one millisecond', async () => {
        const ms = Date.now();
        const runIds = Array.from({ length: 50 }, () => runIdAt(ms));
        await Promise.all(runIds.map((runId, i) => store.insert(newDelivery({ runId, app: `app-${i}` }))));
        const found = await Promise.all(runIds.map(runId => store.find(runId)));
        expect(found.map(record => record?.app)).toEqual(runIds.map((_, i) => `app-${i}`));
      });
    });

    describe('ownership', () => {
      it('counts and records nothing for a delivery that nobody claimed', async () => {
        const delivery = newDelivery({ owned: false });
        const ref = await store.insert(delivery);
        expect(await store.beginAttempt(ref, Date.now())).toBe(false);
        expect(await store.withdrawAttempt(ref)).toBe(false);
        expect(await store.endAttempt(ref, attempt(1), DELIVERED)).toBe(false);
        expect(await store.find(delivery.runId)).toMatchObject({ state: 'pending', attempts: [] });
      });

      it('counts and records nothing once it has settled', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await send(ref, 1, DELIVERED);
        expect(await store.beginAttempt(ref, Date.now())).toBe(false);
        expect(await store.withdrawAttempt(ref)).toBe(false);
        expect(await store.endAttempt(ref, attempt(2), { state: 'failed', reason: 'rejected' })).toBe(false);
        const found = await store.find(delivery.runId);
        expect(found).toMatchObject({ state: 'delivered' });
        expect(found?.attempts).toHaveLength(1);
      });

      it("counts and records nothing for another node's delivery", async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await reopen();
        expect(await store.beginAttempt(ref, Date.now())).toBe(false);
        expect(await store.withdrawAttempt(ref)).toBe(false);
        expect(await store.endAttempt(ref, attempt(1), DELIVERED)).toBe(false);
        expect(await store.find(delivery.runId)).toMatchObject({ state: 'pending', attempts: [] });
      });

      it('says no for a delivery that does not exist', async () => {
        const ref = await store.insert(newDelivery());
        await send(ref, 1, DELIVERED);
        await store.prune(Date.now() + 1_000, 10);
        expect(await store.beginAttempt(ref, Date.now())).toBe(false);
        expect(await store.withdrawAttempt(ref)).toBe(false);
        expect(await store.endAttempt(ref, attempt(1), DELIVERED)).toBe(false);
        expect(await store.body(ref)).toBeUndefined();
      });
    });

    describe('tenure', () => {
      it('is a number for as long as the store is open', async () => {
        const { tenure } = store;
        expect(tenure).toEqual(expect.any(Number));
        await store.insert(newDelivery());
        expect(store.tenure).toBe(tenure);
        await store.close();
        expect(store.tenure).toBeUndefined();
      });
    });

    describe('withdrawAttempt', () => {
      /** What a node that takes over finds of it. */
      const found = async () => {
        await reopen();
        await store.recover();
        const [claimed] = await store.claim(1);
        return claimed;
      };

      it.each([0, 1, 2])('gives back the attempt after %d others, as if it had not begun', async ended => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        for (let number = 1; number <= ended; number += 1) await send(ref, number, LATER);
        const before = await store.find(delivery.runId);
        await store.beginAttempt(ref, Date.now());
        expect(await store.withdrawAttempt(ref)).toBe(true);
        expect(await store.find(delivery.runId)).toEqual(before);
        const { runId } = delivery;
        expect(await found()).toMatchObject({ runId, round: 1, attempts: ended, dueAt: before!.dueAt });
        expect((await store.find(delivery.runId))?.attempts).toHaveLength(ended);
      });

      it('gives back the one that was counted along with the insert', async () => {
        const delivery = { ...newDelivery(), begunAt: Date.now() };
        const ref = await store.insert(delivery);
        expect(await store.withdrawAttempt(ref)).toBe(true);
        expect(await found()).toMatchObject({ runId: delivery.runId, attempts: 0 });
      });

      it('leaves the delivery this node’s, its next attempt having the same number', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await send(ref, 1, LATER);
        for (let times = 0; times < 3; times += 1) {
          expect(await store.beginAttempt(ref, Date.now())).toBe(true);
          expect(await store.withdrawAttempt(ref)).toBe(true);
        }
        await store.beginAttempt(ref, 1_800_000_000_777);
        await reopen();
        await store.recover();
        expect(await store.claim(1)).toMatchObject([{ runId: delivery.runId, attempts: 2 }]);
        expect((await store.find(delivery.runId))?.attempts).toMatchObject([
          { number: 1, status: 404 },
          { number: 2, startedAt: 1_800_000_000_777, error: 'interrupted' },
        ]);
      });

      it('has nothing to give back where no attempt is under way', async () => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        await send(ref, 1, LATER);
        expect(await store.withdrawAttempt(ref)).toBe(false);
        expect(await found()).toMatchObject({ attempts: 1 });
      });
    });

    describe('claim', () => {
      it('takes the oldest first, up to the limit, and none twice', async () => {
        const start = Date.now();
        const runIds = Array.from({ length: 30 }, (_, i) => runIdAt(start + i));
        for (const runId of runIds.toReversed()) await store.insert(newDelivery({ runId, owned: false }));
        const claims = [await store.claim(12), await store.claim(100), await store.claim(100)];
        expect(claims.map(claimed => claimed.map(({ runId }) => runId))).toEqual([
          runIds.slice(0, 12),
          runIds.slice(12),
          [],
        ]);
      });

      it('gives claims at the same moment different deliveries', async () => {
        await Promise.all(Array.from({ length: 40 }, () => store.insert(newDelivery({ owned: false }))));
        const claims = await Promise.all([store.claim(15), store.claim(15), store.claim(15)]);
        const refs = claims.flat().map(({ ref }) => ref);
        expect(refs).toHaveLength(40);
        expect(new Set(refs)).toHaveLength(40);
      });

      it('returns what a dispatcher needs, the confidential opened', async () => {
        const confidential = { secret: randomBytes(1024), authorization: 'Basic dXNlcjpww6Rzcw==' };
        const delivery = newDelivery({ confidential, owned: false, createdAt: 1_800_000_000_000 });
        await store.insert(delivery);
        const [claimed] = await store.claim(1);
        const { runId, projectId, app, target } = delivery;
        expect({
          ...claimed,
          confidential: {
            ...claimed!.confidential,
            secret: Buffer.from(claimed!.confidential.secret!),
          },
        }).toEqual({
          ref: claimed!.ref,
          runId,
          projectId,
          app,
          target,
          createdAt: 1_800_000_000_000,
          confidential,
          round: 1,
          attempts: 0,
          trigger: 'automatic',
          dueAt: 1_800_000_000_000,
        });
      });

      it.each([
        ['nothing', {}],
        ['a secret alone', { secret: new Uint8Array([1, 2, 3]) }],
        ['an authorization alone', { authorization: 'Basic eDp5' }],
      ])('opens %s', async (_, confidential) => {
        await store.insert(newDelivery({ confidential, owned: false }));
        const [claimed] = await store.claim(1);
        expect(claimed?.confidential).toEqual(confidential);
      });

      it('makes the delivery this node’s to send, and leaves owned ones alone', async () => {
        await store.insert(newDelivery());
        await store.insert(newDelivery({ owned: false }));
        const claimed = await store.claim(10);
        expect(claimed).toHaveLength(1);
        await send(claimed[0]!.ref, 1, DELIVERED);
      });
    });

    describe('recover', () => {
      /** Leaves a delivery behind after `ended` whole attempts and, if `cut`, one that is under way. */
      const leave = async (ended: number, cut: boolean) => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        for (let number = 1; number <= ended; number += 1) await send(ref, number, LATER);
        if (cut) await store.beginAttempt(ref, 1_800_000_000_777);
        return delivery.runId;
      };

      it('has nothing to do for the node’s own and for unowned deliveries', async () => {
        await store.insert(newDelivery());
        await store.insert(newDelivery({ owned: false }));
        expect(await store.recover()).toBe(0);
        expect(await store.claim(10)).toHaveLength(1);
      });

      it.each([
        { ended: 0, attempts: 1 },
        { ended: 1, attempts: 2 },
        // A round never ends on an interrupted attempt: the third is made again.
        { ended: 2, attempts: 2 },
      ])('records the attempt that was cut off after $ended others', async ({ ended, attempts }) => {
        const runId = await leave(ended, true);
        await reopen();
        const start = Date.now();
        expect(await store.recover()).toBe(1);
        const [claimed] = await store.claim(1);
        expect(claimed).toMatchObject({ runId, round: 1, attempts });
        expect(claimed?.dueAt).toBeGreaterThanOrEqual(start);
        const found = await store.find(runId);
        expect(found?.attempts).toHaveLength(ended + 1);
        expect(found?.attempts.at(-1)).toEqual({
          round: 1,
          number: ended + 1,
          trigger: 'automatic',
          startedAt: 1_800_000_000_777,
          timings: { queueMs: 0, totalMs: 0 },
          error: 'interrupted',
        });
      });

      it.each([0, 1, 2])('changes nothing of what waited after %d attempts', async ended => {
        const runId = await leave(ended, false);
        const before = await store.find(runId);
        await reopen();
        expect(await store.recover()).toBe(1);
        const [claimed] = await store.claim(1);
        expect(claimed).toMatchObject({ runId, round: 1, attempts: ended, dueAt: before!.dueAt });
        expect(await store.find(runId)).toEqual(before);
      });

      it('records the attempt that was counted along with the insert', async () => {
        const delivery = { ...newDelivery(), begunAt: 1_800_000_000_777 };
        await store.insert(delivery);
        expect((await store.find(delivery.runId))?.attempts).toEqual([]);
        await reopen();
        expect(await store.recover()).toBe(1);
        expect(await store.claim(1)).toMatchObject([{ runId: delivery.runId, attempts: 1 }]);
        expect((await store.find(delivery.runId))?.attempts).toMatchObject([
          { number: 1, startedAt: 1_800_000_000_777, error: 'interrupted' },
        ]);
      });

      it('gives the third attempt again as often as it is cut off', async () => {
        const runId = await leave(2, true);
        for (let crash = 0; crash < 3; crash += 1) {
          await reopen();
          await store.recover();
          const [claimed] = await store.claim(1);
          expect(claimed).toMatchObject({ attempts: 2 });
          await store.beginAttempt(claimed!.ref, Date.now());
        }
        await reopen();
        await store.recover();
        const [claimed] = await store.claim(1);
        await send(claimed!.ref, 3, { state: 'failed', reason: 'exhausted' });
        const found = await store.find(runId);
        expect(found?.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 3, 3, 3, 3]);
      });

      it('frees very many, and only what is pending', async () => {
        const settled = await store.insert(newDelivery());
        await send(settled, 1, DELIVERED);
        await Promise.all(Array.from({ length: 1_300 }, () => store.insert(newDelivery())));
        await reopen();
        expect(await store.recover()).toBe(1_300);
        expect(await store.recover()).toBe(0);
        expect(await store.claim(2_000)).toHaveLength(1_300);
      });
    });

    describe('release', () => {
      it('gives up the node’s own deliveries, for it or others to claim again', async () => {
        const waiting = newDelivery({ createdAt: 1_800_000_000_000 });
        const begun = newDelivery();
        const refs = [await store.insert(waiting), await store.insert(begun)];
        await store.insert(newDelivery({ owned: false }));
        await send(await store.insert(newDelivery()), 1, DELIVERED);
        await store.beginAttempt(refs[1]!, 1_800_000_000_777);

        expect(await store.release()).toBe(2);
        for (const ref of refs) {
          expect(await store.beginAttempt(ref, Date.now())).toBe(false);
          expect(await store.withdrawAttempt(ref)).toBe(false);
          expect(await store.endAttempt(ref, attempt(1), DELIVERED)).toBe(false);
        }
        expect(await store.release()).toBe(0);

        const claimed = new Map((await store.claim(10)).map(each => [each.runId, each]));
        expect(claimed).toHaveLength(3);
        expect(claimed.get(waiting.runId)).toMatchObject({ attempts: 0, dueAt: 1_800_000_000_000 });
        expect(claimed.get(begun.runId)).toMatchObject({ attempts: 1 });
        await send(claimed.get(waiting.runId)!.ref, 1, DELIVERED);
      });

      it.each([
        { ended: 0, attempts: 1 },
        { ended: 1, attempts: 2 },
        // As after a crash, a round does not end on an interrupted attempt.
        { ended: 2, attempts: 2 },
      ])('records the attempt under way after $ended others', async ({ ended, attempts }) => {
        const delivery = newDelivery();
        const ref = await store.insert(delivery);
        for (let number = 1; number <= ended; number += 1) await send(ref, number, LATER);
        await store.beginAttempt(ref, 1_800_000_000_777);
        const start = Date.now();
        expect(await store.release()).toBe(1);
        const [claimed] = await store.claim(1);
        expect(claimed).toMatchObject({ runId: delivery.runId, round: 1, attempts });
        expect(claimed?.dueAt).toBeGreaterThanOrEqual(start);
        expect((await store.find(delivery.runId))?.attempts.at(-1)).toEqual({
          round: 1,
          number: ended + 1,
          trigger: 'automatic',
          startedAt: 1_800_000_000_777,
          timings: { queueMs: 0, totalMs: 0 },
          error: 'interrupted',
        });
      });

      it('leaves alone what another node had, and gives up very many', async () => {
        await store.insert(newDelivery());
        await reopen();
        await Promise.all(Array.from({ length: 1_300 }, () => store.insert(newDelivery())));
        expect(await store.release()).toBe(1_300);
        expect(await store.claim(1_300)).toHaveLength(1_300);
      });
    });

    describe('bodies', () => {
      it.each([0, 1, 1_000, 100_000, 5 * 1024 * 1024])('keeps %d bytes', async size => {
        const bytes = randomBytes(size);
        const ref = await store.insert(newDelivery({ body: { bytes } }));
        await reopen();
        expect((await readBody(await store.body(ref)))?.equals(bytes)).toBe(true);
      });

      it('keeps exactly the view it is given, and leaves it usable', async () => {
        const whole = Buffer.from('before|body|after');
        const bytes = whole.subarray(7, 11);
        const ref = await store.insert(newDelivery({ body: { bytes } }));
        expect(bytes.toString()).toBe('body');
        expect((await readBody(await store.body(ref)))?.toString()).toBe('body');
      });

      it.each([1, 300_000, 3 * 1024 * 1024 + 1])('takes over a file of %d bytes', async size => {
        const delivery = newDelivery();
        const bytes = randomBytes(size);
        const body = await spooledBody(place.spoolDir, delivery.runId, bytes);
        const ref = await store.insert({ ...delivery, body });
        await reopen();
        expect((await readBody(await store.body(ref)))?.equals(bytes)).toBe(true);
        // From its beginning each time.
        expect((await readBody(await store.body(ref)))?.equals(bytes)).toBe(true);
      });

      it('refuses a file that is not in the spool', async () => {
        const body = { file: join(place.dir, 'elsewhere'), size: 3 };
        await expect(store.insert(newDelivery({ body }))).rejects.toThrow('not in the spool');
      });
    });

    describe('backlog', () => {
      it('counts what is pending, owned or not, by project', async () => {
        const settled = await store.insert(newDelivery({ projectId: 'p-a' }));
        await send(settled, 1, DELIVERED);
        await store.insert(newDelivery({ projectId: 'p-a' }));
        await store.insert(newDelivery({ projectId: 'p-a', owned: false }));
        await store.insert(newDelivery({ projectId: 'p-b' }));
        await send(await store.insert(newDelivery({ projectId: 'p-c' })), 1, DELIVERED);
        expect((await store.backlog()).pending).toEqual(
          new Map([
            ['p-a', 2],
            ['p-b', 1],
          ]),
        );
      });
    });

    describe('prune', () => {
      it('deletes what settled before, with its attempts and its file, and nothing else', async () => {
        const old = newDelivery();
        const body = await spooledBody(place.spoolDir, old.runId, randomBytes(10));
        await send(await store.insert({ ...old, body }), 1, DELIVERED);
        const pending = newDelivery({ createdAt: 0 });
        await store.insert(pending);

        const settledAt = (await store.find(old.runId))!.settledAt!;
        expect(await store.prune(settledAt, 10)).toBe(0);
        expect(await store.prune(settledAt + 1, 10)).toBe(1);
        expect(await store.find(old.runId)).toBeUndefined();
        expect(existsSync(join(place.spoolDir, old.runId))).toBe(false);
        expect(await store.find(pending.runId)).toMatchObject({ state: 'pending' });
      });

      it('deletes no more than the limit, however large', async () => {
        const refs = await Promise.all(Array.from({ length: 450 }, () => store.insert(newDelivery())));
        await Promise.all(refs.map(ref => store.endAttempt(ref, attempt(1), DELIVERED)));
        const future = Date.now() + 1_000;
        expect(await store.prune(future, 5)).toBe(5);
        expect(await store.prune(future, 425)).toBe(425);
        expect(await store.prune(future, 425)).toBe(20);
        expect(await store.prune(future, 425)).toBe(0);
      });
    });

    describe('durability', () => {
      it('has all of 2,000 deliveries that were inserted at once', async () => {
        const deliveries = Array.from({ length: 2_000 }, (_, i) =>
          newDelivery({ body: { bytes: Buffer.from(`body ${i}`) }, owned: i % 2 === 0 }),
        );
        const refs = await Promise.all(deliveries.map(delivery => store.insert(delivery)));
        expect(new Set(refs)).toHaveLength(2_000);
        await reopen();
        const found = await Promise.all(deliveries.map(({ runId }) => store.find(runId)));
        expect(found.filter(record => record?.state !== 'pending')).toEqual([]);
        const bodies = await Promise.all(refs.map(ref => store.body(ref)));
        expect(bodies.map(body => body && 'bytes' in body && Buffer.from(body.bytes).toString())).toEqual(
          deliveries.map((_, i) => `body ${i}`),
        );
      });

      it('writes what is queued before it closes', async () => {
        const deliveries = Array.from({ length: 700 }, () => newDelivery());
        const inserts = Promise.all(deliveries.map(delivery => store.insert(delivery)));
        await Promise.all([store.close(), store.close()]);
        expect(await inserts).toHaveLength(700);
        expect(store.available).toBe(false);
        await expect(store.insert(newDelivery())).rejects.toThrow('not open');
        store = await open();
        expect((await store.backlog()).pending).toEqual(new Map([['p-demo', 700]]));
      });

      it('fails a bad operation alone', async () => {
        const deliveries = Array.from({ length: 50 }, (_, i) =>
          newDelivery({ statusCode: i % 10 === 3 ? 200.5 : 200 }),
        );
        const settled = await Promise.allSettled(deliveries.map(delivery => store.insert(delivery)));
        expect(settled.map(({ status }) => status)).toEqual(
          deliveries.map(({ statusCode }) => (statusCode === 200 ? 'fulfilled' : 'rejected')),
        );
        expect((await store.backlog()).pending).toEqual(new Map([['p-demo', 45]]));
        expect(store.available).toBe(true);
      });
    });
  });
}
