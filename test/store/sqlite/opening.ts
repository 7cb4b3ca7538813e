/** Opens embedded stores for tests, each as a node that never was before, and reads their log. */
import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createLogger, type Logger, silentLogger } from '../../../src/log.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import { createSqliteStore, type SqliteStoreOptions } from '../../../src/store/sqlite/store.ts';
import type { Store } from '../../../src/store/store.ts';

export const KEYRING = createKeyring([new Uint8Array(32).fill(7)]);

export type StoreSetup = Pick<SqliteStoreOptions, 'dir' | 'spoolDir'> & Partial<SqliteStoreOptions>;

export async function openTestStore(setup: StoreSetup): Promise<Store> {
  const store = createSqliteStore({
    keyring: KEYRING,
    nodeId: randomUUID(),
    clock: systemClock,
    log: silentLogger,
    ...setup,
  });
  onTestFinished(() => store.close());
  await store.open();
  return store;
}

/** A log, and what was written to it. */
export function collectingLog(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { log: createLogger({ level: 'info', destination }), lines };
}
