/**
 * `afterword migrate` as an operator meets it: from a data directory to a real database, interrupted and
 * started again, and everything that it refuses.
 */
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { migrate as moveStore } from '../../src/migrate.ts';
import type { ClaimedRun } from '../../src/store/runs.ts';
import { createKeyring } from '../../src/store/seal.ts';
import type { DeliveryRecord, NewDelivery, PendingDelivery, Store } from '../../src/store/store.ts';
import {
  attempt,
  newDelivery,
  newRun,
  readBody,
  runIdAt,
  spooledBody,
  temporaryDirectory,
} from '../store/samples.ts';
import { createDatabase, createEmptyDatabase } from '../support/postgres.ts';
import {
  configure,
  embedded,
  KEPT_KEY,
  migrate,
  NEW_KEY,
  OLD_KEY,
  openEmbedded,
  openNode,
  startMigrate,
} from './migrating.ts';
import { claimAll, ended, ending, RESULT } from './migrated-runs.ts';
import { run } from './run.ts';

const DAY = 24 * 3_600_000;

/** Stores give bytes back in different wrappings. */
function readable(record: DeliveryRecord | undefined): unknown {
  const attempts = record?.attempts.map(({ excerpt, ...rest }) => ({
    ...rest,
    ...(excerpt && { excerpt: Buffer.from(excerpt).toString('hex') }),
  }));
  return { ...record, attempts };
}

/** In one order, for comparing. */
function byRun<T extends { readonly runId: string }>(deliveries: readonly T[]): T[] {
  return deliveries.toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
}

async function settle(store: Store, delivery: NewDelivery): Promise<void> {
  const ref = await store.insert({ ...delivery, owned: true, begunAt: Date.now() });
  const timings = { queueMs: 1.5, dnsMs: 2, connectMs: 3, tlsMs: 4, firstByteMs: 5, totalMs: 6.25 };
  const first = attempt(1, { timings, error: 'timeout' });
  await store.endAttempt(ref, first, { state: 'pending', dueAt: Date.now() });
  await store.beginAttempt(ref, Date.now());
  const answer = { status: 410, headers: 'Server: a\nServer: b', excerpt: Buffer.from('gone\0') };
  const second = attempt(2, { startedAt: Date.now() + 1, ...answer });
  await store.endAttempt(ref, second, { state: 'failed', reason: 'rejected' });
}

describe('moving a store', () => {
  it('brings everything, as it was', async () => {
    const place = configure(await createEmptyDatabase(), temporaryDirectory());
    const spoolDir = join(place.data, 'spool');
    const waiting = newDelivery({ owned: false, confidential: { authorization: 'Basic abc' } });
    const large = newDelivery({ owned: false });
    const largeBytes = Buffer.alloc(2_500_000, 'ab');
    const empty = newDelivery({ owned: false, body: { bytes: new Uint8Array() } });
    const cutOff = newDelivery({ begunAt: Date.now() });
    const ended = newDelivery({ body: { bytes: Buffer.from('{"big":12345678901234567890}') } });
    const largeEnded = newDelivery();
    const old = newDelivery({ runId: runIdAt(Date.now() - 40 * DAY), createdAt: Date.now() - 40 * DAY });
    const all = [waiting, large, empty, cutOff, ended, largeEnded, old];
    await embedded(OLD_KEY, place.data, async store => {
      await store.insert(waiting);
      await store.insert({ ...large, body: await spooledBody(spoolDir, large.runId, largeBytes) });
      await store.insert(empty);
      await store.insert(cutOff);
      await settle(store, ended);
      await settle(store, { ...largeEnded, body: await spooledBody(spoolDir, largeEnded.runId, largeBytes) });
      await settle(store, old);
    });
    const before = new Map<string, DeliveryRecord>();
    await embedded(OLD_KEY, place.data, async store => {
      await store.recover();
      for (const { runId } of all) before.set(runId, (await store.find(runId))!);
    });

    const { code, stdout } = await migrate(place);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      from: place.data,
      dry_run: false,
      resumed: false,
      pending: 4,
      settled: 3,
      resealed: 0,
      present: 0,
      bodies_missing: 0,
    });

    const node = await openNode(place);
    const after = await Promise.all(all.map(({ runId }) => node.find(runId)));
    expect(after.map(readable)).toEqual(all.map(({ runId }) => readable(before.get(runId))));
    const claimed = await node.claim(100);
    expect(byRun(claimed)).toMatchObject(
      byRun([
        { runId: waiting.runId, attempts: 0, confidential: { authorization: 'Basic abc' } },
        { runId: large.runId, attempts: 0 },
        { runId: empty.runId, attempts: 0 },
        { runId: cutOff.runId, attempts: 1 },
      ]),
    );
    const bodyOf = async ({ runId }: NewDelivery) =>
      (await readBody(await node.body(claimed.find(each => each.runId === runId)!.ref)))!;
    expect((await bodyOf(large)).equals(largeBytes)).toBe(true);
    expect(await bodyOf(empty)).toHaveLength(0);
    expect((await bodyOf(waiting)).toString()).toBe('{"run_id":"x"}');
  });

  it('seals anew what no configured key opens, and nothing else', async () => {
    const database = await createDatabase();
    const place = configure(database, temporaryDirectory());
    const confidential = { secret: Buffer.from('a secret') };
    const deliveries = [OLD_KEY, KEPT_KEY, KEPT_KEY].map(() => newDelivery({ owned: false, confidential }));
    const [known, kept, ended] = deliveries as [NewDelivery, NewDelivery, NewDelivery];
    writeFileSync(join(place.data, 'encryption.key'), `${KEPT_KEY.toString('base64')}\n`);
    await embedded(KEPT_KEY, place.data, async store => {
      await store.insert(kept);
      await settle(store, ended);
    });
    const both = await openEmbedded(place.data, [OLD_KEY, KEPT_KEY]);
    await both.insert(known);
    await both.close();

    expect(JSON.parse((await migrate(place)).stdout)).toMatchObject({ pending: 2, settled: 1, resealed: 2 });
    const claimed = await (await openNode(place)).claim(10);
    const secrets = claimed.map(each => Buffer.from(each.confidential.secret!).toString());
    expect(secrets).toEqual(['a secret', 'a secret']);
    const ids = await database.query<{ id: string; key_id: string }>(
      'SELECT id, key_id FROM afterword_deliveries',
    );
    const [newest, older] = [NEW_KEY, OLD_KEY].map(key => createKeyring([key]).newest);
    expect(new Map(ids.map(({ id, key_id: keyId }) => [id, keyId]))).toEqual(
      new Map([
        [known.runId, older],
        [kept.runId, newest],
        [ended.runId, newest],
      ]),
    );
  });

  it('leaves what the database has already, and tells of bodies that are missing', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const spoolDir = join(place.data, 'spool');
    const [twice, gone, short] = [newDelivery(), newDelivery(), newDelivery()] as const;
    const node = await openNode(place);
    await node.insert(twice);
    await embedded(NEW_KEY, place.data, async store => {
      await settle(store, twice);
      for (const delivery of [gone, short]) {
        const body = await spooledBody(spoolDir, delivery.runId, Buffer.alloc(1000));
        await store.insert({ ...delivery, body, owned: false });
      }
    });
    rmSync(join(spoolDir, gone.runId));
    truncateSync(join(spoolDir, short.runId), 10);
    const { code, stdout, stderr } = await migrate(place);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ pending: 2, settled: 1, present: 1, bodies_missing: 2 });
    expect(stderr).toContain('2 bodies are missing');
    expect((await node.find(twice.runId))?.state).toBe('pending');
  });

  it('puts times into those of the database, where the clock of the machine is wrong', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const HOUR = 3_600_000;
    // It stands still, so that it is compared however long that takes.
    const at = Date.now() + HOUR;
    const clock = { ...systemClock, now: () => at };
    const { runId, ...rest } = newDelivery({ createdAt: at, owned: false });
    await embedded(NEW_KEY, place.data, store => store.insert({ runId, ...rest }));
    const { config } = loadConfig({ file: place.file, env: {}, cwd: '/' });
    const { database, encryptionKeys } = config;
    const progress = { begin: () => {}, advance: () => {} };
    await moveStore({
      from: place.data,
      database: database!,
      encryptionKeys,
      dryRun: false,
      clock,
      progress,
    });
    const [claimed] = await (await openNode(place)).claim(1);
    expect(claimed!.dueAt).toBeCloseTo(at - HOUR, -5);
    expect(claimed!.createdAt).toBe(claimed!.dueAt);
  });

  it('counts with --dry-run, and leaves both ends as they are', async () => {
    const database = await createEmptyDatabase();
    const place = configure(database, temporaryDirectory());
    await embedded(NEW_KEY, place.data, async store => {
      await store.insert(newDelivery());
      await settle(store, newDelivery());
      await settle(store, newDelivery());
      await ended(store, newRun());
      await store.runs.insert(newRun());
    });
    const { code, stdout, stderr } = await run(['migrate', '--config', place.file, '--dry-run']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^3 deliveries \(1 pending, 2 settled\) and 2 runs \(1 waiting, 1 ended\) to move to 127\.0\.0\.1:\d+\/afterword_test_/,
    );
    expect(await database.query("SELECT relname FROM pg_class WHERE relname LIKE 'afterword%'")).toEqual([]);
    expect((await openEmbedded(place.data, [NEW_KEY])).available).toBe(true);
  });

  it('takes another directory than `data` with --from, and shows how far it has come', async () => {
    const data = temporaryDirectory();
    const place = configure(await createDatabase(), join(data, 'other'));
    await embedded(NEW_KEY, data, store =>
      Promise.all(Array.from({ length: 1001 }, () => store.insert(newDelivery({ owned: false })))),
    );
    const { code, stdout, stderr } = await run(['migrate', '--config', place.file, '--from', data]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^1001 deliveries \(1001 pending, 0 settled\) and 0 runs \(0 waiting, 0 ended\) moved to 127\.0\.0\.1:/,
    );
    const lines = stderr.trimEnd().split('\n');
    expect(lines.slice(0, -1)).toEqual([
      expect.stringMatching(`^moving from ${data} to 127`),
      ' 49% 500 of 1001 deliveries and runs',
      ' 99% 1000 of 1001 deliveries and runs',
      '100% 1001 of 1001 deliveries and runs',
    ]);
    expect(lines.at(-1)).toContain(`${data} is not needed any more`);
  });
});

describe('a store that has been moved', () => {
  it('is served no more, and has nothing left to move', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    await embedded(NEW_KEY, place.data, store => store.insert(newDelivery({ owned: false })));
    const { to } = JSON.parse((await migrate(place)).stdout) as { to: string };

    const alone = configure(undefined, place.data);
    const served = await run(['serve', '--config', alone.file]);
    expect(served.code).toBe(1);
    expect(served.stderr).toContain(
      `the deliveries and runs in the data directory ${place.data} were moved to ${to} `,
    );

    const again = await migrate(place);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ resumed: true, pending: 0, settled: 0, present: 0 });
    expect((await (await openNode(place)).backlog()).pending).toEqual(new Map([['p-demo', 1]]));
  });

  it('does not come again where the nodes have sent it and deleted it as old', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    await embedded(NEW_KEY, place.data, store => store.insert(newDelivery({ owned: false })));
    await migrate(place);
    const node = await openNode(place);
    for (const { ref } of await node.claim(10)) {
      await node.beginAttempt(ref, Date.now());
      await node.endAttempt(ref, attempt(1, { status: 200 }), { state: 'delivered' });
    }
    expect(await node.prune(Date.now() + 60_000, 10)).toBe(1);
    expect(JSON.parse((await migrate(place)).stdout)).toMatchObject({ pending: 0, settled: 0 });
    expect(await node.claim(10)).toEqual([]);
  });
});

describe('a move that is cut off', () => {
  it.each([
    ['an error', `RAISE EXCEPTION 'not now' USING ERRCODE = 'disk_full';`, 'not now'],
    ['a lost connection', 'PERFORM pg_terminate_backend(pg_backend_pid());', 'terminating connection'],
  ])(
    'by %s has marked the directory before a node can see a delivery, and goes on',
    async (_, sql, message) => {
      const database = await createDatabase();
      const place = configure(database, temporaryDirectory());
      const node = await openNode(place);
      await embedded(NEW_KEY, place.data, async store => {
        await store.insert(newDelivery({ owned: false }));
        await settle(store, newDelivery());
      });
      await database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN ${sql} RETURN NULL; END $$`);
      await database.query(
        'CREATE TRIGGER refuse BEFORE INSERT ON afterword_queue FOR EACH STATEMENT EXECUTE FUNCTION refuse()',
      );
      const { code, stdout, stderr } = await migrate(place);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(message);
      expect(stderr).toContain('run afterword migrate again');
      expect(await node.claim(10)).toEqual([]);
      await expect(openEmbedded(place.data, [NEW_KEY])).rejects.toThrow('were moved to');

      await database.query('DROP TRIGGER refuse ON afterword_queue');
      expect(JSON.parse((await migrate(place)).stdout)).toMatchObject({
        resumed: true,
        pending: 1,
        settled: 1,
      });
      expect(await node.claim(10)).toHaveLength(1);
    },
  );

  it('can only go on in the database that it was begun with', async () => {
    const [first, second] = [await createDatabase(), await createDatabase()];
    const place = configure(first, temporaryDirectory());
    await embedded(NEW_KEY, place.data, store => store.insert(newDelivery({ owned: false })));
    expect((await migrate(place)).code).toBe(0);
    const { code, stderr } = await migrate(configure(second, place.data));
    expect(code).toBe(1);
    expect(stderr).toContain(`${place.data} is being moved to ${new URL(first.url).host}`);
  });

  it('by kill -9, again and again, while nodes send, carry out and delete, loses and doubles nothing', async () => {
    const EACH = 1_000;
    const every = (work: () => Promise<unknown>) => Promise.all(Array.from({ length: EACH }, work));
    const place = configure(await createDatabase(), temporaryDirectory());
    await embedded(NEW_KEY, place.data, async store => {
      await every(() => store.runs.insert(newRun()));
      const claimed = await claimAll(store, [newRun()]);
      await Promise.all(claimed.map(({ ref }) => store.runs.end(ref, ending(), RESULT)));
      await every(async () => {
        const ref = await store.insert(newDelivery({ begunAt: Date.now() }));
        await store.endAttempt(ref, attempt(1, { status: 200 }), { state: 'delivered' });
      });
      await every(() => store.insert(newDelivery({ begunAt: Date.now() })));
      await every(() => store.runs.insert(newRun()));
    });
    const node = await openNode(place);
    const [sent, carriedOut]: [string[], string[]] = [[], []];
    const pruned = { deliveries: 0, runs: 0 };
    const send = async ({ ref, runId }: PendingDelivery) => {
      sent.push(runId);
      await node.beginAttempt(ref, Date.now());
      await node.endAttempt(ref, attempt(2, { status: 200 }), { state: 'delivered' });
    };
    const carryOut = async ({ ref, runId }: ClaimedRun) => {
      carriedOut.push(runId);
      await node.runs.begin(ref, Date.now());
      await node.runs.end(ref, ending(), RESULT);
    };
    const work = async () => {
      await Promise.all((await node.claim(10_000)).map(send));
      await Promise.all((await claimAll(node, [newRun()])).map(carryOut));
      pruned.deliveries += await node.prune(Date.now() + 60_000, 10_000);
      pruned.runs += await node.runs.prune(Date.now() + 60_000, 10_000);
    };

    let kills = 0;
    for (let code: number | null = null; code !== 0; kills += 1) {
      const process = startMigrate(place);
      // First about when the directory is marked, then in the midst of a batch.
      const killed = process.printed(kills === 0 ? /^moving from/ : / of /).then(() => process.kill());
      code = await Promise.race([process.ended, killed]);
      await work();
    }
    expect(kills).toBeGreaterThan(2);
    expect([new Set(sent).size, sent.length]).toEqual([EACH, EACH]);
    expect([new Set(carriedOut).size, carriedOut.length]).toEqual([EACH, EACH]);
    expect(pruned).toEqual({ deliveries: 2 * EACH, runs: 2 * EACH });
  }, 240_000);
});

describe('refused', () => {
  it('without a `database`', async () => {
    const { code, stderr } = await migrate(configure(undefined, temporaryDirectory()));
    expect(code).toBe(2);
    expect(stderr).toContain('`database` is not set');
  });

  it('where there is no embedded store', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const { code, stderr } = await migrate(place);
    expect(code).toBe(2);
    expect(stderr).toBe(`error: there is no embedded store in ${place.data}: it has no afterword.db\n`);
  });

  it('while a service has the directory', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    await openEmbedded(place.data, [NEW_KEY]);
    const { code, stderr } = await migrate(place);
    expect(code).toBe(1);
    expect(stderr).toContain(`the data directory ${place.data} is in use by another process`);
  });

  it('where pending deliveries need a key that is nowhere', async () => {
    const place = configure(await createDatabase(), temporaryDirectory());
    const confidential = { secret: Buffer.from('s') };
    await embedded(KEPT_KEY, place.data, store => store.insert(newDelivery({ confidential })));
    const { code, stderr } = await migrate(place);
    expect(code).toBe(1);
    expect(stderr).toContain(`sealed with the encryption key ${createKeyring([KEPT_KEY]).newest}`);
    expect((await openEmbedded(place.data, [KEPT_KEY])).available).toBe(true);
  });

  it('where the database cannot be reached', async () => {
    const place = configure({ url: 'postgres://nobody@127.0.0.1:1/none' }, temporaryDirectory());
    await embedded(NEW_KEY, place.data, async () => {});
    const { code, stderr } = await migrate(place);
    expect(code).toBe(1);
    expect(stderr).toContain('127.0.0.1:1');
    expect((await openEmbedded(place.data, [NEW_KEY])).available).toBe(true);
  });
});
