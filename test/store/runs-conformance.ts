/**
 * What every store must do with runs, whatever it is made of. `openStore` opens the store of a place as a node
 * that never was before; a store that was closed with runs of its own stands for a node that died.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  type ClaimedRun,
  IDEMPOTENCY_MS,
  type NewRun,
  REQUEST_SUFFIX,
  type RunEnd,
  type RunFilter,
  type RunOutcome,
  type RunRef,
  type RunState,
  type WantedRuns,
} from '../../src/store/runs.ts';
import type { NewDelivery, Store } from '../../src/store/store.ts';
import type { OpenStore, Place } from './conformance.ts';
import {
  attempt,
  newDelivery,
  newRun,
  readBody,
  runIdAt,
  spooledBody,
  temporaryDirectory,
} from './samples.ts';

const T = 1_800_000_000_000;
const MANY = 10_000;
const RESULT: RunOutcome = { result: { bytes: Buffer.from('{"result":1}') } };
const WEBHOOK = { target: 'https://receiver.example/hook?a=1', confidential: {} };

function wanted(limit: number, overrides: Partial<WantedRuns> = {}): WantedRuns {
  return { projectId: 'p-demo', app: 'hello', limit, each: false, ...overrides };
}

function ending(overrides: Partial<RunEnd> = {}): RunEnd {
  return { state: 'succeeded', endedAt: Date.now(), statusCode: 200, ...overrides };
}

/** What a run with a webhook ends with. */
function deliveryOf(run: NewRun, overrides: Partial<NewDelivery> = {}): { delivery: NewDelivery } {
  return {
    delivery: newDelivery({ runId: run.runId, projectId: run.projectId, app: run.app, ...overrides }),
  };
}

/** Runs of one app that came one after the other. */
function newRuns(count: number, overrides: Partial<NewRun> = {}): NewRun[] {
  const start = Date.now() - 60_000;
  return Array.from({ length: count }, (_, i) => newRun({ ...overrides, createdAt: start + i }));
}

function idsOf(runs: readonly { runId: string }[]): string[] {
  return runs.map(({ runId }) => runId);
}

export function runsConformance(name: string, openStore: OpenStore): void {
  describe(`${name} as a store of runs`, () => {
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
    const insertAll = (runs: readonly NewRun[]) => Promise.all(runs.map(run => store.runs.insert(run)));
    const claim = (limit = MANY) => store.runs.claim([wanted(limit)]);
    /** Takes one that waits, and all that wait beside it. */
    const claimed = async ({ runId }: NewRun): Promise<ClaimedRun> => {
      const found = (await claim()).find(each => each.runId === runId);
      expect(found).toBeDefined();
      return found!;
    };
    /** Inserts a run and takes it. */
    const take = async (run: NewRun): Promise<RunRef> => {
      await store.runs.insert(run);
      return (await claimed(run)).ref;
    };
    const begun = async (run: NewRun, startedAt = Date.now()): Promise<RunRef> => {
      const ref = await take(run);
      expect(await store.runs.begin(ref, startedAt)).toBe('begun');
      return ref;
    };
    const ended = async (run: NewRun, end = ending(), outcome = RESULT): Promise<void> => {
      expect(await store.runs.end(await begun(run), end, outcome)).toBeDefined();
    };
    const find = ({ projectId, runId }: NewRun) => store.runs.find(projectId, runId);
    const resultOf = async ({ projectId, runId }: NewRun) =>
      readBody(await store.runs.result(projectId, runId));
    const spooled = (name: string) => existsSync(join(place.spoolDir, name));

    /** Nothing may happen through this one any more. */
    const expectLost = async (ref: RunRef, run: NewRun) => {
      expect(await store.runs.begin(ref, Date.now())).toBe('lost');
      expect(await store.runs.withdraw(ref)).toBe(false);
      expect(await store.runs.end(ref, ending(), RESULT)).toBeUndefined();
      expect(await store.runs.end(ref, ending(), deliveryOf(run))).toBeUndefined();
    };

    beforeEach(async () => {
      const dir = temporaryDirectory();
      place = { dir, spoolDir: join(dir, 'spool') };
      store = await open();
    });

    describe('insert', () => {
      it('tells a new one as queued', async () => {
        const run = newRun({ createdAt: T });
        expect(await store.runs.insert(run)).toEqual({ outcome: 'inserted' });
        const { runId, projectId, app } = run;
        expect(await find(run)).toEqual({
          runId,
          projectId,
          app,
          state: 'queued',
          createdAt: T,
          starts: 0,
          cancelling: false,
        });
        expect(await store.runs.result(projectId, runId)).toBeUndefined();
      });

      it('tells the target of its webhook, and no delivery yet', async () => {
        const run = newRun({ webhook: WEBHOOK });
        await store.runs.insert(run);
        expect(await find(run)).toMatchObject({ state: 'queued', target: WEBHOOK.target });
        expect(await find(run)).not.toHaveProperty('delivery');
        expect(await store.find(run.runId)).toBeUndefined();
      });

      it('is for its own project alone', async () => {
        const run = newRun();
        await ended(run);
        expect(await store.runs.find('p-other', run.runId)).toBeUndefined();
        expect(await store.runs.find(undefined, run.runId)).toMatchObject({ runId: run.runId });
        expect(await store.runs.result('p-other', run.runId)).toBeUndefined();
        expect(await store.runs.cancel('p-other', run.runId)).toBe(false);
      });

      it.each([runIdAt(T), 'no-run-id', "' OR 1=1 --"])(
        'does not find %s, which there is not',
        async runId => {
          await store.runs.insert(newRun());
          expect(await store.runs.find('p-demo', runId)).toBeUndefined();
          expect(await store.runs.result('p-demo', runId)).toBeUndefined();
          expect(await store.runs.cancel('p-demo', runId)).toBe(false);
        },
      );

      it('tells apart the runs of one millisecond', async () => {
        const ms = Date.now();
        const runs = Array.from({ length: 50 }, (_, i) => newRun({ runId: runIdAt(ms), app: `app-${i}` }));
        await insertAll(runs);
        const found = await Promise.all(runs.map(find));
        expect(found.map(record => record?.app)).toEqual(runs.map(({ app }) => app));
      });

      it('has all of 1,000 that came at once, after the node has gone', async () => {
        const runs = Array.from({ length: 1_000 }, () => newRun());
        const inserting = insertAll(runs);
        await store.close();
        await inserting;
        store = await open();
        const found = await Promise.all(runs.map(find));
        expect(found.filter(record => record?.state !== 'queued')).toEqual([]);
        expect(await claim()).toHaveLength(1_000);
      });

      it('fails a bad one alone', async () => {
        const runs = Array.from({ length: 20 }, (_, i) => newRun(i % 10 === 3 ? { runId: 'no-run-id' } : {}));
        const settled = await Promise.allSettled(runs.map(run => store.runs.insert(run)));
        expect(settled.map(({ status }) => status)).toEqual(
          runs.map(({ runId }) => (runId === 'no-run-id' ? 'rejected' : 'fulfilled')),
        );
        expect(store.available).toBe(true);
      });
    });

    describe('the request', () => {
      it('comes back as it went in, what was sealed in it opened', async () => {
        const confidential = { secret: randomBytes(1024), authorization: 'Basic dXNlcjpww6Rzcw==' };
        const run = newRun({
          createdAt: T,
          method: 'PATCH',
          path: '/a%2Fb/ü',
          query: 'x=1&&y=%20',
          headers: ['x-a', '1', 'X-A', 'ÿ\u0080', 'cookie', ''],
          webhook: { target: WEBHOOK.target, confidential },
        });
        await store.runs.insert(run);
        const [got] = await claim(1);
        const { secret, authorization } = got!.webhook!.confidential;
        expect(Buffer.from(secret!)).toEqual(confidential.secret);
        expect(authorization).toBe(confidential.authorization);
        const { runId, projectId, app, createdAt, method, path, query, headers } = run;
        expect({ ...got, webhook: got!.webhook!.target }).toEqual({
          ref: got!.ref,
          runId,
          projectId,
          app,
          createdAt,
          method,
          path,
          query,
          headers,
          starts: 0,
          cancelled: false,
          unreadable: false,
          webhook: WEBHOOK.target,
        });
      });

      it('has nothing in it that was not there', async () => {
        await store.runs.insert(newRun({ headers: [] }));
        const [got] = await claim(1);
        expect(got!.headers).toEqual([]);
        expect(got).not.toHaveProperty('query');
        expect(got).not.toHaveProperty('webhook');
        expect(await store.runs.body(got!.ref)).toBeUndefined();
      });

      it.each([
        ['', {}],
        ['a=1', { secret: new Uint8Array([1, 2, 3]) }],
        ['', { authorization: 'Basic eDp5' }],
      ])('keeps the query %j and the confidential %j', async (query, confidential) => {
        await store.runs.insert(newRun({ query, webhook: { ...WEBHOOK, confidential } }));
        expect(await claim(1)).toMatchObject([{ query, webhook: { confidential } }]);
      });

      it.each([0, 1, 100_000, 3 * 1024 * 1024])('keeps a body of %d bytes', async size => {
        const bytes = randomBytes(size);
        const run = newRun({ body: { bytes } });
        await store.runs.insert(run);
        await reopen();
        const { ref } = await claimed(run);
        expect((await readBody(await store.runs.body(ref)))?.equals(bytes)).toBe(true);
      });

      it('keeps exactly the view of a body that it is given', async () => {
        const whole = Buffer.from('before|body|after');
        const ref = await take(newRun({ body: { bytes: whole.subarray(7, 11) } }));
        expect((await readBody(await store.runs.body(ref)))?.toString()).toBe('body');
      });

      it.each([1, 3 * 1024 * 1024 + 1])(
        'takes over a file of %d bytes, until the run has ended',
        async size => {
          const run = newRun();
          const bytes = randomBytes(size);
          const file = `${run.runId}${REQUEST_SUFFIX}`;
          await store.runs.insert({ ...run, body: await spooledBody(place.spoolDir, file, bytes) });
          await reopen();
          const { ref } = await claimed(run);
          // From its beginning each time.
          expect((await readBody(await store.runs.body(ref)))?.equals(bytes)).toBe(true);
          expect((await readBody(await store.runs.body(ref)))?.equals(bytes)).toBe(true);
          await store.runs.end(ref, ending(), RESULT);
          expect(spooled(file)).toBe(false);
        },
      );

      it('refuses a file that is not in the spool, or is not called as it should be', async () => {
        const run = newRun();
        for (const file of [join(place.dir, 'elsewhere'), join(place.spoolDir, run.runId)]) {
          await expect(store.runs.insert({ ...run, body: { file, size: 3 } })).rejects.toThrow(
            'not in the spool',
          );
        }
      });
    });

    describe('a key', () => {
      const idempotency = { key: 'a key', fingerprint: Buffer.from('a digest') };
      const other = { ...idempotency, fingerprint: Buffer.from('another') };

      it('stands for the first run that came with it, in all its states', async () => {
        const run = newRun({ idempotency });
        const repeat = async () => {
          expect(await store.runs.insert(newRun({ idempotency }))).toEqual({
            outcome: 'repeated',
            runId: run.runId,
          });
          expect(await store.runs.insert(newRun({ idempotency: other }))).toEqual({
            outcome: 'conflict',
            runId: run.runId,
          });
        };
        expect(await store.runs.insert(run)).toEqual({ outcome: 'inserted' });
        await repeat();
        await claimed(run);
        await repeat();
        await reopen();
        await repeat();
        await store.recover();
        await store.runs.end((await claimed(run)).ref, ending(), RESULT);
        await repeat();
        expect(await claim()).toEqual([]);
      });

      it('still does when the run is deleted before the day is over', async () => {
        const run = newRun({ idempotency });
        await ended(run, ending({ endedAt: T }));
        expect(await store.runs.prune(T + 1, 10)).toBe(1);
        expect(await store.runs.insert(newRun({ idempotency }))).toEqual({
          outcome: 'repeated',
          runId: run.runId,
        });
      });

      it('is of one project', async () => {
        await store.runs.insert(newRun({ idempotency }));
        expect(await store.runs.insert(newRun({ idempotency: other, projectId: 'p-other' }))).toEqual({
          outcome: 'inserted',
        });
        expect(await store.runs.insert(newRun({ idempotency: { ...other, key: 'A key' } }))).toEqual({
          outcome: 'inserted',
        });
      });

      it('lets in one of many that come at once', async () => {
        const runs = Array.from({ length: 30 }, () => newRun({ idempotency }));
        const outcomes = await insertAll(runs);
        const [only, ...none] = runs.filter((_, i) => outcomes[i]!.outcome === 'inserted');
        expect(none).toEqual([]);
        const rest = outcomes.filter(({ outcome }) => outcome !== 'inserted');
        expect(rest).toEqual(rest.map(() => ({ outcome: 'repeated', runId: only!.runId })));
        expect(idsOf(await claim())).toEqual([only!.runId]);
      });

      it('leaves nothing of a run that came again', async () => {
        await store.runs.insert(newRun({ idempotency }));
        for (const each of [idempotency, other]) {
          const run = newRun({ idempotency: each });
          const file = `${run.runId}${REQUEST_SUFFIX}`;
          await store.runs.insert({ ...run, body: await spooledBody(place.spoolDir, file, randomBytes(10)) });
          expect(spooled(file)).toBe(false);
          expect(await find(run)).toBeUndefined();
        }
        expect((await store.backlog()).pending).toEqual(new Map([['p-demo', 1]]));
      });

      /** A minute to spare: the store may count by another clock. */
      const LONG_AGO = () => Date.now() - IDEMPOTENCY_MS - 60_000;

      it('may be used anew after a day, from when its run came', async () => {
        await store.runs.insert(newRun({ idempotency, createdAt: LONG_AGO() }));
        const run = newRun({ idempotency: other });
        expect(await store.runs.insert(run)).toEqual({ outcome: 'inserted' });
        expect(await store.runs.insert(newRun({ idempotency: other }))).toEqual({
          outcome: 'repeated',
          runId: run.runId,
        });
        expect(await claim()).toHaveLength(2);
      });

      it('goes with the day, and takes no run along', async () => {
        const old = newRun({ idempotency, createdAt: LONG_AGO() });
        const young = newRun({ idempotency: { ...other, key: 'young' } });
        await insertAll([old, young]);
        expect(await store.runs.prune(Date.now() + 60_000, 10)).toBe(0);
        expect(await find(old)).toMatchObject({ state: 'queued' });
        expect(await store.runs.insert(newRun({ idempotency: { ...other, key: 'young' } }))).toEqual({
          outcome: 'repeated',
          runId: young.runId,
        });
      });
    });

    describe('claim', () => {
      it('takes the oldest of an app, as many as there is room for, and none twice', async () => {
        const runs = newRuns(7);
        for (const run of runs.toReversed()) await store.runs.insert(run);
        expect(idsOf(await claim(3))).toEqual(idsOf(runs.slice(0, 3)));
        expect(await claim(3)).toEqual([]);
        expect(idsOf(await claim(5))).toEqual(idsOf(runs.slice(3, 5)));
        expect(await claim(0)).toEqual([]);
        expect(idsOf(await claim())).toEqual(idsOf(runs.slice(5)));
        expect(await claim()).toEqual([]);
      });

      it('has room again for each that ended or was given up', async () => {
        const runs = newRuns(5);
        await insertAll(runs);
        const [first, second] = await claim(2);
        expect(await claim(2)).toEqual([]);
        await store.runs.end(first!.ref, ending(), RESULT);
        expect(idsOf(await claim(2))).toEqual([runs[2]!.runId]);
        await store.runs.withdraw(second!.ref);
        expect(idsOf(await claim(2))).toEqual([runs[1]!.runId]);
        expect(await claim(2)).toEqual([]);
      });

      it('counts what is begun as well', async () => {
        await insertAll(newRuns(3));
        const [first] = await claim(1);
        await store.runs.begin(first!.ref, Date.now());
        expect(await claim(1)).toEqual([]);
        expect(await claim(2)).toHaveLength(1);
      });

      it.each([true, false])('gives each app its own limit (each: %s), and takes of no other', async each => {
        const apps = [
          { projectId: 'p-a', app: 'x' },
          { projectId: 'p-a', app: 'y' },
          { projectId: 'p-b', app: 'x' },
          { projectId: 'p-c', app: 'x' },
        ];
        for (const app of apps) await insertAll(newRuns(5, app));
        const taken = await store.runs.claim([
          wanted(1, { ...apps[0]!, each }),
          wanted(2, { ...apps[1]!, each }),
          wanted(9, { ...apps[2]!, each }),
        ]);
        const count = ({ projectId, app }: { projectId: string; app: string }) =>
          taken.filter(run => run.projectId === projectId && run.app === app).length;
        expect(apps.map(count)).toEqual([1, 2, 5, 0]);
        expect(await store.runs.claim([])).toEqual([]);
      });

      it('keeps the limit where several claim at once', async () => {
        await insertAll(newRuns(30));
        const claims = await Promise.all([claim(7), claim(7), claim(7), claim(7)]);
        expect(new Set(claims.flat().map(({ ref }) => ref))).toHaveLength(7);
        expect(claims.flat()).toHaveLength(7);
      });

      it('counts what a node had that is gone, until it is freed', async () => {
        const runs = newRuns(4);
        await insertAll(runs);
        expect(await claim(2)).toHaveLength(2);
        await reopen();
        expect(await claim(2)).toEqual([]);
        expect(await store.recover()).toBe(2);
        expect(idsOf(await claim(2))).toEqual(idsOf(runs.slice(0, 2)));
      });
    });

    describe('claimStrays', () => {
      it('takes old runs of apps that nobody knows, up to the limit', async () => {
        const now = Date.now();
        const old = ['a', 'b', 'c', 'd'].map((app, i) => newRun({ app, createdAt: now - 10_000 + i }));
        const known = newRun({ app: 'known', createdAt: now - 10_000 });
        const elsewhere = newRun({ app: 'known', projectId: 'p-other', createdAt: now - 9_000 });
        const young = newRun({ app: 'a', createdAt: now });
        await insertAll([...old, known, elsewhere, young]);
        const strays = (limit: number) =>
          store.runs.claimStrays([{ projectId: 'p-demo', app: 'known' }], now - 5_000, limit);
        const first = await strays(3);
        expect(first).toHaveLength(3);
        const rest = await strays(10);
        expect(new Set(idsOf([...first, ...rest]))).toEqual(new Set(idsOf([...old, elsewhere])));
        expect(await strays(10)).toEqual([]);
        expect(await store.runs.end(first[0]!.ref, ending({ state: 'failed' }), RESULT)).toEqual({});
      });

      it('takes of all apps where none is known, and those to be cancelled too', async () => {
        const runs = newRuns(3);
        await insertAll(runs);
        await store.runs.cancel('p-demo', runs[1]!.runId);
        const strays = await store.runs.claimStrays([], Date.now() - 1_000, 10);
        expect(strays.map(({ runId, cancelled }) => [runId, cancelled])).toEqual(
          runs.map(({ runId }, i) => [runId, i === 1]),
        );
      });
    });

    describe('begin', () => {
      it('counts a start and tells the run as running', async () => {
        const run = newRun();
        const ref = await take(run);
        expect(await find(run)).toMatchObject({ state: 'queued', starts: 0 });
        expect(await store.runs.begin(ref, T)).toBe('begun');
        expect(await find(run)).toMatchObject({
          state: 'running',
          starts: 1,
          startedAt: T,
          cancelling: false,
        });
      });
    });

    describe('withdraw', () => {
      it('takes the start back, and leaves the run for any node', async () => {
        const run = newRun();
        const ref = await begun(run);
        expect(await store.runs.withdraw(ref)).toBe(true);
        await expectLost(ref, run);
        expect(await find(run)).toMatchObject({ state: 'queued', starts: 0 });
        expect(await find(run)).not.toHaveProperty('startedAt');
        expect(await claimed(run)).toMatchObject({ starts: 0 });
      });

      it('keeps the starts that were counted before', async () => {
        const run = newRun();
        await begun(run, T);
        await store.release();
        const { ref } = await claimed(run);
        await store.runs.begin(ref, T + 1_000);
        expect(await store.runs.withdraw(ref)).toBe(true);
        expect(await find(run)).toMatchObject({ state: 'queued', starts: 1 });
      });

      it('takes back no start where there was none', async () => {
        const run = newRun();
        await begun(run);
        await store.release();
        expect(await store.runs.withdraw((await claimed(run)).ref)).toBe(true);
        expect(await claimed(run)).toMatchObject({ starts: 1 });
      });
    });

    describe('end', () => {
      it('tells how it ended, and keeps the result', async () => {
        const run = newRun({ createdAt: T });
        const ref = await begun(run, T + 500);
        const bytes = Buffer.from('{"result":{"a":1}}');
        const end = ending({ endedAt: T + 700, statusCode: 201 });
        expect(await store.runs.end(ref, end, { result: { bytes } })).toEqual({});
        const { runId, projectId, app } = run;
        expect(await find(run)).toEqual({
          runId,
          projectId,
          app,
          state: 'succeeded',
          createdAt: T,
          starts: 1,
          startedAt: T + 500,
          endedAt: T + 700,
          statusCode: 201,
          cancelling: false,
        });
        await reopen();
        expect(await resultOf(run)).toEqual(bytes);
        expect(await store.find(runId)).toBeUndefined();
      });

      it.each([
        { state: 'succeeded' },
        { state: 'failed', statusCode: 502, error: 'app_unreachable' },
        { state: 'cancelled', statusCode: 499, error: 'cancelled' },
      ] as const)('as $state, begun or not', async end => {
        const [one, other] = [newRun(), newRun()];
        await ended(one, ending(end));
        await store.runs.end(await take(other), ending(end), RESULT);
        expect(await find(one)).toMatchObject({ ...end, starts: 1 });
        expect(await find(other)).toMatchObject({ ...end, starts: 0 });
        expect(await find(other)).not.toHaveProperty('startedAt');
      });

      it.each([0, 1, 100_000, 3 * 1024 * 1024])('keeps a result of %d bytes', async size => {
        const run = newRun();
        const bytes = randomBytes(size);
        await ended(run, ending(), { result: { bytes } });
        await reopen();
        expect((await resultOf(run))?.equals(bytes)).toBe(true);
      });

      it.each([1, 3 * 1024 * 1024 + 1])('takes over a result in a file of %d bytes', async size => {
        const run = newRun();
        const bytes = randomBytes(size);
        await ended(run, ending(), { result: await spooledBody(place.spoolDir, run.runId, bytes) });
        await reopen();
        expect((await resultOf(run))?.equals(bytes)).toBe(true);
        expect((await resultOf(run))?.equals(bytes)).toBe(true);
      });

      it('refuses a file that is not in the spool', async () => {
        const run = newRun();
        const ref = await take(run);
        const body = { file: join(place.dir, 'elsewhere'), size: 3 };
        await expect(store.runs.end(ref, ending(), { result: body })).rejects.toThrow('not in the spool');
        await expect(store.runs.end(ref, ending(), deliveryOf(run, { body }))).rejects.toThrow(
          'not in the spool',
        );
        expect(await find(run)).toMatchObject({ state: 'queued' });
      });

      it('happens once', async () => {
        const run = newRun();
        const ref = await begun(run);
        await store.runs.end(ref, ending(), RESULT);
        await expectLost(ref, run);
        expect(await store.runs.body(ref)).toBeUndefined();
        expect(await find(run)).toMatchObject({ state: 'succeeded', starts: 1 });
        expect(await store.find(run.runId)).toBeUndefined();
      });
    });

    describe('end with a delivery', () => {
      const ref = async (run: NewRun, overrides: Partial<NewDelivery> = {}) => {
        const answer = await store.runs.end(await begun(run), ending(), deliveryOf(run, overrides));
        expect(answer?.delivery).toBeDefined();
        return answer!.delivery!;
      };

      it('makes one that this node sends, and tells of it with the run', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const delivery = await ref(run);
        expect(await find(run)).toMatchObject({
          state: 'succeeded',
          target: WEBHOOK.target,
          delivery: { state: 'pending', attempts: 0 },
        });
        expect(await store.claim(10)).toEqual([]);
        for (const next of [
          { state: 'pending', dueAt: T },
          { state: 'failed', reason: 'rejected' },
        ] as const) {
          expect(await store.beginAttempt(delivery, Date.now())).toBe(true);
          expect(await store.endAttempt(delivery, attempt(1, { status: 404 }), next)).toBe(true);
        }
        expect((await find(run))?.delivery).toEqual({ state: 'failed', reason: 'rejected', attempts: 2 });
        expect((await store.runs.list({}, { limit: 10 }))[0]?.delivery).toEqual((await find(run))?.delivery);
      });

      it('makes the same one that an insert would', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const { delivery } = deliveryOf(run, { statusCode: 503, createdAt: T });
        const made = await store.runs.end(await begun(run), ending(), { delivery });
        const alike = { ...delivery, runId: newRun().runId };
        await store.insert(alike);
        const [one, other] = [await store.find(run.runId), await store.find(alike.runId)];
        expect(one).toEqual({ ...other, runId: run.runId });
        expect(made).toEqual({ delivery: expect.anything() });
      });

      it('counts its first attempt along, where that follows at once', async () => {
        const run = newRun({ webhook: WEBHOOK });
        await ref(run, { begunAt: T });
        await reopen();
        expect(await store.recover()).toBe(1);
        expect(await store.claim(1)).toMatchObject([{ runId: run.runId, attempts: 1 }]);
      });

      it('makes one that waits for a claim, its secret with it', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const secret = randomBytes(20);
        const delivery = await ref(run, { owned: false, confidential: { secret } });
        expect(await store.beginAttempt(delivery, Date.now())).toBe(false);
        const [pending] = await store.claim(10);
        expect(pending).toMatchObject({ runId: run.runId, target: WEBHOOK.target, attempts: 0 });
        expect(Buffer.from(pending!.confidential.secret!)).toEqual(secret);
      });

      it('has its result in the delivery, in memory or in a file', async () => {
        const [small, large] = [newRun({ webhook: WEBHOOK }), newRun({ webhook: WEBHOOK })];
        const bytes = randomBytes(300_000);
        await ref(small, { body: { bytes: Buffer.from('small') } });
        const delivery = await ref(large, { body: await spooledBody(place.spoolDir, large.runId, bytes) });
        await reopen();
        expect((await resultOf(small))?.toString()).toBe('small');
        expect((await resultOf(large))?.equals(bytes)).toBe(true);
        expect((await readBody(await store.body(delivery)))?.equals(bytes)).toBe(true);
      });

      it('makes none for a run that is not this node’s any more', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const old = await begun(run);
        await store.release();
        await expectLost(old, run);
        expect(await store.find(run.runId)).toBeUndefined();
        expect(await find(run)).toMatchObject({ state: 'queued', starts: 1 });
      });
    });

    describe('fencing', () => {
      const WAYS: [string, (ref: RunRef) => Promise<unknown>][] = [
        ['was released', () => store.release()],
        ['was withdrawn', ref => store.runs.withdraw(ref)],
      ];

      it.each(WAYS)('lets nothing happen through an old reference once the run %s', async (_, free) => {
        const run = newRun();
        const old = await begun(run);
        await free(old);
        await expectLost(old, run);
        // Nor when the same node has it again.
        const { ref } = await claimed(run);
        await expectLost(old, run);
        expect(await store.runs.begin(ref, Date.now())).toBe('begun');
        await expectLost(old, run);
        expect(await find(run)).toMatchObject({ state: 'running' });
        expect(await store.runs.end(ref, ending(), RESULT)).toEqual({});
      });

      it('lets nothing happen to what another node has', async () => {
        const run = newRun();
        const ref = await begun(run);
        await reopen();
        await expectLost(ref, run);
        expect(await store.runs.toCancel()).toEqual([]);
        expect(await find(run)).toMatchObject({ state: 'running', starts: 1 });
        await store.recover();
        await expectLost(ref, run);
      });
    });

    describe('freeing', () => {
      it.each(['recover', 'release'] as const)('by %s queues again, and counted starts stay', async way => {
        const [waiting, running, over] = newRuns(3);
        await ended(over!);
        await insertAll([waiting!, running!]);
        const taken = await claim();
        const { ref } = taken.find(({ runId }) => runId === running!.runId)!;
        await store.runs.begin(ref, T);
        const delivery = await store.insert(newDelivery());
        if (way === 'recover') await reopen();
        expect(await store[way]()).toBe(3);
        expect(await store[way]()).toBe(0);
        expect(await find(waiting!)).toMatchObject({ state: 'queued', starts: 0 });
        expect(await find(running!)).toMatchObject({ state: 'queued', starts: 1, startedAt: T });
        expect(await find(over!)).toMatchObject({ state: 'succeeded' });
        const again = await claim();
        expect(again.map(({ runId, starts }) => [runId, starts])).toEqual([
          [waiting!.runId, 0],
          [running!.runId, 1],
        ]);
        await store.runs.begin(again[1]!.ref, T + 1);
        expect(await find(running!)).toMatchObject({ state: 'running', starts: 2, startedAt: T + 1 });
        expect(await store.beginAttempt(delivery, Date.now())).toBe(false);
      });

      it('frees very many', async () => {
        await insertAll(Array.from({ length: 1_100 }, () => newRun()));
        expect(await claim()).toHaveLength(1_100);
        expect(await store.release()).toBe(1_100);
        expect(await claim()).toHaveLength(1_100);
        await reopen();
        expect(await store.recover()).toBe(1_100);
        expect(await claim()).toHaveLength(1_100);
      });
    });

    describe('cancel', () => {
      it('of one that waits keeps it from being begun, and the next claim has it, whatever the limit', async () => {
        const runs = newRuns(4);
        await insertAll(runs);
        await claim(1);
        const { projectId, runId } = runs[2]!;
        expect(await store.runs.cancel(projectId, runId)).toBe(true);
        expect(await find(runs[2]!)).toMatchObject({ state: 'cancelled', cancelling: false, starts: 0 });
        expect(await store.runs.toCancel()).toEqual([]);
        const [got, ...none] = await claim(1);
        expect(none).toEqual([]);
        expect(got).toMatchObject({ runId, cancelled: true });
        expect(await store.runs.begin(got!.ref, Date.now())).toBe('cancelled');
        expect(await store.runs.toCancel()).toEqual([got!.ref]);
        await store.runs.end(got!.ref, ending({ state: 'cancelled' }), RESULT);
        expect(await find(runs[2]!)).toMatchObject({ state: 'cancelled', starts: 0, statusCode: 200 });
        expect(await store.runs.cancel(projectId, runId)).toBe(false);
      });

      it('of one that was claimed keeps it from being begun', async () => {
        const run = newRun();
        const ref = await take(run);
        expect(await store.runs.cancel(run.projectId, run.runId)).toBe(true);
        expect(await store.runs.cancel(run.projectId, run.runId)).toBe(true);
        expect(await store.runs.begin(ref, Date.now())).toBe('cancelled');
        expect(await find(run)).toMatchObject({ state: 'cancelled', starts: 0 });
        expect(await store.runs.toCancel()).toEqual([ref]);
      });

      it('of one that runs is for its owner to carry out', async () => {
        const [run, beside] = newRuns(2);
        await store.runs.insert(beside!);
        const ref = await begun(run!);
        expect(await store.runs.toCancel()).toEqual([]);
        expect(await store.runs.cancel(run!.projectId, run!.runId)).toBe(true);
        expect(await find(run!)).toMatchObject({ state: 'running', cancelling: true });
        expect(await store.runs.toCancel()).toEqual([ref]);
        // It may have been quicker.
        await store.runs.end(ref, ending(), RESULT);
        expect(await find(run!)).toMatchObject({ state: 'succeeded', cancelling: false });
        expect(await store.runs.toCancel()).toEqual([]);
        expect(await store.runs.cancel(run!.projectId, run!.runId)).toBe(false);
      });

      it('outlives the node', async () => {
        const run = newRun();
        await begun(run);
        await store.runs.cancel(run.projectId, run.runId);
        await reopen();
        expect(await store.recover()).toBe(1);
        expect(await find(run)).toMatchObject({ state: 'cancelled', cancelling: false, starts: 1 });
        expect(await claim(0)).toMatchObject([{ runId: run.runId, cancelled: true, starts: 1 }]);
      });
    });

    describe('list', () => {
      const STATES: RunState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];
      /** One of each state, and one that waits to be ended as cancelled, all in the order of time. */
      const oneOfEach = async (overrides: Partial<NewRun>) => {
        const runs = newRuns(6, overrides);
        const [, running, succeeded, failed, cancelled, marked] = runs;
        await insertAll(runs);
        const refs = new Map(
          (await store.runs.claim([{ ...wanted(MANY), ...overrides }])).map(({ runId, ref }) => [runId, ref]),
        );
        const refOf = ({ runId }: NewRun) => refs.get(runId)!;
        await store.runs.begin(refOf(running!), Date.now());
        await store.runs.end(refOf(succeeded!), ending(), RESULT);
        await store.runs.end(refOf(failed!), ending({ state: 'failed' }), RESULT);
        await store.runs.end(refOf(cancelled!), ending({ state: 'cancelled' }), RESULT);
        await store.runs.cancel(marked!.projectId, marked!.runId);
        return runs.map((run, i) => ({ ...run, state: STATES[i] ?? 'cancelled' }));
      };

      it('tells those that a filter asks for, newest first, in pages', async () => {
        const apps = [
          { projectId: 'p-a', app: 'x' },
          { projectId: 'p-a', app: 'y' },
          { projectId: 'p-b', app: 'x' },
        ];
        const groups = [];
        for (const app of apps) groups.push(await oneOfEach(app));
        const all = groups.flat();
        const filters: RunFilter[] = [undefined, 'p-a', 'p-b', 'p-none'].flatMap(projectId =>
          [undefined, 'x', 'none'].flatMap(app =>
            [undefined, ...STATES].map(state => ({
              ...(projectId !== undefined && { projectId }),
              ...(app !== undefined && { app }),
              ...(state !== undefined && { state }),
            })),
          ),
        );
        for (const filter of filters) {
          const fits = (run: (typeof all)[number]) =>
            (['projectId', 'app', 'state'] as const).every(
              key => filter[key] === undefined || filter[key] === run[key],
            );
          const expected = all.filter(fits);
          const pages = [];
          let before: string | undefined;
          do {
            const page = await store.runs.list(filter, { limit: 2, ...(before !== undefined && { before }) });
            expect(page.length).toBeLessThanOrEqual(2);
            pages.push(...page);
            before = page.at(-1)?.runId;
          } while (before !== undefined);
          const got = pages.map(({ runId, state, createdAt }) => ({ runId, state, createdAt }));
          expect(got.map(({ createdAt }) => createdAt)).toEqual(
            got.map(({ createdAt }) => createdAt).toSorted((a, b) => b - a),
          );
          const key = (a: { runId: string }, b: { runId: string }) => (a.runId < b.runId ? -1 : 1);
          expect([filter, got.toSorted(key)]).toEqual([
            filter,
            expected.map(({ runId, state, createdAt }) => ({ runId, state, createdAt })).toSorted(key),
          ]);
        }
      });

      it('tells the same of each as find does', async () => {
        const runs = await oneOfEach({ webhook: WEBHOOK });
        const found = await Promise.all(runs.map(find));
        expect(await store.runs.list({ projectId: 'p-demo' }, { limit: 100 })).toEqual(found.toReversed());
      });

      it('goes on where the run that it was to go on from is gone', async () => {
        const [first, second, third] = newRuns(3);
        for (const run of [first!, second!, third!]) await ended(run, ending({ endedAt: T }));
        await ended(newRun(), ending({ endedAt: T + 2 }));
        expect(idsOf(await store.runs.list({}, { before: third!.runId, limit: 1 }))).toEqual([second!.runId]);
        expect(await store.runs.prune(T + 1, 10)).toBe(3);
        expect(await store.runs.list({}, { before: third!.runId, limit: 10 })).toEqual([]);
        expect(await store.runs.list({}, { before: runIdAt(Date.now() + 60_000), limit: 10 })).toHaveLength(
          1,
        );
      });
    });

    describe('ended', () => {
      it('tells which have ended, or are not there', async () => {
        const [over, queued, running, marked] = newRuns(4);
        await ended(over!);
        await begun(running!);
        await insertAll([queued!, marked!]);
        await store.runs.cancel('p-demo', marked!.runId);
        const unknown = runIdAt(T);
        const asked = [...idsOf([over!, queued!, running!, marked!]), unknown, 'no-run-id'];
        expect(new Set(await store.runs.ended(asked))).toEqual(new Set([over!.runId, unknown, 'no-run-id']));
        expect(await store.runs.ended([])).toEqual([]);
      });
    });

    describe('oldestQueuedAt', () => {
      it('passes over what is under way, is to be cancelled, or has ended', async () => {
        expect(await store.runs.oldestQueuedAt()).toBeUndefined();
        const [over, running, marked, first, second] = Array.from({ length: 5 }, (_, i) =>
          newRun({ runId: runIdAt(T + i), createdAt: T + 10 * i }),
        );
        await ended(over!);
        await begun(running!);
        expect(await store.runs.oldestQueuedAt()).toBeUndefined();
        await insertAll([second!, first!, marked!]);
        await store.runs.cancel('p-demo', marked!.runId);
        expect(await store.runs.oldestQueuedAt()).toBe(first!.createdAt);
        const taken = await claim();
        const begin = ({ runId }: NewRun) =>
          store.runs.begin(taken.find(run => run.runId === runId)!.ref, Date.now());
        await begin(first!);
        expect(await store.runs.oldestQueuedAt()).toBe(second!.createdAt);
        await begin(second!);
        expect(await store.runs.oldestQueuedAt()).toBeUndefined();
      });
    });

    describe('backlog', () => {
      it('counts runs that have not ended beside deliveries that are pending', async () => {
        await insertAll([newRun({ projectId: 'p-a' }), newRun({ projectId: 'p-a' })]);
        await store.insert(newDelivery({ projectId: 'p-a' }));
        await store.insert(newDelivery({ projectId: 'p-b' }));
        await store.runs.insert(newRun({ projectId: 'p-c' }));
        await begun(newRun());
        const [over, delivered] = [newRun(), newRun({ webhook: WEBHOOK })];
        await ended(over);
        await ended(delivered, ending(), deliveryOf(delivered));
        expect((await store.backlog()).pending).toEqual(
          new Map([
            ['p-a', 3],
            ['p-b', 1],
            ['p-c', 1],
            ['p-demo', 2],
          ]),
        );
      });
    });

    describe('prune', () => {
      it('deletes what ended before, with its file, and nothing else', async () => {
        const [old, young, waiting] = newRuns(3);
        await ended(old!, ending({ endedAt: T }), {
          result: await spooledBody(place.spoolDir, old!.runId, randomBytes(10)),
        });
        await ended(young!, ending({ endedAt: T + 1 }), {
          result: await spooledBody(place.spoolDir, young!.runId, randomBytes(10)),
        });
        await store.runs.insert(waiting!);
        expect(await store.runs.prune(T, 10)).toBe(0);
        expect(await store.runs.prune(T + 1, 10)).toBe(1);
        expect(await find(old!)).toBeUndefined();
        expect(await resultOf(old!)).toBeUndefined();
        expect(spooled(old!.runId)).toBe(false);
        expect(await find(young!)).toMatchObject({ state: 'succeeded' });
        expect(await resultOf(young!)).toHaveLength(10);
        expect(await find(waiting!)).toMatchObject({ state: 'queued' });
      });

      it('leaves the delivery what it needs', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const body = await spooledBody(place.spoolDir, run.runId, randomBytes(300_000));
        const answer = await store.runs.end(
          await begun(run),
          ending({ endedAt: T }),
          deliveryOf(run, { body }),
        );
        expect(await store.runs.prune(T + 1, 10)).toBe(1);
        expect(await find(run)).toBeUndefined();
        expect(await readBody(await store.body(answer!.delivery!))).toHaveLength(300_000);
        expect(await store.find(run.runId)).toMatchObject({ state: 'pending' });
      });

      it('of deliveries leaves the run, which then has no result and no delivery any more', async () => {
        const run = newRun({ webhook: WEBHOOK });
        const other = newRun();
        await ended(other, ending(), {
          result: await spooledBody(place.spoolDir, other.runId, randomBytes(10)),
        });
        const answer = await store.runs.end(await begun(run), ending(), deliveryOf(run));
        await store.beginAttempt(answer!.delivery!, Date.now());
        await store.endAttempt(answer!.delivery!, attempt(1), { state: 'delivered' });
        expect(await store.prune(Date.now() + 60_000, 10)).toBe(1);
        expect(await find(run)).toMatchObject({ state: 'succeeded', target: WEBHOOK.target });
        expect(await find(run)).not.toHaveProperty('delivery');
        expect(await resultOf(run)).toBeUndefined();
        expect(await resultOf(other)).toHaveLength(10);
      });

      it('deletes no more than the limit, however large', async () => {
        await insertAll(Array.from({ length: 450 }, () => newRun()));
        const taken = await claim();
        await Promise.all(taken.map(({ ref }) => store.runs.end(ref, ending({ endedAt: T }), RESULT)));
        expect(await store.runs.prune(T + 1, 5)).toBe(5);
        expect(await store.runs.prune(T + 1, 425)).toBe(425);
        expect(await store.runs.prune(T + 1, 425)).toBe(20);
        expect(await store.runs.prune(T + 1, 425)).toBe(0);
      });
    });
  });
}
