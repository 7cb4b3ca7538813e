/** What the embedded store refuses to start with, and how it leaves its files. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/errors.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import { assertDurable, openDatabase } from '../../../src/store/sqlite/database.ts';
import { newDelivery, temporaryDirectory } from '../samples.ts';
import { collectingLog, KEYRING, openTestStore, type StoreSetup } from './opening.ts';
import { mountTmpfs } from './tmpfs.ts';

function newPlace(dir = temporaryDirectory()): { dir: string; spoolDir: string; file: string } {
  return { dir, spoolDir: join(dir, 'spool'), file: join(dir, 'afterword.db') };
}

/** The message that the operator gets. */
async function refusal(setup: StoreSetup): Promise<string> {
  const error = await openTestStore(setup).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StartError);
  return (error as Error).message;
}

/** False when it cannot be done: modes do not bind root, and a mount may not be permitted. */
function forbidWriting(dir: string): boolean {
  if (process.getuid?.() === 0) return mountTmpfs(dir, 'ro,size=1m');
  chmodSync(dir, 0o500);
  onTestFinished(() => chmodSync(dir, 0o700));
  return true;
}

describe('the start', () => {
  it('makes what is missing, for the owner alone', async () => {
    const place = newPlace(join(temporaryDirectory(), 'new'));
    const store = await openTestStore(place);
    await store.insert(newDelivery());
    expect(statSync(place.dir).mode & 0o777).toBe(0o700);
    expect(statSync(place.spoolDir).mode & 0o777).toBe(0o700);
    const files = readdirSync(place.dir, { withFileTypes: true }).filter(entry => entry.isFile());
    expect(files.map(({ name }) => name)).toContain('afterword.db-wal');
    for (const { name } of files)
      expect([name, statSync(join(place.dir, name)).mode & 0o777]).toEqual([name, 0o600]);
  });

  it('may be asked for twice, as may the end, which folds the WAL in', async () => {
    const place = newPlace();
    const store = await openTestStore(place);
    await store.open();
    await store.insert(newDelivery());
    await store.close();
    await store.close();
    expect(existsSync(`${place.file}-wal`)).toBe(false);
  });

  it('is refused to a second store of the same process, and leaves the first its lock', async () => {
    const place = newPlace();
    const first = await openTestStore(place);
    const message = `the data directory ${place.dir} is in use by another process (pid ${process.pid})`;
    expect(await refusal(place)).toBe(message);
    expect(await refusal(place)).toBe(message);
    await first.close();
    expect((await openTestStore(place)).available).toBe(true);
  });

  it('is refused where the directory is a file, or below one', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    expect(await refusal(newPlace(file))).toContain('is a file');
    expect(await refusal(newPlace(join(file, 'below')))).toContain('is a file');
  });

  it('is refused where the directory is not writable', async ({ skip }) => {
    const dir = temporaryDirectory();
    skip(!forbidWriting(dir), 'needs a read-only mount, which is not permitted here');
    expect(await refusal({ dir, spoolDir: temporaryDirectory() })).toContain('is not writable');
  });

  it('is refused to a database of a newer version', async () => {
    const place = newPlace();
    await (await openTestStore(place)).close();
    const db = new DatabaseSync(place.file);
    db.exec('PRAGMA user_version = 999');
    db.close();
    expect(await refusal(place)).toContain('was written by a newer version of Afterword (schema 999');
    // Refused, it must have let go of the directory.
    expect(await refusal(place)).toContain('newer version');
  });

  it.each([
    ['no database', () => randomBytes(8_192)],
    ['a damaged one', () => Buffer.concat([Buffer.from('SQLite format 3\0'), randomBytes(8_192)])],
  ])('is refused to a file that is %s', async (_, content) => {
    const place = newPlace();
    writeFileSync(place.file, content());
    expect(await refusal(place)).toMatch(/afterword\.db is damaged, or is not a database/);
  });

  it('is refused without the key of a pending delivery, and granted with it', async () => {
    const place = newPlace();
    const secret = Buffer.from('a secret');
    const first = await openTestStore(place);
    await first.insert(newDelivery({ confidential: { secret } }));
    await first.close();

    const key = randomBytes(32);
    const message = await refusal({ ...place, keyring: createKeyring([key]) });
    expect(message).toContain(`the encryption key ${KEYRING.newest}, which is not known`);
    expect(message).toContain('old encryptionKey');

    const both = createKeyring([key, KEYRING.keys.get(KEYRING.newest)!]);
    const store = await openTestStore({ ...place, keyring: both });
    await store.recover();
    const [claimed] = await store.claim(1);
    expect(Buffer.from(claimed!.confidential.secret!)).toEqual(secret);

    await store.beginAttempt(claimed!.ref, Date.now());
    await store.endAttempt(
      claimed!.ref,
      { number: 1, startedAt: Date.now(), timings: { queueMs: 0, totalMs: 1 }, status: 200 },
      { state: 'delivered' },
    );
    await store.close();
    expect((await openTestStore({ ...place, keyring: createKeyring([key]) })).available).toBe(true);
  });
});

describe('durability', () => {
  const open = () => {
    const { db } = openDatabase({ file: newPlace().file, nodeId: 'node', keyring: KEYRING });
    onTestFinished(() => db.close());
    return db;
  };

  it('is set on the very connection that the store works with', () => {
    const db = open();
    const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0];
    expect(['journal_mode', 'synchronous', 'fullfsync', 'wal_autocheckpoint'].map(pragma)).toEqual([
      'wal',
      2,
      1,
      8_000,
    ]);
  });

  it.each(['synchronous = NORMAL', 'synchronous = OFF', 'journal_mode = DELETE', 'fullfsync = OFF'])(
    'is refused with %s',
    setting => {
      const db = open();
      expect(() => assertDurable(db)).not.toThrow();
      db.exec(`PRAGMA ${setting}`);
      expect(() => assertDurable(db)).toThrow(StartError);
    },
  );
});

describe('secrets at rest', () => {
  const CANARY = 'canary-7f3a9c';

  it('are in none of the files, neither while the store is open nor after', async () => {
    const place = newPlace();
    const store = await openTestStore(place);
    const confidential = { secret: Buffer.from(CANARY), authorization: `Basic ${CANARY}` };
    await store.insert(newDelivery({ confidential, target: 'https://receiver.example/visible' }));
    await store.insert(newDelivery({ confidential, owned: false }));
    await store.claim(1);

    // By another process: were it this one, closing a database file would drop the store's locks on it.
    const copy = join(temporaryDirectory(), 'copy');
    execFileSync('cp', ['-r', place.dir, copy]);
    await store.close();

    for (const dir of [copy, place.dir]) {
      const bytes = execFileSync('find', [dir, '-type', 'f', '-exec', 'cat', '{}', '+']);
      expect(bytes.includes('https://receiver.example/visible')).toBe(true);
      expect(bytes.includes(CANARY)).toBe(false);
      expect(bytes.includes(Buffer.from(CANARY).toString('base64').slice(0, 16))).toBe(false);
      expect(bytes.includes(Buffer.from(KEYRING.keys.get(KEYRING.newest)!))).toBe(false);
    }
  });

  it('that were tampered with fail their delivery, on record and in the log, and no other', async () => {
    const place = newPlace();
    const first = await openTestStore(place);
    const confidential = { secret: Buffer.from('a secret') };
    const deliveries = Array.from({ length: 3 }, () => newDelivery({ confidential, owned: false }));
    const refs = await Promise.all(deliveries.map(delivery => first.insert(delivery)));
    await first.close();

    const db = new DatabaseSync(place.file);
    const swap = db.prepare(
      'UPDATE contents SET sealed = (SELECT sealed FROM contents WHERE id = ?) WHERE id = ?',
    );
    swap.run(refs[0]!, refs[1]!); // sealed with the right key, but for another delivery
    db.close();

    const { log, lines } = collectingLog();
    const store = await openTestStore({ ...place, log });
    const claimed = await store.claim(10);
    expect(lines).toMatchObject([
      { level: 'error', event: 'secret_unreadable', runId: deliveries[1]!.runId },
    ]);
    expect(claimed.map(({ ref }) => ref)).toEqual([refs[0], refs[2]]);
    expect(await store.find(deliveries[1]!.runId)).toMatchObject({
      state: 'failed',
      reason: 'blocked',
      attempts: [{ number: 1, error: 'secret_unreadable' }],
    });
    expect(await store.claim(10)).toEqual([]);
  });
});
