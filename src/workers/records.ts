/**
 * The records of a machine with workers, as its primary shows them on the admin listener: those of the embedded
 * store that it has itself, or, with a database, by connections of its own, as a node that sends nothing.
 */
import type { AddressInfo } from 'node:net';
import { type Api, createApi } from '../api/api.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { localAddresses } from '../core.ts';
import { createStore } from '../create-store.ts';
import { createTargetPolicy } from '../delivery/target.ts';
import type { Logger } from '../log.ts';
import { createScratch, newNodeId } from '../node.ts';
import { createStoredRuns } from '../runs/stored-runs.ts';
import type { Host } from '../runtime/host.ts';
import type { SharedStore } from '../store/store-port.ts';
import type { Store } from '../store/store.ts';

/** People ask now and then; the rest of the connections is for the workers. */
const CONNECTIONS = 4;

export interface RecordsOptions {
  readonly config: Config;
  readonly version: string;
  /** The embedded store, where there is no database. */
  readonly shared: SharedStore | undefined;
  readonly host: Pick<Host, 'states'>;
  readonly listeners: () => readonly AddressInfo[];
  /** A delivery was cancelled. */
  readonly onCancelled: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Records {
  readonly api: Api;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createRecords(options: RecordsOptions): Records {
  const { config, version, shared, host, listeners, onCancelled, clock, log } = options;
  const own = shared === undefined ? openOwn(options) : undefined;
  const store: Pick<Store, 'available' | 'find' | 'runs' | 'ledger' | 'stats'> = shared ?? own!.store;
  const api = createApi({
    config,
    version,
    store,
    runs: createStoredRuns({ runs: store.runs, clock, log }),
    policy: createTargetPolicy({ allow: config.webhooks.allowTargets, listeners, localAddresses }),
    hosted: async () => host.states(),
    onJob: () => {}, // the workers look for it
    onCancelled,
    clock,
    log,
  });
  return {
    api,
    async start() {
      await own?.scratch.start();
      await own?.store.open();
    },
    async stop() {
      await own?.store.close();
      await own?.scratch.stop();
    },
  };
}

function openOwn({ config, clock, log }: RecordsOptions) {
  const { data } = config;
  const database = config.database!;
  const nodeId = newNodeId();
  const scratch = createScratch({ data, nodeId, log });
  const few = { ...database, connections: Math.min(database.connections, CONNECTIONS) };
  const own = { ...config, database: few };
  return { store: createStore({ config: own, nodeId, spoolDir: scratch.dir, clock, log }), scratch };
}
