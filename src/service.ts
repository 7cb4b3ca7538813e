/**
 * The composition root of one process: builds what the role of the node needs from a configuration, starts it
 * in order and stops it in reverse.
 */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Admin, createAdmin, type Readiness } from './admin.ts';
import { type Clock, systemClock } from './clock.ts';
import type { AppConfig, Config } from './config/config.ts';
import { type Core, createCore } from './core.ts';
import { createStore } from './create-store.ts';
import { createDashboard } from './dashboard.ts';
import { createAuthenticator } from './gateway/auth.ts';
import type { Logger } from './log.ts';
import { createScratch, newNodeId } from './node.ts';
import { createRetention, type Retention } from './retention.ts';
import { createHost, type Host } from './runtime/host.ts';
import type { Store } from './store/store.ts';
import type { Tracing } from './trace.ts';
import { openTracing } from './trace/open.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

export interface Addresses {
  /** Undefined where the node's role is not to take calls. */
  readonly listen: AddressInfo | undefined;
  readonly admin: AddressInfo;
}

export interface Service {
  /** Resolves with the addresses it listens on; rejects with a StartError for the operator. */
  start(): Promise<Addresses>;
  /** New processes for an app that runs here and whose files have changed. */
  reload(app: AppConfig): void;
  /** Takes no more calls, lets those under way and the attempts in flight end, then closes the store. */
  stop(): Promise<void>;
}

interface Identity {
  readonly nodeId: string;
  readonly spoolDir: string;
  readonly tracing: Tracing | undefined;
}

interface Parts {
  readonly store: Store;
  readonly host: Host;
  readonly core: Core;
  readonly admin: Admin;
  readonly retention: Retention;
}

/** How long calls, and then attempts, may take to end after a stop. */
export const DRAIN_MS = 25_000;

/** Longer than a balancer that asks every second or two takes to see that a node is not ready. */
const NOTICE_MS = 3_000;

/** How long a node goes on taking calls after a stop. Those that share a database have a balancer before them. */
export function noticeOf({ database }: Config): number {
  return database === undefined ? 0 : NOTICE_MS;
}

export function createService(options: ServiceOptions): Service {
  return new Node(options);
}

class Node implements Service {
  readonly #options: ServiceOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #listeners: AddressInfo[] = [];
  /** How to stop what has been started. */
  readonly #started = new AsyncDisposableStack();
  #phase: 'starting' | 'running' | 'stopping' = 'starting';
  #stopping: Promise<void> | undefined;
  #host: Host | undefined;

  constructor(options: ServiceOptions) {
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
    const { data, database, role } = config;
    const nodeId = newNodeId();
    // The embedded store keeps the files that it gets, in its directory; a database is given their contents.
    const scratch = database && createScratch({ data, nodeId, log: this.#log });
    const spoolDir = scratch?.dir ?? join(data, 'spool');
    const tracing = this.#openTracing();
    const { store, host, core, admin, retention } = this.#build({ nodeId, spoolDir, tracing });

    if (scratch) await this.#begin(scratch.start(), () => scratch.stop());
    await this.#begin(store.open(), () => store.close());
    const adminAt = await this.#begin(admin.listen(config.admin), () => admin.stop());
    this.#listeners.push(adminAt);
    await this.#begin(core.startSending(), () => core.stopSending(DRAIN_MS));
    await this.#startApps(host);
    const manner = { graceMs: DRAIN_MS, noticeMs: noticeOf(config) };
    const listen = await this.#begin(core.takeCalls(), () => core.endCalls(manner));
    if (listen) this.#listeners.push(listen);
    retention.start();
    this.#started.defer(() => retention.stop());

    this.#phase = 'running';
    const place = database ? { node: nodeId, database: `${database.host}/${database.database}` } : { data };
    this.#log.info({ ...shownAddresses({ listen, admin: adminAt }), role, ...place }, 'ready');
    return { listen, admin: adminAt };
  }

  reload(app: AppConfig): void {
    this.#host?.reload(app);
  }

  stop(): Promise<void> {
    if (this.#phase === 'running') this.#log.info('stopping');
    this.#phase = 'stopping';
    this.#stopping ??= this.#started.disposeAsync();
    return this.#stopping;
  }

  async #begin<T>(starting: Promise<T>, stop: () => Promise<void>): Promise<T> {
    const started = await starting;
    this.#started.defer(stop);
    return started;
  }

  /** Ends last, when nothing more can begin a span. */
  #openTracing(): Tracing | undefined {
    const { config, version, log } = this.#options;
    if (config.tracing === undefined) return undefined;
    const tracing = openTracing({ config: config.tracing, version, clock: this.#clock, log });
    this.#started.defer(() => tracing.stop());
    return tracing;
  }

  async #startApps(host: Host): Promise<void> {
    this.#host = host;
    await this.#begin(host.start(), () => host.stop());
  }

  #build({ nodeId, spoolDir, tracing }: Identity): Parts {
    const { config, version } = this.#options;
    const [log, clock] = [this.#log, this.#clock];
    const store = createStore({ config, nodeId, spoolDir, clock, log });
    const host = createHost({ config, onCall: config.role === 'dispatcher', clock, log });
    const core = createCore({
      config,
      version,
      store,
      shared: config.database !== undefined,
      host,
      hosted: async () => host.states(),
      spoolDir,
      listeners: () => this.#listeners,
      clock,
      log,
      tracing,
    });
    const { metrics, api } = core;
    const { adminToken, projects } = config;
    const authenticator = createAuthenticator({ projects, clock, log });
    const dashboard = createDashboard({ log });
    const readiness = this.#readiness(store);
    const seen = { metrics, readiness, api, dashboard };
    const admin = createAdmin({ adminToken, version, authenticator, ...seen, clock, log });
    const retention = createRetention({ store, clock, log, config });
    return { store, host, core, admin, retention };
  }

  #readiness(store: Store): Readiness {
    return () => {
      if (this.#phase !== 'running') return this.#phase;
      return store.available ? undefined : 'store_unavailable';
    };
  }
}

/** As the log tells them. */
export function shownAddresses({ listen, admin }: Addresses): { listen?: string; admin: string } {
  return { ...(listen && { listen: shown(listen) }), admin: shown(admin) };
}

function shown({ address, port, family }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}
