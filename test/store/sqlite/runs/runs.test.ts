/** What the embedded store does with runs that other stores do in another way: files, keys, tables. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { StartError } from '../../../../src/errors.ts';
import { type NewRun, REQUEST_SUFFIX, type RunEnd } from '../../../../src/store/runs.ts';
import { createKeyring } from '../../../../src/store/seal.ts';
import { parseRunId } from '../../../../src/store/sqlite/key.ts';
import { MIGRATIONS } from '../../../../src/store/sqlite/migrations.ts';
import type { Store } from '../../../../src/store/store.ts';
import { newDelivery, newRun, readBody, spooledBody, temporaryDirectory } from '../../samples.ts';
import { KEYRING, openTestStore } from '../opening.ts';

const WANTED = { projectId: 'p-demo', app: 'hello', limit: 10, each: false };
const WEBHOOK = { target: 'https://receiver.example/visible', confidential: {} };
const END: RunEnd = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 };

function newPlace() {
  const dir = temporaryDirectory();
  return { dir, spoolDir: join(dir, 'spool'), file: join(dir, 'afterword.db') };
}

async function claimOf(store: Store, { runId }: NewRun) {
  const claimed = await store.runs.claim([WANTED]);
  return claimed.find(run => run.runId === runId)!;
}

describe('the spool', () => {
  it('keeps, over a start, the files that runs have, and no other', async () => {
    const place = newPlace();
    const { spoolDir } = place;
    const store = await openTestStore(place);
    const spooled = (name: string) => spooledBody(spoolDir, name, randomBytes(10));
    const requestOf = ({ runId }: NewRun) => `${runId}${REQUEST_SUFFIX}`;

    const [waiting, over, delivered, small] = [newRun(), newRun(), newRun({ webhook: WEBHOOK }), newRun()];
    await store.runs.insert({ ...waiting, body: await spooled(requestOf(waiting)) });
    for (const run of [over, delivered, small]) await store.runs.insert(run);
    const refs = new Map((await store.runs.claim([WANTED])).map(({ runId, ref }) => [runId, ref]));
    await store.runs.end(refs.get(over.runId)!, END, { result: await spooled(over.runId) });
    const delivery = newDelivery({ runId: delivered.runId, body: await spooled(delivered.runId) });
    await store.runs.end(refs.get(delivered.runId)!, END, { delivery });
    await store.runs.end(refs.get(small.runId)!, END, { result: { bytes: Buffer.from('{}') } });

    const orphans = [
      waiting.runId, // a result whose end was never written
      small.runId,
      requestOf(over), // a request whose run has ended
      requestOf(small),
      requestOf(newRun()),
      `${waiting.runId}.part`,
    ];
    for (const name of orphans) await spooled(name);
    await store.close();

    const reopened = await openTestStore(place);
    expect(orphans.filter(name => existsSync(join(spoolDir, name)))).toEqual([]);
    await reopened.recover();
    const { ref } = await claimOf(reopened, waiting);
    expect(await readBody(await reopened.runs.body(ref))).toHaveLength(10);
    for (const { runId } of [over, delivered]) {
      expect(await readBody(await reopened.runs.result('p-demo', runId))).toHaveLength(10);
    }
  });
});

describe('what is sealed', () => {
  const CANARY = 'canary-5b1e77';

  it('is readable in none of the files', async () => {
    const place = newPlace();
    const store = await openTestStore(place);
    const confidential = { secret: Buffer.from(CANARY), authorization: `Basic ${CANARY}` };
    await store.runs.insert(newRun({ headers: ['cookie', CANARY], webhook: { ...WEBHOOK, confidential } }));
    await store.close();
    const bytes = execFileSync('find', [place.dir, '-type', 'f', '-exec', 'cat', '{}', '+']);
    expect(bytes.includes(WEBHOOK.target)).toBe(true);
    expect(bytes.includes(CANARY)).toBe(false);
  });

  it.each(['headers', 'sealed'])(
    'and whose %s were swapped makes its run unreadable, and no other',
    async column => {
      const place = newPlace();
      const first = await openTestStore(place);
      const webhook = { ...WEBHOOK, confidential: { secret: Buffer.from('a secret') } };
      const runs = [1, 2, 3].map(n => newRun({ createdAt: Date.now() - 100 + n, webhook }));
      for (const run of runs) await first.runs.insert(run);
      await first.close();

      const db = new DatabaseSync(place.file);
      const [one, other] = db.prepare('SELECT id FROM run_requests ORDER BY id').all();
      db.prepare(
        `UPDATE run_requests SET ${column} = (SELECT ${column} FROM run_requests WHERE id = ?) WHERE id = ?`,
      ).run(one!['id']!, other!['id']!);
      db.close();

      const store = await openTestStore(place);
      const claimed = await store.runs.claim([WANTED]);
      expect(claimed.map(({ unreadable }) => unreadable)).toEqual([false, true, false]);
      expect(claimed[1]).toMatchObject({
        runId: runs[1]!.runId,
        headers: [],
        webhook: { target: WEBHOOK.target, confidential: {} },
      });
      expect(await store.runs.end(claimed[1]!.ref, END, { result: { bytes: Buffer.from('{}') } })).toEqual(
        {},
      );
    },
  );

  it('keeps the store from starting without its key, until the run has ended', async () => {
    const place = newPlace();
    const first = await openTestStore(place);
    const run = newRun();
    await first.runs.insert(run);
    await first.close();

    const key = randomBytes(32);
    const error = await openTestStore({ ...place, keyring: createKeyring([key]) }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(StartError);
    expect((error as Error).message).toMatch(
      /^1 runs are sealed with the encryption key \w+, which is not known/,
    );

    const both = createKeyring([key, KEYRING.keys.get(KEYRING.newest)!]);
    const store = await openTestStore({ ...place, keyring: both });
    const { ref, headers } = await claimOf(store, run);
    expect(headers).toEqual(run.headers);
    await store.runs.end(ref, END, { result: { bytes: Buffer.from('{}') } });
    await store.close();
    expect((await openTestStore({ ...place, keyring: createKeyring([key]) })).available).toBe(true);
  });
});

describe('the tables', () => {
  it('are added to a database that knew none, which keeps what it has', async () => {
    const place = newPlace();
    const delivery = newDelivery();
    const { first: id, bytes } = parseRunId(delivery.runId)!;
    const before = new DatabaseSync(place.file);
    before.exec([...MIGRATIONS.slice(0, 2), 'PRAGMA user_version = 2'].join(';'));
    before
      .prepare(
        `INSERT INTO deliveries (id, project, state, due_at, round, attempts, cause)
         VALUES (?, 'p-demo', 0, 0, 1, 0, 0)`,
      )
      .run(id);
    before
      .prepare(
        `INSERT INTO contents (id, run_id, app, target, status, created_at)
         VALUES (?, ?, 'hello', 'https://receiver.example/', 200, 0)`,
      )
      .run(id, bytes);
    before.close();

    const store = await openTestStore(place);
    expect(await store.claim(10)).toMatchObject([{ runId: delivery.runId }]);
    expect(await store.runs.insert(newRun())).toEqual({ outcome: 'inserted' });
    expect((await store.backlog()).pending).toEqual(new Map([['p-demo', 2]]));
  });

  it('hold nothing of the request of a run that has ended', async () => {
    const place = newPlace();
    const store = await openTestStore(place);
    const run = newRun({ body: { bytes: Buffer.from('the request') }, webhook: WEBHOOK });
    await store.runs.insert(run);
    await store.runs.end((await claimOf(store, run)).ref, END, {
      delivery: newDelivery({ runId: run.runId }),
    });
    await store.close();
    const db = new DatabaseSync(place.file);
    const count = (table: string) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!['n'];
    expect(['live_runs', 'run_requests', 'ended_runs'].map(count)).toEqual([0, 0, 1]);
    db.close();
  });

  it('give out very many that are to be cancelled a part at a time', async () => {
    const store = await openTestStore(newPlace());
    const runs = Array.from({ length: 600 }, () => newRun());
    await Promise.all(runs.map(run => store.runs.insert(run)));
    await Promise.all(runs.map(({ runId }) => store.runs.cancel('p-demo', runId)));
    const [first, second, third] = [
      await store.runs.claim([WANTED]),
      await store.runs.claim([WANTED]),
      await store.runs.claim([WANTED]),
    ];
    expect([first.length, second.length, third.length]).toEqual([500, 100, 0]);
  });
});
