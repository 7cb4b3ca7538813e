/** When the disk is full or the database busy: writes wait, the store says so, and nothing is lost. */
import { randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import { newDelivery, temporaryDirectory } from '../samples.ts';
import { collectingLog, openTestStore } from './opening.ts';
import { mountTmpfs } from './tmpfs.ts';

const MIB = 1024 * 1024;
const NO_MOUNT = 'needs to mount a small file system, which is not permitted here';
const WAIT = { timeout: 10_000, interval: 20 };

/** Leaves `room` bytes; the returned function frees the rest again. */
function fill(dir: string, room: number): () => void {
  const { bavail, bsize } = statfsSync(dir);
  const filler = join(dir, 'filler');
  writeFileSync(filler, Buffer.alloc(bavail * bsize - room));
  return () => rmSync(filler);
}

describe('a full disk', () => {
  it('keeps what cannot be written and writes it once there is room', async ({ skip }) => {
    const dir = temporaryDirectory();
    skip(!mountTmpfs(dir, 'size=16m'), NO_MOUNT);
    const { log, lines } = collectingLog();
    const place = { dir, spoolDir: join(dir, 'spool') };
    const store = await openTestStore({ ...place, log, minFree: 0 });
    const free = fill(dir, MIB);

    const body = { bytes: randomBytes(100_000) };
    const deliveries = Array.from({ length: 30 }, () => newDelivery({ body }));
    let written = 0;
    const inserts = deliveries.map(async delivery => {
      await store.insert(delivery);
      written += 1;
    });
    await vi.waitFor(() => expect(store.available).toBe(false), WAIT);
    await vi.waitFor(() => expect(lines.at(-1)).toMatchObject({ event: 'store_unavailable' }), WAIT);
    expect(written).toBeLessThan(30);

    free();
    await Promise.all(inserts);
    expect(store.available).toBe(true);
    expect(lines).toMatchObject([
      { level: 'error', event: 'store_unavailable' },
      { level: 'info', event: 'store_available' },
    ]);

    await store.close();
    const reopened = await openTestStore({ ...place, minFree: 0 });
    const found = await Promise.all(deliveries.map(({ runId }) => reopened.find(runId)));
    expect(found.filter(record => record?.state === 'pending')).toHaveLength(30);
    expect((await reopened.backlog()).pending.get('p-demo')).toBe(30);
  });

  it('closes with an error for what could not be written', async ({ skip }) => {
    const dir = temporaryDirectory();
    skip(!mountTmpfs(dir, 'size=16m'), NO_MOUNT);
    const { log, lines } = collectingLog();
    const place = { dir, spoolDir: join(dir, 'spool') };
    const store = await openTestStore({ ...place, log, minFree: 0 });
    const kept = newDelivery();
    await store.insert(kept);
    const free = fill(dir, 0);
    const settled = Promise.allSettled([
      store.insert(newDelivery({ body: { bytes: randomBytes(MIB) } })),
      store.insert(newDelivery()),
    ]);
    await vi.waitFor(() => expect(store.available).toBe(false), WAIT);
    await store.close();
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      event: 'store_closed_unwritten',
      operations: 2,
      deliveries: 2,
    });

    free();
    const reopened = await openTestStore({ ...place, minFree: 0 });
    expect(await reopened.find(kept.runId)).toMatchObject({ state: 'pending' });
  });

  it('is told before it is full', async ({ skip }) => {
    const dir = temporaryDirectory();
    skip(!mountTmpfs(dir, 'size=16m'), NO_MOUNT);
    const store = await openTestStore({ dir, spoolDir: join(dir, 'spool'), minFree: 4 * MIB });
    expect(store.available).toBe(true);
    const free = fill(dir, 2 * MIB);
    await vi.waitFor(() => expect(store.available).toBe(false), WAIT);
    await store.insert(newDelivery()); // what is left of the room is there to be used
    expect(store.available).toBe(false);
    free();
    await vi.waitFor(() => expect(store.available).toBe(true), WAIT);
  });

  it('is seen at the start', async () => {
    const dir = temporaryDirectory();
    const store = await openTestStore({
      dir,
      spoolDir: join(dir, 'spool'),
      minFree: Number.MAX_SAFE_INTEGER,
    });
    expect(store.available).toBe(false);
  });
});

describe('a busy database', () => {
  it('keeps what cannot be written until it is free', async () => {
    const dir = temporaryDirectory();
    const store = await openTestStore({ dir, spoolDir: join(dir, 'spool') });
    const other = new DatabaseSync(join(dir, 'afterword.db'));
    other.exec('BEGIN IMMEDIATE');
    const delivery = newDelivery();
    const insert = store.insert(delivery);
    await vi.waitFor(() => expect(store.available).toBe(false), WAIT);
    other.exec('ROLLBACK');
    other.close();
    await insert;
    expect(store.available).toBe(true);
    expect(await store.find(delivery.runId)).toMatchObject({ state: 'pending' });
  });
});
