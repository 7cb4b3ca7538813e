/** What is confidential in a round to another target: sealed like everything else, and not without its key. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { createKeyring } from '../../../../src/store/seal.ts';
import type { NewDelivery, Store } from '../../../../src/store/store.ts';
import { attempt, newDelivery, temporaryDirectory } from '../../samples.ts';
import { KEYRING, openTestStore } from '../opening.ts';

const CANARY = 'canary-51b2e8';
const TO = { target: 'https://elsewhere.example/visible', authorization: `Basic ${CANARY}` };

function newPlace() {
  const dir = temporaryDirectory();
  return { dir, spoolDir: join(dir, 'spool') };
}

async function failed(store: Store): Promise<NewDelivery> {
  const delivery = newDelivery({ confidential: { secret: Buffer.from(CANARY) } });
  const ref = await store.insert(delivery);
  await store.endAttempt(ref, attempt(1), { state: 'failed', reason: 'rejected' });
  return delivery;
}

it('is in none of the files', async () => {
  const place = newPlace();
  const store = await openTestStore(place);
  const { runId } = await failed(store);
  const idempotency = { key: 'a key', fingerprint: Buffer.from('a digest') };
  await store.ledger.redeliver({ runId, at: Date.now(), to: TO, idempotency });
  await store.close();
  const bytes = execFileSync('find', [place.dir, '-type', 'f', '-exec', 'cat', '{}', '+']);
  expect(bytes.includes(TO.target)).toBe(true);
  expect(bytes.includes(CANARY)).toBe(false);
});

it('cannot be made of what cannot be opened, and nothing happens then', async () => {
  const place = newPlace();
  const first = await openTestStore(place);
  const { runId } = await failed(first);
  await first.close();
  const store = await openTestStore({ ...place, keyring: createKeyring([randomBytes(32)]) });
  const before = await store.find(runId);
  const at = Date.now();
  expect(await store.ledger.redeliver({ runId, at, to: TO })).toEqual({ outcome: 'unreadable' });
  expect(await store.find(runId)).toEqual(before);
});

it('keeps the service from starting without its key while it is pending', async () => {
  const place = newPlace();
  const old = KEYRING.keys.get(KEYRING.newest)!;
  const first = await openTestStore(place);
  const { runId } = await failed(first);
  await first.close();

  const fresh = randomBytes(32);
  const both = await openTestStore({ ...place, keyring: createKeyring([fresh, old]) });
  await both.ledger.redeliver({ runId, at: Date.now(), to: TO });
  await both.close();

  await expect(openTestStore(place)).rejects.toThrow(
    '1 pending deliveries are sealed with the encryption key',
  );
  // The delivery's own secret is sealed with the old one, which this round does not need.
  const store = await openTestStore({ ...place, keyring: createKeyring([fresh]) });
  expect(await store.claim(1)).toMatchObject([{ runId, target: TO.target }]);
});

it('fails the round, on record, where it was tampered with', async () => {
  const place = newPlace();
  const first = await openTestStore(place);
  const { runId } = await failed(first);
  await first.ledger.redeliver({ runId, at: Date.now(), to: TO });
  await first.close();
  const db = new DatabaseSync(join(place.dir, 'afterword.db'));
  db.exec('UPDATE overrides SET sealed = zeroblob(64)');
  db.close();
  const store = await openTestStore(place);
  expect(await store.claim(10)).toEqual([]);
  expect(await store.find(runId)).toMatchObject({ state: 'failed', reason: 'blocked', round: 2 });
});
