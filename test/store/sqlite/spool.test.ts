/** Large bodies of the embedded store, each in a file of the spool directory. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newDelivery, spooledBody, temporaryDirectory } from '../samples.ts';
import { openTestStore } from './opening.ts';

function place() {
  const dir = temporaryDirectory();
  return { dir, spoolDir: join(dir, 'spool') };
}

describe('the spool', () => {
  it('keeps a file where it is', async () => {
    const { dir, spoolDir } = place();
    const store = await openTestStore({ dir, spoolDir });
    const delivery = newDelivery();
    const bytes = randomBytes(300_000);
    const body = await spooledBody(spoolDir, delivery.runId, bytes);
    const ref = await store.insert({ ...delivery, body });
    await store.close();
    const reopened = await openTestStore({ dir, spoolDir });
    expect(await reopened.body(ref)).toEqual(body);
    expect((await readFile(join(spoolDir, delivery.runId))).equals(bytes)).toBe(true);
  });

  it('loses, at the next start, files that no delivery names', async () => {
    const { dir, spoolDir } = place();
    const store = await openTestStore({ dir, spoolDir });
    const delivery = newDelivery();
    const body = await spooledBody(spoolDir, delivery.runId, randomBytes(10));
    await store.insert({ ...delivery, body });
    const inMemory = newDelivery();
    await store.insert(inMemory);
    const orphans = [inMemory.runId, newDelivery().runId, `${newDelivery().runId}.part`];
    for (const orphan of orphans) await spooledBody(spoolDir, orphan, randomBytes(10));
    await store.close();
    await openTestStore({ dir, spoolDir });
    expect(existsSync(join(spoolDir, delivery.runId))).toBe(true);
    expect(orphans.filter(orphan => existsSync(join(spoolDir, orphan)))).toEqual([]);
  });
});
