/** Opens stores on PostgreSQL for tests, each as a node that never was before. */
import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/log.ts';
import type { ConnectionOptions } from '../../../src/store/postgres/connection.ts';
import type { Lease } from '../../../src/store/postgres/lease.ts';
import { createPostgresStore, type PostgresStoreOptions } from '../../../src/store/postgres/store.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { temporaryDirectory } from '../samples.ts';

export const KEYRING = createKeyring([new Uint8Array(32).fill(7)]);

/** So short that a test can wait for it, and long enough for a busy machine. */
export const SHORT_LEASE: Lease = { beat: 100, valid: 400, dead: 600, look: 50 };

export interface StoreSetup extends Partial<PostgresStoreOptions> {
  readonly url: string;
}

export function connectionOf(url: string): ConnectionOptions {
  const { hostname, port, pathname, username, password } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

export function createTestStore({ url, ...options }: StoreSetup): Store {
  const store = createPostgresStore({
    connection: connectionOf(url),
    connections: 4,
    keyring: KEYRING,
    nodeId: randomUUID(),
    spoolDir: options.spoolDir ?? temporaryDirectory(),
    clock: systemClock,
    log: silentLogger,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

export async function openTestStore(setup: StoreSetup): Promise<Store> {
  const store = createTestStore(setup);
  await store.open();
  return store;
}
