/** Reading an embedded store out, and the mark that it was moved. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { StartError, UsageError } from '../../../src/errors.ts';
import { REQUEST_SUFFIX, type RunOutcome } from '../../../src/store/runs.ts';
import { createKeyring, unsealHeaders } from '../../../src/store/seal.ts';
import { type Export, openExport } from '../../../src/store/sqlite/export.ts';
import type { DeliveryRecord, Store } from '../../../src/store/store.ts';
import type { Part, Stored } from '../../../src/store/stored.ts';
import { attempt, newDelivery, newRun, spooledBody, temporaryDirectory } from '../samples.ts';
import { KEYRING, openTestStore, type StoreSetup } from './opening.ts';

function newPlace(): StoreSetup {
  const dir = temporaryDirectory();
  return { dir, spoolDir: join(dir, 'spool') };
}

function open(place: StoreSetup, nodeId = 'export'): Export {
  const source = openExport({ keyring: KEYRING, nodeId, clock: systemClock, ...place });
  onTestFinished(() => source.close());
  return source;
}

/** A store with what `fill` puts into it, closed again. */
async function filled(fill: (store: Store, place: StoreSetup) => Promise<unknown>): Promise<StoreSetup> {
  const place = newPlace();
  const store = await openTestStore(place);
  await fill(store, place);
  await store.close();
  return place;
}

function all<P extends Part>(source: Export, part: P, after = 0): Stored[P][] {
  return [...source.batches(part, after)].flat();
}

describe('what is read out', () => {
  it('has everything that is kept, pending and settled apart', async () => {
    const secret = newDelivery({ confidential: { secret: Buffer.from('s') }, owned: false });
    const spooled = newDelivery({ owned: false });
    const ended = newDelivery();
    let settledRecord: DeliveryRecord | undefined;
    const place = await filled(async (store, { spoolDir }) => {
      await store.insert(secret);
      await store.insert({
        ...spooled,
        body: await spooledBody(spoolDir, spooled.runId, Buffer.alloc(1000, 'x')),
      });
      const ref = await store.insert(ended);
      await store.beginAttempt(ref, Date.now());
      const result = attempt(1, { status: 404, headers: 'Server: a', excerpt: Buffer.from('gone') });
      await store.endAttempt(ref, result, { state: 'failed', reason: 'exhausted' });
      settledRecord = await store.find(ended.runId);
    });
    const source = open(place);
    const [first, second] = all(source, 'pending');
    expect(first).toMatchObject({ runId: secret.runId, state: 'pending', counted: 0, trigger: 'automatic' });
    expect(first!.sealed!.keyId).toBe(KEYRING.newest);
    expect(first!.body).toEqual({ bytes: expect.anything() });
    expect(second!.body).toEqual({ file: join(place.spoolDir, spooled.runId), size: 1000 });
    expect(second).not.toHaveProperty('sealed');
    const { signed, ...kept } = settledRecord!;
    expect(all(source, 'settled')).toMatchObject([kept]);
    expect(signed, 'told by what is sealed').toBe(false);
    expect([source.count('pending', 0), source.count('settled', 0)]).toEqual([2, 1]);
    expect([source.count('pending', first!.position), all(source, 'pending', first!.position)]).toEqual([
      1,
      [second],
    ]);
  });

  it('is in order after a crash: what was cut off is recorded as interrupted, once', async () => {
    const place = await filled(async store => {
      const [first, last] = await Promise.all([store.insert(newDelivery()), store.insert(newDelivery())]);
      await store.beginAttempt(first, Date.now());
      for (const number of [1, 2]) {
        await store.beginAttempt(last, Date.now());
        await store.endAttempt(last, attempt(number, { error: 'timeout' }), { state: 'pending', dueAt: 0 });
      }
      await store.beginAttempt(last, Date.now());
    });
    const expected = [
      [1, ['interrupted']],
      [2, ['timeout', 'timeout', 'interrupted']],
    ];
    for (const nodeId of ['once', 'again']) {
      const source = openExport({ keyring: KEYRING, nodeId, clock: systemClock, ...place });
      const read = all(source, 'pending').map(each => [
        each.counted,
        each.attempts.map(({ error }) => error),
      ]);
      source.close();
      expect(read).toEqual(expected);
    }
  });

  it.each([
    ['rows', 1203, 10, [500, 500, 203]],
    ['bytes of bodies', 5, 3 * 1024 * 1024, [3, 2]],
  ])('comes in batches bounded by %s', async (_, count, size, lengths) => {
    const body = { bytes: Buffer.alloc(size) };
    const place = await filled(store =>
      Promise.all(Array.from({ length: count }, () => store.insert(newDelivery({ owned: false, body })))),
    );
    expect([...open(place).batches('pending', 0)].map(batch => batch.length)).toEqual(lengths);
  });

  it('counts what receivers answered among the bytes', async () => {
    const place = await filled(store =>
      Promise.all(
        Array.from({ length: 200 }, async () => {
          const ref = await store.insert(newDelivery({ begunAt: Date.now() }));
          const result = attempt(1, {
            status: 200,
            headers: 'x'.repeat(1024),
            excerpt: Buffer.alloc(63 * 1024),
          });
          await store.endAttempt(ref, result, { state: 'delivered' });
        }),
      ),
    );
    expect([...open(place).batches('settled', 0)].map(batch => batch.length)).toEqual([128, 72]);
  });
});

describe('what is read out of runs', () => {
  const wanted = { projectId: 'p-demo', app: 'hello', limit: 100, each: false };
  const end = { state: 'failed', endedAt: 5.5, statusCode: 502, error: 'app_unreachable' } as const;

  it('has everything that is kept, by where their results are', async () => {
    const [kept, spooled, delivered] = [newRun(), newRun(), newRun()] as const;
    const place = await filled(async (store, { spoolDir }) => {
      const delivery = newDelivery({ runId: delivered.runId });
      const outcomes = new Map<string, RunOutcome>([
        [kept.runId, { result: { bytes: new Uint8Array() } }],
        [spooled.runId, { result: await spooledBody(spoolDir, spooled.runId, Buffer.alloc(1000)) }],
        [delivered.runId, { delivery }],
      ]);
      for (const run of [kept, spooled, delivered]) await store.runs.insert(run);
      for (const { ref, runId } of await store.runs.claim([wanted])) {
        await store.runs.begin(ref, 4.5);
        await store.runs.end(ref, end, outcomes.get(runId)!);
      }
    });
    const source = open(place);
    const [first, second] = all(source, 'kept');
    expect(first).toMatchObject({ runId: kept.runId, starts: 1, startedAt: 4.5, ...end });
    expect(first!.result).toEqual({ bytes: expect.objectContaining({ byteLength: 0 }) });
    expect(second!.result).toEqual({ file: join(place.spoolDir, spooled.runId), size: 1000 });
    expect(all(source, 'delivered')).toMatchObject([{ runId: delivered.runId, ...end }]);
    expect(all(source, 'delivered')[0]).not.toHaveProperty('result');
    expect([source.count('kept', 0), source.count('delivered', 0), source.count('pending', 0)]).toEqual([
      2, 1, 1,
    ]);
    expect([source.count('kept', first!.position), all(source, 'kept', first!.position)]).toEqual([
      1,
      [second],
    ]);
  });

  it('has those that wait with their request, and the starts that were cut off', async () => {
    const [begun, spooled] = [newRun(), newRun({ query: '' })] as const;
    const place = await filled(async (store, { spoolDir }) => {
      await store.runs.insert(begun);
      const [claimed] = await store.runs.claim([wanted]);
      await store.runs.begin(claimed!.ref, 4.5);
      const body = await spooledBody(spoolDir, `${spooled.runId}${REQUEST_SUFFIX}`, Buffer.alloc(1000));
      await store.runs.insert({ ...spooled, body });
      await store.runs.cancel('p-demo', spooled.runId);
    });
    const source = open(place);
    const [first, second] = all(source, 'waiting');
    expect(first).toMatchObject({ runId: begun.runId, starts: 1, startedAt: 4.5, cancelled: false });
    expect(first).not.toHaveProperty('body');
    expect(first).not.toHaveProperty('query');
    expect(unsealHeaders(first!.headers, begun.runId, KEYRING)).toEqual(begun.headers);
    expect(second).toMatchObject({ starts: 0, cancelled: true, query: '', method: 'POST', path: '/run' });
    expect(second!.body).toEqual({
      file: join(place.spoolDir, `${spooled.runId}${REQUEST_SUFFIX}`),
      size: 1000,
    });
    expect(all(source, 'waiting', first!.position)).toEqual([second]);
  });

  it('has the keys, each at a place that stays the same', async () => {
    const place = await filled(store =>
      Promise.all(
        ['c', 'a', 'b'].map(key =>
          store.runs.insert(newRun({ idempotency: { key, fingerprint: Buffer.from(key) } })),
        ),
      ),
    );
    const source = open(place);
    const keys = all(source, 'keys');
    expect(keys.map(({ position, key }) => [position, key])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect([source.count('keys', 0), source.count('keys', 2), source.count('keys', 3)]).toEqual([3, 1, 0]);
    expect(all(source, 'keys', 2)).toEqual([keys[2]]);
  });

  it('comes in batches bounded by the bytes of bodies and headers', async () => {
    const bytes = Buffer.alloc(2 * 1024 * 1024);
    const headers = ['x', 'y'.repeat(1024 * 1024)];
    const place = await filled(store =>
      Promise.all(Array.from({ length: 5 }, () => store.runs.insert(newRun({ body: { bytes }, headers })))),
    );
    expect([...open(place).batches('waiting', 0)].map(batch => batch.length)).toEqual([3, 2]);
  });
});

describe('opening', () => {
  it('is refused while a service has the directory', async () => {
    const place = newPlace();
    await openTestStore(place);
    expect(() => open(place)).toThrow(StartError);
    expect(() => open(place)).toThrow(`in use by another process (pid ${process.pid})`);
  });

  it.each(['an empty directory', 'no directory'])('leaves %s as it is', kind => {
    const parent = temporaryDirectory();
    const dir = kind === 'no directory' ? join(parent, 'none') : parent;
    expect(() => open({ dir, spoolDir: join(dir, 'spool') })).toThrow(UsageError);
    expect(kind === 'no directory' ? existsSync(dir) : readdirSync(dir)).toEqual(
      kind === 'no directory' ? false : [],
    );
  });

  it('is refused while pending deliveries need a key that is not there, and lets go of the directory', async () => {
    const place = await filled(store =>
      store.insert(newDelivery({ confidential: { secret: Buffer.from('s') } })),
    );
    const keyring = createKeyring([new Uint8Array(32).fill(1)]);
    expect(() => open({ ...place, keyring })).toThrow(
      `1 pending deliveries are sealed with the encryption key ${KEYRING.newest}`,
    );
    expect(open(place).count('pending', 0)).toBe(1);
  });
});

describe('a store that is marked', () => {
  it('is served no more, and can still be read out', async () => {
    const place = await filled(store => store.insert(newDelivery()));
    const source = openExport({ keyring: KEYRING, nodeId: 'first', clock: systemClock, ...place });
    expect(source.mark).toBeUndefined();
    const mark = { importId: '5f0c', place: 'db.example:5432/afterword', at: Date.UTC(2026, 0, 2) };
    source.setMark(mark);
    source.close();

    await expect(openTestStore(place)).rejects.toThrow(
      `the deliveries and runs in the data directory ${place.dir} were moved to db.example:5432/afterword ` +
        '(by afterword migrate, 2026-01-02T00:00:00.000Z)',
    );
    await expect(openTestStore(place)).rejects.toBeInstanceOf(StartError);
    const again = open(place);
    expect([again.mark, again.count('pending', 0)]).toEqual([mark, 1]);
  });

  it('is refused by a version that does not know of marks', async () => {
    const place = await filled(async () => {});
    open(place);
    // The first version knew one step of the schema, and refuses a database with more.
    const version = readFileSync(join(place.dir, 'afterword.db')).readUInt32BE(60);
    expect(version).toBeGreaterThan(1);
  });
});
