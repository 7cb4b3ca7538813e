/** Several nodes on one database: whose runs are whose, limits over all of them, and what is fenced off. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/log.ts';
import type { Lease } from '../../../src/store/postgres/lease.ts';
import { RUN_LOCK_CLASS } from '../../../src/store/postgres/partitions.ts';
import { keepUp } from '../../../src/store/postgres/upkeep.ts';
import {
  type ClaimedRun,
  type NewRun,
  REQUEST_SUFFIX,
  type RunEnd,
  type RunOutcome,
  type WantedRuns,
} from '../../../src/store/runs.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import type { NewBody, Store } from '../../../src/store/store.ts';
import { captureLog } from '../../support/log.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { until } from '../../support/waiting.ts';
import { newDelivery, newRun, readBody, runIdAt, spooledBody, temporaryDirectory } from '../samples.ts';
import {
  connectionOf,
  createTestStore,
  openCuttable,
  openTestStore,
  SHORT_LEASE,
  type StoreSetup,
} from './opening.ts';

const END: RunEnd = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 };
const RESULT = { result: { bytes: Buffer.from('{}') } };
const DAY_MS = 86_400_000;

const node = ({ url }: Database, setup: Partial<StoreSetup> = {}) =>
  openTestStore({ url, lease: SHORT_LEASE, ...setup });

const wanted = (limit: number, each = false): WantedRuns[] => [
  { projectId: 'p-demo', app: 'hello', limit, each },
];

async function insertRuns(store: Store, count: number): Promise<NewRun[]> {
  const runs = Array.from({ length: count }, () => newRun());
  await Promise.all(runs.map(run => store.runs.insert(run)));
  return runs;
}

async function take(store: Store): Promise<ClaimedRun> {
  const [run] = await store.runs.claim(wanted(1, true));
  expect(run).toBeDefined();
  return run!;
}

const count = async (database: Database, from: string) =>
  (await database.query<{ count: number }>(`SELECT count(*)::int FROM ${from}`))[0]!.count;

describe('limits', () => {
  it.each([
    { each: false, most: 4 },
    { each: true, most: 12 },
  ])('hold while three nodes claim as fast as they can (each: $each)', async ({ each, most }) => {
    const database = await createDatabase();
    const stores = await Promise.all([node(database), node(database), node(database)]);
    const runs = await insertRuns(stores[0], 240);
    const done: string[] = [];
    let highest = 0;
    const work = async (store: Store) => {
      while (done.length < runs.length) {
        const held = await store.runs.claim(wanted(4, each));
        highest = Math.max(highest, await count(database, 'afterword_run_queue WHERE owner IS NOT NULL'));
        for (const { ref, runId } of held) {
          expect(await store.runs.end(ref, END, RESULT)).toEqual({});
          done.push(runId);
        }
      }
    };
    await Promise.all(stores.map(work));
    expect(done.toSorted()).toEqual(runs.map(({ runId }) => runId).toSorted());
    expect(highest).toBeLessThanOrEqual(most);
  });

  it('keep two nodes from waiting for each other, whatever the order in which they want', async () => {
    const database = await createDatabase();
    const stores = [await node(database), await node(database)];
    const apps = Array.from({ length: 20 }, (_, i) => `app-${i}`);
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(apps.map(app => stores[0]!.runs.insert(newRun({ app }))));
      const want = apps.map(app => ({ ...wanted(100)[0]!, app }));
      const taken = await Promise.all([
        stores[0]!.runs.claim(want),
        stores[1]!.runs.claim(want.toReversed()),
      ]);
      expect(taken.flat()).toHaveLength(apps.length);
    }
    await Promise.all(stores.map(store => store.close())); // a connection tells its own when it ends
    expect(
      await database.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
    ).toEqual([{ deadlocks: 0 }]);
  });

  // It took them, but read their details as of the moment before its turn, and so told nobody of them.
  it('give a claim that had to wait for its turn what came meanwhile', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const turn = `${RUN_LOCK_CLASS}, hashtext(format('%s/p-demo/hello', current_schema()))`;
    const before = await insertRuns(store, 1);
    await database.query(`SELECT pg_advisory_lock(${turn})`);
    const claimed = store.runs.claim(wanted(4));
    const waiters = `pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted`;
    await until(async () => (await count(database, waiters)) > 0);
    const meanwhile = await insertRuns(store, 1);
    await database.query(`SELECT pg_advisory_unlock(${turn})`);
    const runIds = (await claimed).map(({ runId }) => runId);
    expect(runIds).toEqual([...before, ...meanwhile].map(({ runId }) => runId));
  });

  it('are not touched by an owner that nobody knows', async () => {
    const database = await createDatabase();
    const store = await node(database, { lease: { ...SHORT_LEASE, beat: 600_000, valid: 1_200_000 } });
    await insertRuns(store, 1);
    await database.query('DELETE FROM afterword_nodes');
    expect(await store.runs.claim(wanted(4))).toEqual([]);
  });
});

describe('a key', () => {
  it('lets in one of many that come to two nodes at once', async () => {
    const database = await createDatabase();
    const stores = [await node(database), await node(database)];
    const keys = Array.from({ length: 20 }, (_, i) => ({
      key: `key ${i}`,
      fingerprint: Buffer.from('digest'),
    }));
    const runs = [...keys, ...keys.toReversed(), ...keys].map(idempotency => newRun({ idempotency }));
    const insertions = await Promise.all(runs.map((run, i) => stores[i % 2]!.runs.insert(run)));
    const inserted = runs.filter((_, i) => insertions[i]!.outcome === 'inserted');
    expect(inserted.map(({ idempotency }) => idempotency!.key).toSorted()).toEqual(
      keys.map(({ key }) => key).toSorted(),
    );
    const idOf = new Map(inserted.map(({ idempotency, runId }) => [idempotency!.key, runId]));
    const ids = insertions.map((insertion, i) => ('runId' in insertion ? insertion.runId : runs[i]!.runId));
    expect(ids).toEqual(runs.map(({ idempotency }) => idOf.get(idempotency!.key)));
    expect(await count(database, 'afterword_run_queue')).toBe(20);
  });

  it('leaves no parts of a body that came again', async () => {
    const database = await createDatabase();
    const spoolDir = temporaryDirectory();
    const store = await node(database, { spoolDir });
    const insert = async (bytes: number) => {
      const run = newRun({ idempotency: { key: 'key', fingerprint: Buffer.from('digest') } });
      const body = await spooledBody(spoolDir, `${run.runId}${REQUEST_SUFFIX}`, randomBytes(bytes));
      return store.runs.insert({ ...run, body });
    };
    expect(await insert(1_500_000)).toEqual({ outcome: 'inserted' });
    expect(await insert(2_500_000)).toMatchObject({ outcome: 'repeated' });
    expect(await count(database, 'afterword_run_parts')).toBe(2);
  });
});

describe('what is sealed', () => {
  const KEYS = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)] as const;

  it('is left alone by a node that does not have its key', async () => {
    const database = await createDatabase();
    const behind = await node(database, { keyring: createKeyring([KEYS[0]]) });
    const ahead = await node(database, { keyring: createKeyring([KEYS[1], KEYS[0]]) });
    const [theirs] = await insertRuns(ahead, 1);
    const [mine] = await insertRuns(behind, 1);
    expect((await behind.runs.claim(wanted(9))).map(({ runId }) => runId)).toEqual([mine!.runId]);
    expect(await behind.runs.claimStrays([], Date.now() + 1_000, 9)).toEqual([]);
    expect((await ahead.runs.claim(wanted(9))).map(({ runId }) => runId)).toEqual([theirs!.runId]);
  });

  it.each(['headers', 'sealed'])('and damaged (%s) is claimed as unreadable', async column => {
    const database = await createDatabase();
    const store = await node(database);
    const webhook = { target: 'https://receiver.example/', confidential: { secret: Buffer.from('secret') } };
    await store.runs.insert(newRun({ webhook }));
    await database.query(`UPDATE afterword_runs SET ${column} = $1`, [Buffer.alloc(60)]);
    expect(await store.runs.claim(wanted(1))).toMatchObject([
      { unreadable: true, headers: [], webhook: { target: webhook.target, confidential: {} } },
    ]);
  });
});

describe('watch', () => {
  /** A node that has begun to listen, and how often it was told something. */
  async function listen({ url }: Database, lease: Lease) {
    const store = createTestStore({ url, lease });
    let told = 0;
    store.watch(() => (told += 1));
    await store.open();
    await until(() => told > 0); // the bell, when it begins to listen
    return { store, told: () => told };
  }

  const LEFT: [string, (store: Store) => Promise<unknown>][] = [
    ['were inserted', store => insertRuns(store, 1)],
    ['were withdrawn', async store => store.runs.withdraw((await take(store)).ref)],
    ['were released', async store => (await take(store)) && store.release()],
    ['are to be cancelled', async store => store.runs.cancel('p-demo', (await take(store)).runId)],
  ];

  it.each(LEFT)('tells at once of runs that %s elsewhere', async (_, leave) => {
    const database = await createDatabase();
    const first = await node(database);
    await insertRuns(first, 1);
    await first.close(); // it rings no more
    // So that nothing but the bell can tell in time.
    const lease = { ...SHORT_LEASE, look: 600_000 };
    const elsewhere = await node(database, { lease });
    const { told } = await listen(database, lease);
    const before = told();
    await leave(elsewhere);
    await until(() => told() > before);
    expect(told()).toBeGreaterThan(before);
  });

  it('tells without the bell, soon, of what waits and of what is to be cancelled', async () => {
    const database = await createDatabase();
    const { store, told } = await listen(database, SHORT_LEASE);
    const toldAgain = async () => {
      const before = told();
      await until(() => told() > before + 5); // more often than by any bell
      return told() > before;
    };
    await insertRuns(store, 1);
    expect(await toldAgain()).toBe(true);
    await take(store);
    await database.query('UPDATE afterword_run_queue SET cancelled = true');
    expect(await toldAgain()).toBe(true);
  });
});

describe('a node that is cut off', () => {
  it('is taken over from, and can then write nothing that it held', async () => {
    const database = await createDatabase();
    const { relay, store } = await openCuttable(database);
    const { log, lines } = captureLog();
    const rescuer = await node(database, { log });
    const [first, second] = await insertRuns(store, 2);
    const [begun, waiting] = await store.runs.claim(wanted(2));
    expect(await store.runs.begin(begun!.ref, Date.now())).toBe('begun');

    relay.hold();
    await until(() => lines.length > 0);
    expect(lines).toMatchObject([{ level: 'warn', event: 'takeover', deliveries: 0, runs: 2 }]);
    relay.resume();
    await until(() => store.tenure !== undefined);
    for (const { ref } of [begun!, waiting!]) {
      expect(await store.runs.begin(ref, Date.now())).toBe('lost');
      expect(await store.runs.withdraw(ref)).toBe(false);
      expect(await store.runs.end(ref, END, RESULT)).toBeUndefined();
    }
    expect((await rescuer.runs.claim(wanted(2))).map(({ runId, starts }) => [runId, starts])).toEqual([
      [first!.runId, 1],
      [second!.runId, 0],
    ]);
  });

  it('leaves its runs at once where it closes', async () => {
    const database = await createDatabase();
    const lease = { ...SHORT_LEASE, valid: 300_000, dead: 600_000 };
    const [leaving, staying] = [await node(database, { lease }), await node(database, { lease })];
    await insertRuns(leaving, 1);
    await take(leaving);
    await leaving.close();
    await until(async () => (await staying.runs.claim(wanted(1))).length === 1);
    await staying.close();
    expect(await count(database, `afterword_nodes WHERE beat_at = '-infinity'`)).toBe(2);
  });
});

describe('large bodies', () => {
  type Outcome = (runId: string, body: NewBody) => RunOutcome;
  const OUTCOMES: [string, string, Outcome][] = [
    ['result', 'afterword_run_parts (side, id, part, bytes) VALUES (1,', (_, body) => ({ result: body })],
    [
      'delivery',
      'afterword_body_parts (id, part, bytes) VALUES (',
      (runId, body) => ({ delivery: newDelivery({ runId, body }) }),
    ],
  ];

  it.each(OUTCOMES)('of a %s are those of the node that ended the run', async (_, parts, outcome) => {
    const database = await createDatabase();
    const dirs = [temporaryDirectory(), temporaryDirectory()];
    const [slow, quick] = await Promise.all(dirs.map(spoolDir => node(database, { spoolDir })));
    const [run] = await insertRuns(slow!, 1);
    const { runId } = run!;
    const bodies = [randomBytes(2_500_000), randomBytes(2_400_000)];
    const [late, good] = await Promise.all(dirs.map((dir, i) => spooledBody(dir, runId, bodies[i]!)));
    const { ref } = await take(slow!);
    // It has written a part, and loses the run.
    await database.query(`INSERT INTO ${parts} $1, 0, $2)`, [runId, Buffer.alloc(1024 * 1024)]);
    expect(await slow!.release()).toBe(1);
    const held = await take(quick!);
    expect(await slow!.runs.end(ref, END, outcome(runId, late!))).toBeUndefined();
    expect(await count(database, parts.split(' ')[0]!)).toBe(1);
    expect(await quick!.runs.end(held.ref, END, outcome(runId, good!))).toBeDefined();
    const kept = await readBody(await slow!.runs.result('p-demo', runId));
    expect(kept?.equals(bodies[1]!)).toBe(true);
  });

  it('of requests that never became runs go after a day', async () => {
    const database = await createDatabase();
    await node(database);
    const ids = [Date.now() - DAY_MS - 60_000, Date.now()].map(runIdAt);
    for (const id of ids) {
      await database.query('INSERT INTO afterword_run_parts (id, side, part, bytes) VALUES ($1, 0, 0, $2)', [
        id,
        Buffer.from('part'),
      ]);
    }
    await keepUp(connectionOf(database.url), silentLogger);
    expect(await database.query('SELECT id FROM afterword_run_parts')).toEqual([{ id: ids[1] }]);
  });

  it('of runs that have not ended keep their day from being dropped', async () => {
    const database = await createDatabase();
    const store = await node(database);
    const now = Date.now();
    await store.runs.insert(newRun({ createdAt: now - DAY_MS }));
    const days = () => count(database, `pg_inherits WHERE inhparent = 'afterword_settled'::regclass`);
    const before = await days();
    await store.prune(now, 10);
    expect(await days()).toBe(before);
    const [claimed] = await store.runs.claim(wanted(1));
    await store.runs.end(claimed!.ref, END, RESULT);
    await store.prune(now, 10);
    expect(await days()).toBe(before - 1);
  });
});
