/**
 * Makes the store that a configuration asks for. The only file that knows which stores there are.
 */
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { Logger } from './log.ts';
import { loadKeyring } from './store/keys.ts';
import { createPostgresStore } from './store/postgres/store.ts';
import { createKeyring } from './store/seal.ts';
import { createSqliteStore } from './store/sqlite/store.ts';
import { createRemoteStore } from './store/sqlite/remote.ts';
import { createSharedSqliteStore } from './store/sqlite/sharing.ts';
import type { SharedStore } from './store/store-port.ts';
import type { Store } from './store/store.ts';

export interface StoreParts {
  readonly config: Pick<Config, 'data' | 'database' | 'encryptionKeys'>;
  readonly nodeId: string;
  /** Where captured answers are when the store gets them. */
  readonly spoolDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createStore({ config, ...parts }: StoreParts): Store {
  const { data: dir, database, encryptionKeys } = config;
  if (database === undefined) {
    return createSqliteStore({ dir, keyring: loadKeyring({ dir, configured: encryptionKeys }), ...parts });
  }
  // A key kept in a folder would not be known to the other nodes.
  const keyring = createKeyring(encryptionKeys);
  const { connections, ...connection } = database;
  return createPostgresStore({ connection, connections, keyring, ...parts });
}

/** The embedded store for this process and those that it serves. */
export function createSharedStore({ config, ...parts }: StoreParts): SharedStore {
  const { data: dir, encryptionKeys: configured } = config;
  return createSharedSqliteStore({ dir, keyring: loadKeyring({ dir, configured }), ...parts });
}

export { createRemoteStore };
