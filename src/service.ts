/**
 * The composition root: builds the parts from a configuration, starts them in order and stops them in
 * reverse. The only file that knows which store it is.
 */
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type Admin, createAdmin, type Readiness } from './admin.ts';
import { type Clock, systemClock } from './clock.ts';
import type { AppConfig, Config } from './config/config.ts';
import { createSender, type Sender } from './delivery/attempt.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { createTargetPolicy } from './delivery/target.ts';
import { createAuthenticator } from './gateway/auth.ts';
import { createGateway, type Gateway } from './gateway/server.ts';
import { createSpool, type Spool } from './gateway/spool.ts';
import { createHost, type Host } from './runtime/host.ts';
import type { Logger } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createRetention, type Retention } from './retention.ts';
import { loadKeyring } from './store/keys.ts';
import { createSqliteStore } from './store/sqlite/store.ts';
import type { Store } from './store/store.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

export interface Service {
  /** Resolves with the addresses it listens on; rejects with a StartError for the operator. */
  start(): Promise<{ readonly listen: AddressInfo; readonly admin: AddressInfo }>;
  /** New processes for an app that runs here and whose files have changed. */
  reload(app: AppConfig): void;
  /** Takes no more calls, lets those under way and the attempts in flight end, then closes the store. */
  stop(): Promise<void>;
}

/** How long calls, and then attempts, may take to end after a stop. */
const DRAIN_MS = 25_000;

export function createService(options: ServiceOptions): Service {
  return new OneNode(options);
}

class OneNode implements Service {
  readonly #options: ServiceOptions;
  readonly #log: Logger;
  readonly #listeners: AddressInfo[] = [];
  #phase: 'starting' | 'running' | 'stopping' = 'starting';
  #stopping: Promise<void> | undefined;
  #host: Host | undefined;
  /** What has been started, in order; each knows how to stop. */
  readonly #started: Array<() => Promise<void>> = [];

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  async start(): Promise<{ listen: AddressInfo; admin: AddressInfo }> {
    try {
      return await this.#start();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #start(): Promise<{ listen: AddressInfo; admin: AddressInfo }> {
    const { config } = this.#options;
    const { store, spool, dispatcher, sender, host, gateway, admin, retention } = this.#build();

    await this.#begin(store.open(), () => store.close());
    await spool.start();
    const adminAddress = await this.#begin(admin.listen(config.admin), () => admin.stop());
    this.#listeners.push(adminAddress);
    await this.#begin(dispatcher.start(), async () => {
      await dispatcher.stop({ graceMs: DRAIN_MS });
      await sender.close();
    });
    this.#host = host;
    await this.#begin(host.start(), () => host.stop());
    const listenAddress = await this.#begin(gateway.listen(config.listen), () => gateway.stop(DRAIN_MS));
    this.#listeners.push(listenAddress);
    retention.start();
    this.#started.push(() => retention.stop());

    this.#phase = 'running';
    this.#log.info({ listen: shown(listenAddress), admin: shown(adminAddress), data: config.data }, 'ready');
    return { listen: listenAddress, admin: adminAddress };
  }

  reload(app: AppConfig): void {
    this.#host?.reload(app);
  }

  stop(): Promise<void> {
    if (this.#phase === 'running') this.#log.info('stopping');
    this.#phase = 'stopping';
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async #stopAll(): Promise<void> {
    for (let stop = this.#started.pop(); stop !== undefined; stop = this.#started.pop()) await stop();
  }

  async #begin<T>(starting: Promise<T>, stop: () => Promise<void>): Promise<T> {
    const started = await starting;
    this.#started.push(stop);
    return started;
  }

  #build(): {
    store: Store;
    spool: Spool;
    dispatcher: Dispatcher;
    sender: Sender;
    host: Host;
    gateway: Gateway;
    admin: Admin;
    retention: Retention;
  } {
    const { config, version, clock = systemClock } = this.#options;
    const log = this.#log;
    const { webhooks, projects } = config;
    const policy = createTargetPolicy({
      allow: webhooks.allowTargets,
      listeners: () => this.#listeners,
      localAddresses,
    });
    const authenticator = createAuthenticator({ projects, clock, log });
    const spoolDir = join(config.data, 'spool');
    const store = this.#createStore(spoolDir, clock);
    const spool = createSpool({ dir: spoolDir, log });
    const sender = createSender({
      policy,
      timeout: webhooks.attemptTimeout,
      userAgent: `Afterword/${version}`,
      clock,
      log,
    });
    const metrics: Metrics = createMetrics({
      size: () => dispatcher.size(),
      storeAvailable: () => store.available,
    });
    const dispatcher = createDispatcher({
      store,
      sender,
      clock,
      random: Math.random,
      log,
      limits: webhooks,
      standardWebhooks: id => projects.get(id)?.standardWebhooks ?? false,
      events: metrics,
    });
    const host = createHost({ config, clock, log });
    const gateway = createGateway({
      config,
      authenticator,
      policy,
      deliveries: {
        get available() {
          return store.available;
        },
        async accept(delivery) {
          const began = clock.elapsed();
          await dispatcher.accept(delivery);
          metrics.commit(clock.elapsed() - began);
        },
        pending: projectId => dispatcher.pending(projectId),
      },
      host,
      spool,
      clock,
      log,
      events: metrics,
    });
    const admin = createAdmin({ token: config.adminToken, metrics, readiness: this.#readiness(store) });
    const retention = createRetention({ store, clock, log, retention: webhooks.retention });
    return { store, spool, dispatcher, sender, host, gateway, admin, retention };
  }

  #createStore(spoolDir: string, clock: Clock): Store {
    const { data: dir, encryptionKey } = this.#options.config;
    return createSqliteStore({
      dir,
      spoolDir,
      keyring: loadKeyring({ dir, ...(encryptionKey !== undefined && { configured: encryptionKey }) }),
      nodeId: randomBytes(8).toString('hex'),
      clock,
      log: this.#log,
    });
  }

  #readiness(store: Store): Readiness {
    return () => {
      if (this.#phase !== 'running') return this.#phase;
      return store.available ? undefined : 'store_unavailable';
    };
  }
}

function localAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(each => each?.map(({ address }) => address) ?? []);
}

function shown({ address, port, family }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}
