/**
 * Where a store of the bench keeps its deliveries, in a form that can be told to another process.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import { silentLogger } from '../../src/log.ts';
import type { ConnectionOptions } from '../../src/store/postgres/connection.ts';
import { createPostgresStore } from '../../src/store/postgres/store.ts';
import { createKeyring } from '../../src/store/seal.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';

export const STORES = ['sqlite', 'postgres'] as const;
export type StoreName = (typeof STORES)[number];

export interface Place {
  readonly store: StoreName;
  /** All of an embedded store, scratch files of another. */
  readonly dir: string;
  /** Of the database, where there is one. */
  readonly url?: string;
}

const KEYRING = createKeyring([new Uint8Array(32).fill(7)]);

/** Of a node, as configured by default. */
const CONNECTIONS = 8;

/** Another node at every call. */
export function storeAt({ dir, url }: Place): Store {
  const common = {
    spoolDir: join(dir, 'spool'),
    keyring: KEYRING,
    nodeId: randomUUID(),
    clock: systemClock,
    log: silentLogger,
  };
  if (url === undefined) return createSqliteStore({ dir, ...common });
  return createPostgresStore({ connection: connectionOf(url), connections: CONNECTIONS, ...common });
}

function connectionOf(url: string): ConnectionOptions {
  const read = parseDatabaseUrl(url);
  if ('faults' in read) throw new Error(`--database: ${read.faults.join('; ')}`);
  const { host, port, database, user, password } = read;
  return { host, port, database, user, ...(password !== undefined && { password }) };
}
