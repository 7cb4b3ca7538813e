/** Operations on runs whose answer was lost: repeated, they change nothing, and answer as they would have. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  REQUEST_SUFFIX,
  type RunEnd,
  type RunOutcome,
  type RunRef,
  type WantedRuns,
} from '../../../src/store/runs.ts';
import type { Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { newDelivery, newRun, readBody, spooledBody } from '../samples.ts';
import { breakingConnections, losingRig } from './losing.ts';
import { openTestStore } from './opening.ts';

const WANTED: WantedRuns[] = [{ projectId: 'p-demo', app: 'hello', limit: 10, each: false }];
const IDEMPOTENCY = { key: 'key', fingerprint: Buffer.from('digest') };
const ENDED: RunEnd = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 };
const RESULT: RunOutcome = { result: { bytes: Buffer.from('{"result":1}') } };

const rows = async (database: Database, from: string) => (await database.query(`SELECT FROM ${from}`)).length;

const appears = (database: Database, from: string) => async () => (await rows(database, from)) > 0;

/** The one run that there is. */
async function taken(store: Store): Promise<RunRef> {
  await store.runs.insert(newRun());
  return (await store.runs.claim(WANTED))[0]!.ref;
}

describe('a lost answer', () => {
  it.each([{}, { idempotency: IDEMPOTENCY }])('of an insert with %j', async extra => {
    const { database, store, losing } = await losingRig();
    const run = newRun(extra);
    const inserted = losing(() => store.runs.insert(run), appears(database, 'afterword_run_queue'));
    expect(await inserted).toEqual({ outcome: 'inserted' });
    expect((await store.runs.claim(WANTED)).map(({ runId }) => runId)).toEqual([run.runId]);
  });

  it('of an insert that has ended since then', async () => {
    const { database, store, losing } = await losingRig();
    const inserted = losing(
      () => store.runs.insert(newRun()),
      async () => (await database.query('DELETE FROM afterword_run_queue RETURNING id')).length === 1,
    );
    expect(await inserted).toEqual({ outcome: 'inserted' });
    expect(await rows(database, 'afterword_run_queue')).toBe(0);
  });

  it('of a request in parts', async () => {
    const { database, store, spoolDir, losing } = await losingRig();
    const run = newRun();
    const bytes = randomBytes(2_500_000);
    const body = await spooledBody(spoolDir, `${run.runId}${REQUEST_SUFFIX}`, bytes);
    await losing(() => store.runs.insert({ ...run, body }), appears(database, 'afterword_run_parts'));
    const [claimed] = await store.runs.claim(WANTED);
    expect((await readBody(await store.runs.body(claimed!.ref)))?.equals(bytes)).toBe(true);
  });

  it.each<[string, (store: Store) => ReturnType<Store['runs']['claim']>]>([
    ['a claim', store => store.runs.claim(WANTED)],
    ['a claim of strays', store => store.runs.claimStrays([], Date.now() + 1_000, 10)],
  ])('of %s', async (_, claim) => {
    const { database, store, losing } = await losingRig();
    const runs = [newRun(), newRun()];
    for (const run of runs) await store.runs.insert(run);
    const claimed = await losing(
      () => claim(store),
      appears(database, 'afterword_run_queue WHERE owner IS NOT NULL'),
    );
    expect(claimed.map(({ runId }) => runId)).toEqual(runs.map(({ runId }) => runId));
    expect(await store.runs.begin(claimed[0]!.ref, Date.now())).toBe('begun');
  });

  it('of a beginning', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await taken(store);
    const begun = losing(
      () => store.runs.begin(ref, Date.now()),
      appears(database, 'afterword_run_queue WHERE begun_at IS NOT NULL'),
    );
    expect(await begun).toBe('begun');
    expect(await database.query('SELECT starts FROM afterword_run_queue')).toEqual([{ starts: 1 }]);
  });

  it('of a withdrawal', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await taken(store);
    await store.runs.begin(ref, Date.now());
    const withdrawn = losing(
      () => store.runs.withdraw(ref),
      appears(database, 'afterword_run_queue WHERE owner IS NULL'),
    );
    expect(await withdrawn).toBe(true);
    expect(await store.runs.claim(WANTED)).toMatchObject([{ starts: 0 }]);
  });

  it('of an end with a result', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await taken(store);
    const ended = losing(() => store.runs.end(ref, ENDED, RESULT), appears(database, 'afterword_run_ends'));
    expect(await ended).toEqual({});
    expect(await store.runs.list({}, { limit: 2 })).toMatchObject([{ state: 'succeeded' }]);
  });

  it('of an end with a delivery', async () => {
    const { database, store, losing } = await losingRig();
    await store.runs.insert(newRun());
    const { ref, runId } = (await store.runs.claim(WANTED))[0]!;
    const delivery = newDelivery({ runId, begunAt: Date.now() });
    const ended = await losing(
      () => store.runs.end(ref, ENDED, { delivery }),
      appears(database, 'afterword_run_ends'),
    );
    expect(ended).toEqual({ delivery: expect.anything() });
    expect(await store.withdrawAttempt(ended!.delivery!)).toBe(true);
    expect(await rows(database, 'afterword_deliveries')).toBe(1);
  });

  it('of an end that did not happen, since another node has ended the run by then', async () => {
    const { database, store, losing } = await losingRig();
    const ref = await taken(store);
    const other = await openTestStore({ url: database.url });
    expect(await store.release()).toBe(1);
    const [held] = await other.runs.claim(WANTED);
    const ended = await losing(
      () => store.runs.end(ref, ENDED, RESULT),
      async () => (await other.runs.end(held!.ref, { ...ENDED, state: 'failed' }, RESULT)) !== undefined,
    );
    expect(ended).toBeUndefined();
    expect(await store.runs.list({}, { limit: 2 })).toMatchObject([{ state: 'failed' }]);
  });
});

describe('connections that are ended at random moments', () => {
  it('lose nothing and double nothing', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url });
    const mend = breakingConnections(database);
    const apps = Array.from({ length: 20 }, (_, i) => `app-${i}`);
    const live = async (app: string, key: string) => {
      const idempotency = { key, fingerprint: Buffer.from('digest') };
      const runs = [newRun({ app, idempotency }), newRun({ app, idempotency })];
      const insertions = await Promise.all(runs.map(run => store.runs.insert(run)));
      expect(insertions.map(({ outcome }) => outcome).toSorted()).toEqual(['inserted', 'repeated']);
      const [claimed, ...more] = await store.runs.claim([{ ...WANTED[0]!, app }]);
      expect(more).toEqual([]);
      const { ref, runId } = claimed!;
      expect(await store.runs.begin(ref, Date.now())).toBe('begun');
      const delivery = newDelivery({ runId, app });
      expect(await store.runs.end(ref, ENDED, { delivery })).toEqual({ delivery: expect.anything() });
    };
    const worker = async (app: string) => {
      for (let i = 0; i < 10; i += 1) await live(app, `${app} ${i}`);
    };
    await Promise.all(apps.map(worker));
    await mend();

    const [counts] = await database.query(`
      SELECT (SELECT count(*)::int FROM afterword_runs) AS runs,
        (SELECT count(*)::int FROM afterword_run_ends WHERE starts = 1) AS ended,
        (SELECT count(*)::int FROM afterword_run_queue) AS queued,
        (SELECT count(*)::int FROM afterword_deliveries) AS deliveries,
        (SELECT count(*)::int FROM afterword_queue WHERE owner IS NOT NULL) AS pending`);
    expect(counts).toEqual({ runs: 200, ended: 200, queued: 0, deliveries: 200, pending: 200 });
  });
});
