/**
 * A process to be killed: opens the store of the directory it is given, says `open`, then inserts without
 * end, in as many streams as it is told, and prints each run id once its delivery is acknowledged.
 */
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/log.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';

const [dir, streams] = process.argv.slice(2) as [string, string];
const store = createSqliteStore({
  dir,
  spoolDir: join(dir, 'spool'),
  keyring: createKeyring([new Uint8Array(32).fill(7)]),
  nodeId: randomUUID(),
  clock: systemClock,
  log: silentLogger,
});

async function insertForever(): Promise<never> {
  for (;;) {
    const runId = uuidv7();
    await store.insert({
      runId,
      projectId: 'p-demo',
      app: 'hello',
      target: 'https://receiver.example/hook',
      statusCode: 200,
      createdAt: Date.now(),
      confidential: { secret: Buffer.from('a secret') },
      body: { bytes: Buffer.alloc(2_000, runId) },
      owned: true,
    });
    writeSync(1, `${runId}\n`);
  }
}

await store.open();
writeSync(1, 'open\n');
await Promise.all(Array.from({ length: Number(streams) }, insertForever));
