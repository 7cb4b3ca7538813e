/**
 * The composition root of a machine with several workers: the process that was started is the primary. It has
 * what there is once on the machine (the embedded store, the processes of apps, the admin listener), and keeps
 * the workers, which do the rest.
 */
import { rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Admin, createAdmin, type Readiness } from '../admin.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { AppConfig } from '../config/config.ts';
import { createSharedStore } from '../create-store.ts';
import { createDashboard } from '../dashboard.ts';
import { createAuthenticator } from '../gateway/auth.ts';
import type { Logger } from '../log.ts';
import { createMetrics, type Metrics, sumOf } from '../metrics.ts';
import { newNodeId } from '../node.ts';
import { createRetention } from '../retention.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { serveLeases } from '../runtime/leasing.ts';
import { type Addresses, DRAIN_MS, type Service, type ServiceOptions, shownAddresses } from '../service.ts';
import type { SharedStore } from '../store/store-port.ts';
import { Crew } from './crew.ts';
import type { Begin } from './messages.ts';
import { packConfig, shareOf } from './packed-config.ts';
import { createRecords, type Records } from './records.ts';
import type { WorkerProcess } from './worker-process.ts';

export interface PrimaryOptions extends ServiceOptions {
  /** Workers log in readable lines. */
  readonly pretty: boolean;
}

export interface Primary extends Service {
  /** New workers in place of all, one after another, without a caller noticing. */
  replaceWorkers(): Promise<void>;
}

/** Calls, then attempts, then what is left to write. */
const WORKER_GRACE_MS = 2 * DRAIN_MS + 25_000;

export function createPrimary(options: PrimaryOptions): Primary {
  return new Machine(options);
}

/** What the primary itself has. */
interface Parts {
  /** With a database, each worker has a store of its own. */
  readonly store: SharedStore | undefined;
  readonly host: Host;
  readonly crew: Crew;
  readonly records: Records;
  readonly admin: Admin;
}

class Machine implements Primary {
  readonly #options: PrimaryOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  /** How to stop what has been started. */
  readonly #started = new AsyncDisposableStack();
  #phase: 'starting' | 'running' | 'stopping' = 'starting';
  #stopping: Promise<void> | undefined;
  #parts: Parts | undefined;

  constructor(options: PrimaryOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
  }

  async start(): Promise<Addresses> {
    try {
      return await this.#start();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #start(): Promise<Addresses> {
    const { config } = this.#options;
    const { data, database, role, workers } = config;
    const at: { admin?: AddressInfo; listen?: AddressInfo } = {};
    const { store, host, crew, records, admin } = this.#build(at);

    if (store !== undefined) await this.#openStore(store);
    this.#started.defer(() => records.stop());
    await records.start();
    at.admin = await admin.listen(config.admin);
    this.#started.defer(() => admin.stop());
    await host.start();
    this.#started.defer(() => host.stop());
    this.#started.defer(() => crew.stop());
    const addresses = { listen: await crew.start(), admin: at.admin };
    if (addresses.listen) at.listen = addresses.listen;

    this.#phase = 'running';
    const place = database ? { database: `${database.host}/${database.database}` } : { data };
    this.#log.info({ ...shownAddresses(addresses), role, workers, ...place }, 'ready');
    return addresses;
  }

  reload(app: AppConfig): void {
    this.#parts?.host.reload(app);
  }

  async replaceWorkers(): Promise<void> {
    if (this.#phase === 'running') await this.#parts?.crew.replace();
  }

  stop(): Promise<void> {
    if (this.#phase === 'running') this.#log.info('stopping');
    this.#phase = 'stopping';
    this.#stopping ??= this.#started.disposeAsync();
    return this.#stopping;
  }

  #build(at: { readonly admin?: AddressInfo; readonly listen?: AddressInfo }): Parts {
    const { config, version } = this.#options;
    const [log, clock] = [this.#log, this.#clock];
    const spoolDir = join(config.data, 'spool');
    const parts = { config, nodeId: newNodeId(), spoolDir, clock, log };
    const store = config.database === undefined ? createSharedStore(parts) : undefined;
    const host = createHost({ config, onCall: config.role === 'dispatcher', clock, log });
    const crew = new Crew({
      size: config.workers,
      clock,
      log,
      begin: (number, worker) => this.#begin(number, worker, at.admin!),
      attend: worker => this.#attend(worker),
      graceMs: WORKER_GRACE_MS,
    });
    const listeners = (): AddressInfo[] => [at.admin, at.listen].filter(each => each !== undefined);
    const metrics = this.#createMetrics(store);
    const onCancelled = (): void => metrics.settled({ state: 'cancelled' });
    const known = { config, version, listeners, clock, log };
    const records = createRecords({ ...known, shared: store, host, onCancelled });
    const admin = this.#createAdmin(store, crew, records, metrics);
    this.#parts = { store, host, crew, records, admin };
    return this.#parts;
  }

  async #openStore(store: SharedStore): Promise<void> {
    const { config } = this.#options;
    const [log, clock] = [this.#log, this.#clock];
    await store.open();
    this.#started.defer(() => store.close());
    const recovered = await store.recover();
    if (recovered > 0) log.info({ recovered }, 'deliveries taken up from an earlier process');
    const retention = createRetention({ store, clock, log, config });
    retention.start();
    this.#started.defer(() => retention.stop());
  }

  #begin(number: number, worker: WorkerProcess, admin: AddressInfo): Begin {
    const { config, version, pretty } = this.#options;
    const packed = packConfig(shareOf(config, config.workers));
    return { number, config: packed, version, pretty, admin, draftDir: this.#draftDir(worker) };
  }

  /** Unfinished files of a worker go when it does; with a database it sees to that itself. */
  #draftDir({ pid }: WorkerProcess): string | undefined {
    const { data, database } = this.#options.config;
    return database === undefined ? join(data, 'spool', `drafts-${pid}`) : undefined;
  }

  /** Serves a worker; what it returns is called when that is gone. */
  #attend(worker: WorkerProcess): () => Promise<void> {
    const { channel } = worker;
    const { apps } = this.#options.config;
    const { store, host } = this.#parts!;
    const share = store?.share(channel.port('store'));
    const leasing = serveLeases({
      host,
      port: channel.port('leases'),
      appOf: (projectId, name) => apps.get(projectId)!.get(name)!,
    });
    return async () => {
      leasing.end();
      const recovered = (await share?.end()) ?? 0;
      if (recovered > 0) this.#log.info({ recovered, pid: worker.pid }, 'deliveries taken up from a worker');
      const drafts = this.#draftDir(worker);
      if (drafts !== undefined) await rm(drafts, { recursive: true, force: true });
    };
  }

  /** What this process itself uses and does; the rest is counted where it happens. */
  #createMetrics(store: SharedStore | undefined): Metrics {
    const metrics = createMetrics({
      size: () => ({ held: 0, waiting: 0, inFlight: 0 }),
      storeAvailable: () => store?.available ?? true,
      runsHeld: () => 0,
    });
    metrics.start();
    this.#started.defer(() => metrics.stop());
    return metrics;
  }

  #createAdmin(store: SharedStore | undefined, crew: Crew, { api }: Records, own: Metrics): Admin {
    const { config, version } = this.#options;
    const [log, clock] = [this.#log, this.#clock];
    const { adminToken, projects } = config;
    const metrics: Pick<Metrics, 'contentType' | 'text'> = {
      contentType: own.contentType,
      text: async () => sumOf([await own.snapshot(), ...(await crew.measure())]).text(),
    };
    const readiness: Readiness = () => {
      if (this.#phase !== 'running') return this.#phase;
      if (crew.serving.length === 0) return 'starting';
      const available = store?.available ?? crew.serving.some(worker => worker.available);
      return available ? undefined : 'store_unavailable';
    };
    const authenticator = createAuthenticator({ projects, clock, log });
    const dashboard = createDashboard({ log });
    const seen = { metrics, readiness, api, dashboard };
    return createAdmin({ adminToken, version, authenticator, ...seen, clock, log });
  }
}
