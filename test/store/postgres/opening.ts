/** Opens stores on PostgreSQL for tests, each as a node that never was before. */
import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/log.ts';
import type { ConnectionOptions } from '../../../src/store/postgres/connection.ts';
import { LEASE, type Lease } from '../../../src/store/postgres/lease.ts';
import { createPostgresStore, type PostgresStoreOptions } from '../../../src/store/postgres/store.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { type Relay, startRelay } from '../../support/relay.ts';
import { until } from '../../support/waiting.ts';
import type { Place } from '../conformance.ts';
import { temporaryDirectory } from '../samples.ts';

export const KEYRING = createKeyring([new Uint8Array(32).fill(7)]);

/** So short that a test can wait for it, and long enough for a busy machine. */
export const SHORT_LEASE: Lease = { beat: 100, valid: 1_200, dead: 1_500, look: 50 };

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

/** A store that is closed does not wait long for the server to see the end of its connections; this does. */
export async function untilGone(database: Database): Promise<void> {
  const connected = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'afterword'`;
  await until(async () => (await database.query(connected)).length === 0);
}

/** A node whose connections go through a relay. */
export async function openCuttable(
  database: Database,
  setup: Partial<StoreSetup> = {},
): Promise<{ relay: Relay; store: Store }> {
  const url = new URL(database.url);
  const relay = await startRelay(Number(url.port));
  url.port = String(relay.port);
  const store = await openTestStore({ url: url.href, lease: SHORT_LEASE, ...setup });
  return { relay, store };
}

const databases = new Map<string, Promise<Database>>();

/** For the common suites, in which nothing is taken over before they say so. The database of a place is made when the place is first opened. */
export async function openStoreAt({ dir, spoolDir }: Place): Promise<Store> {
  const database = databases.get(dir) ?? createDatabase();
  databases.set(dir, database);
  return openTestStore({ url: (await database).url, spoolDir, lease: { ...LEASE, look: 600_000 } });
}
