/**
 * Nodes that share one database, each a process of its own; and their records.
 */
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createStore } from '../../src/create-store.ts';
import { silentLogger } from '../../src/log.ts';
import type { Store } from '../../src/store/store.ts';
import type { Database } from './postgres-database.ts';
import { configure, type Place, type Settings } from './process.ts';
import { JWT_SECRET, PROJECT } from './service.ts';

/** The same for all, or they could not read each other's secrets. */
const ENCRYPTION_KEY = Buffer.alloc(32, 'not a secret').toString('base64');

export interface NodeSettings extends Settings {
  /** Whether it sends the Standard Webhooks headers, by which a receiver can tell it from another. */
  readonly standardWebhooks?: boolean;
}

export function configureNode(
  { url }: Pick<Database, 'url'>,
  { standardWebhooks = false, more = {}, ...settings }: NodeSettings,
): Place {
  return configure({
    ...settings,
    more: {
      database: url,
      encryptionKey: ENCRYPTION_KEY,
      projects: { [PROJECT]: { jwt: { secret: JWT_SECRET }, standardWebhooks } },
      ...more,
    },
  });
}

/** The records that the nodes have left, as another node sees them. */
export async function openRecords({ file, data }: Place): Promise<Store> {
  const { config } = loadConfig({ file, env: {}, cwd: data });
  const store = createStore({
    config,
    nodeId: 'the test',
    spoolDir: data,
    clock: systemClock,
    log: silentLogger,
  });
  await store.open();
  onTestFinished(() => store.close());
  return store;
}
