/** `afterword migrate` with asynchronous calls in the store: all kinds of runs, interruptions in each part of the move. */
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { migrate as moveStore } from '../../src/migrate.ts';
import { IDEMPOTENCY_MS, REQUEST_SUFFIX } from '../../src/store/runs.ts';
import { createKeyring } from '../../src/store/seal.ts';
import type { Store } from '../../src/store/store.ts';
import { newRun, spooledBody, temporaryDirectory } from '../store/samples.ts';
import { createDatabase } from '../support/postgres.ts';
import {
  begun,
  claimAll,
  ended,
  ending,
  type Filled,
  fillWithRuns,
  RESULT,
  repeatedIn,
  takenFrom,
  toldOf,
} from './migrated-runs.ts';
import {
  configure,
  embedded,
  KEPT_KEY,
  migrate,
  NEW_KEY,
  OLD_KEY,
  openEmbedded,
  openNode,
  type Place,
  refusing,
} from './migrating.ts';

const HOUR = 3_600_000;

function filled({ data }: Place): Promise<Filled> {
  return embedded(NEW_KEY, data, store => fillWithRuns(store, data));
}

/** What the embedded store tells, as it is after a start. */
function asked<T>({ data }: Place, ask: (store: Store) => Promise<T>): Promise<T> {
  return embedded(NEW_KEY, data, async store => {
    await store.recover();
    return ask(store);
  });
}

async function moved(place: Place, ...more: string[]): Promise<Record<string, unknown>> {
  const { code, stdout } = await migrate(place, ...more);
  expect(code).toBe(0);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe('moving a store with runs', () => {
  it('brings every kind of them, as it was', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const { runs, counts } = await filled(place);
    const before = await asked(place, async store => ({
      told: await toldOf(store, runs),
      repeated: await repeatedIn(store),
      taken: await takenFrom(store, runs),
    }));

    expect(await moved(place, '--dry-run')).toMatchObject(counts);
    expect(await moved(place)).toMatchObject({ ...counts, resealed: 0, present: 0, bodies_missing: 0 });
    const node = await openNode(place);
    expect({
      told: await toldOf(node, runs),
      repeated: await repeatedIn(node),
      taken: await takenFrom(node, runs),
    }).toEqual(before);
  });

  it('brings them so that nodes can carry them out and deliver them', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const { runs, counts } = await filled(place);
    await moved(place);
    const node = await openNode(place);
    for (const { ref, cancelled } of await claimAll(node, runs)) {
      expect(await node.runs.begin(ref, Date.now())).toBe(cancelled ? 'cancelled' : 'begun');
      expect(await node.runs.end(ref, ending(), RESULT)).toEqual({});
    }
    expect(await node.claim(10)).toHaveLength(counts['pending']!);
    expect(await node.runs.prune(Date.now() + HOUR, 1000)).toBe(runs.length);
    expect(await node.runs.list({}, { limit: 1 })).toEqual([]);
  });

  it('seals anew what no configured key opens, and nothing else', async () => {
    const database = await createDatabase();
    const place = configure(database, temporaryDirectory());
    const webhook = { target: 'https://receiver.example/', confidential: { secret: Buffer.from('s') } };
    const [kept, known] = [newRun({ webhook }), newRun({ headers: ['a', 'b'] })] as const;
    writeFileSync(join(place.data, 'encryption.key'), `${KEPT_KEY.toString('base64')}\n`);
    await embedded(KEPT_KEY, place.data, store => store.runs.insert(kept));
    const both = await openEmbedded(place.data, [OLD_KEY, KEPT_KEY]);
    await both.runs.insert(known);
    await both.close();

    expect(await moved(place)).toMatchObject({ waiting_runs: 2, resealed: 1 });
    const [first, second] = await claimAll(await openNode(place), [kept]);
    expect(first).toMatchObject({ runId: kept.runId, unreadable: false, headers: kept.headers });
    expect(Buffer.from(first!.webhook!.confidential.secret!).toString()).toBe('s');
    expect(second).toMatchObject({ runId: known.runId, unreadable: false, headers: ['a', 'b'] });
    const rows = await database.query(
      `SELECT r.key_id, q.key_id AS queued FROM afterword_runs r JOIN afterword_run_queue q USING (id)
       ORDER BY id`,
    );
    const [newest, older] = [NEW_KEY, OLD_KEY].map(key => createKeyring([key]).newest);
    expect(rows).toEqual([
      { key_id: newest, queued: newest },
      { key_id: older, queued: older },
    ]);
  });

  it('leaves what the database has already, and tells of bodies that are missing', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const spoolDir = join(place.data, 'spool');
    const [twice, gone, short] = [newRun(), newRun(), newRun()] as const;
    const node = await openNode(place);
    await node.runs.insert(twice);
    await embedded(NEW_KEY, place.data, async store => {
      await ended(store, twice);
      await ended(store, short, ending(), {
        result: await spooledBody(spoolDir, short.runId, Buffer.alloc(1000)),
      });
      const file = `${gone.runId}${REQUEST_SUFFIX}`;
      await store.runs.insert({ ...gone, body: await spooledBody(spoolDir, file, Buffer.alloc(1000)) });
    });
    rmSync(join(spoolDir, `${gone.runId}${REQUEST_SUFFIX}`));
    truncateSync(join(spoolDir, short.runId), 10);
    expect(await moved(place)).toMatchObject({
      waiting_runs: 1,
      ended_runs: 2,
      present: 1,
      bodies_missing: 2,
    });
    expect(await node.runs.find('p-demo', twice.runId)).toMatchObject({ state: 'queued' });
    expect(await node.runs.find('p-demo', gone.runId)).toMatchObject({ state: 'queued' });
    expect(await node.runs.find('p-demo', short.runId)).toMatchObject({ state: 'succeeded' });
  });

  it.each([
    ['that stands for a run of the nodes stays theirs', 0],
    ['whose day is over there is taken anew', IDEMPOTENCY_MS],
  ])('a key %s', async (_, age) => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const idempotency = { key: 'k', fingerprint: Buffer.from('f') };
    const [here, there] = [
      newRun({ idempotency }),
      newRun({ idempotency, createdAt: Date.now() - age }),
    ] as const;
    const node = await openNode(place);
    await node.runs.insert(there);
    await embedded(NEW_KEY, place.data, store => store.runs.insert(here));
    expect(await moved(place)).toMatchObject({ waiting_runs: 1, present: age === 0 ? 1 : 0 });
    expect(await claimAll(node, [here])).toHaveLength(2);
    expect(await node.runs.insert(newRun({ idempotency }))).toEqual({
      outcome: 'repeated',
      runId: age === 0 ? there.runId : here.runId,
    });
  });

  it('puts times into those of the database, where the clock of the machine is wrong', async () => {
    const database = await createDatabase();
    const place = configure(database, temporaryDirectory());
    const at = Math.floor(Date.now()) + HOUR;
    const idempotency = { key: 'k', fingerprint: Buffer.from('f') };
    const [cutOff, over] = [newRun({ createdAt: at, idempotency }), newRun({ createdAt: at })] as const;
    await embedded(NEW_KEY, place.data, async store => {
      await ended(store, over, ending({ endedAt: at }));
      await begun(store, cutOff, at);
    });
    const { config } = loadConfig({ file: place.file, env: {}, cwd: '/' });
    await moveStore({
      from: place.data,
      database: config.database!,
      encryptionKeys: config.encryptionKeys,
      dryRun: false,
      clock: { ...systemClock, now: () => at }, // standing still, it is compared however long that takes
      progress: { begin: () => {}, advance: () => {} },
    });
    const node = await openNode(place);
    const [first, second] = [
      (await node.runs.find('p-demo', cutOff.runId))!,
      (await node.runs.find('p-demo', over.runId))!,
    ];
    const [{ made_at: madeAt }] = (await database.query('SELECT made_at FROM afterword_run_keys')) as [
      { made_at: number },
    ];
    for (const time of [first.createdAt, first.startedAt, second.createdAt, second.endedAt, madeAt]) {
      expect(time).toBeCloseTo(at - HOUR, -5);
    }
  });
});

describe('a move of runs that is cut off', () => {
  const ALL = { idempotency_keys: 3, waiting_runs: 9, pending: 2, ended_runs: 9, settled: 1 };
  const ENDED = { ...ALL, idempotency_keys: 0, waiting_runs: 0, pending: 0 };

  it.each([
    ['the keys', 'afterword_run_keys', '', ALL],
    ['the waiting runs', 'afterword_run_queue', '', { ...ALL, idempotency_keys: 0 }],
    ['a request', 'afterword_run_parts', 'WHEN (NEW.part = 1)', { ...ALL, idempotency_keys: 0 }],
    ['the pending deliveries', 'afterword_queue', '', { ...ALL, idempotency_keys: 0, waiting_runs: 0 }],
    ['a result', 'afterword_run_parts', 'WHEN (NEW.side = 1 AND NEW.part = 1)', ENDED],
    ['the settled deliveries', 'afterword_settled', '', { ...ENDED, ended_runs: 4 }],
    [
      'the runs that have a delivery',
      'afterword_run_ends',
      'WHEN (NEW.result IS NULL AND NEW.result_size IS NULL)',
      { ...ENDED, ended_runs: 4, settled: 0 },
    ],
  ])('in %s goes on where it was', async (_, table, when, left) => {
    const database = await createDatabase();
    const place = configure(database, temporaryDirectory());
    const { runs } = await filled(place);
    const told = await asked(place, store => toldOf(store, runs));
    const node = await openNode(place);
    const allow = await refusing(database, table, when);
    const { code, stderr } = await migrate(place);
    expect(code).toBe(1);
    expect(stderr).toContain('not now');

    await allow();
    expect(await moved(place)).toMatchObject({ resumed: true, ...left, present: 0 });
    expect(await toldOf(node, runs)).toEqual(told);
    const nothing = Object.fromEntries(Object.keys(left).map(name => [name, 0]));
    expect(await moved(place)).toMatchObject({ resumed: true, ...nothing });
  });

  it('does not bring again what the nodes have carried out and deleted meanwhile', async () => {
    const database = await createDatabase();
    const place = configure(database, temporaryDirectory());
    const { runs } = await filled(place);
    const node = await openNode(place);
    const allow = await refusing(database, 'afterword_queue');
    expect((await migrate(place)).code).toBe(1);
    await allow();
    const carried = await claimAll(node, runs);
    for (const { ref } of carried) await node.runs.end(ref, ending(), RESULT);
    expect(await node.runs.prune(Date.now() + HOUR, 1000)).toBe(carried.length);

    expect(await moved(place)).toMatchObject({ waiting_runs: 0, ended_runs: 9, present: 0 });
    expect(await claimAll(node, runs)).toEqual([]);
    expect(await node.runs.list({}, { limit: 100 })).toHaveLength(9);
  });
});
