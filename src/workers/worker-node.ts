/**
 * What runs in a worker: takes calls at the listener that all workers share, carries out runs and sends deliveries, with the
 * primary's store or one of its own, and with places in the processes of apps that the primary runs.
 */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { type Core, createCore } from '../core.ts';
import { createRemoteStore, createStore } from '../create-store.ts';
import { createLogger, type Logger } from '../log.ts';
import { createScratch, newNodeId, type Scratch } from '../node.ts';
import type { MetricsSnapshot } from '../metrics.ts';
import type { Port } from '../port.ts';
import { createRetention } from '../retention.ts';
import type { GatewayStop } from '../gateway/server.ts';
import type { LeaseReply, LeaseRequest } from '../runtime/leasing.ts';
import { createRemoteHost, type RemoteHost } from '../runtime/remote-host.ts';
import { DRAIN_MS, noticeOf } from '../service.ts';
import type { Store } from '../store/store.ts';
import type { Tracing } from '../trace.ts';
import { openTracing } from '../trace/open.ts';
import type { Channel } from './channel.ts';
import type { Begin, FromWorker, ToWorker } from './messages.ts';
import { unpackConfig } from './packed-config.ts';

/** Where it tells of itself. */
export type Life = Port<FromWorker, ToWorker>;

/** Between two looks at what the primary should know. */
const LOOK_MS = 100;

interface Ground {
  readonly store: Store;
  readonly spoolDir: string;
  readonly scratch: Scratch | undefined;
}

/** The primary's store through the channel, or this worker's own connection to the database. */
function groundOf(config: Config, channel: Channel, log: Logger): Ground {
  const { data, database } = config;
  const [nodeId, clock] = [newNodeId(), systemClock];
  if (database !== undefined) {
    const scratch = createScratch({ data, nodeId, log });
    const spoolDir = scratch.dir;
    return { store: createStore({ config, nodeId, spoolDir, clock, log }), spoolDir, scratch };
  }
  const primary = process.ppid;
  const spoolDir = join(data, 'spool');
  const connected = (): boolean => process.connected && process.ppid === primary;
  const port = channel.port<unknown, unknown>('store');
  return {
    store: createRemoteStore({ port, nodeId, spoolDir, clock, log, connected }),
    spoolDir,
    scratch: undefined,
  };
}

export interface WorkerOptions {
  readonly begin: Begin;
  readonly channel: Channel;
  readonly life: Life;
}

export class WorkerNode {
  readonly #options: WorkerOptions;
  readonly #config: Config;
  readonly #log: Logger;
  readonly #listeners: AddressInfo[];
  /** How to stop what has been started. */
  readonly #started = new AsyncDisposableStack();
  #core: Core | undefined;
  #handOver = false;

  constructor(options: WorkerOptions) {
    const { number, config, pretty, admin } = options.begin;
    this.#options = options;
    this.#config = unpackConfig(config);
    const { logLevel: level } = this.#config;
    this.#log = createLogger({ level, pretty, shared: true }).child({ worker: number });
    this.#listeners = [admin];
  }

  /** Resolves when it serves, and has said so. */
  async start(): Promise<void> {
    const config = this.#config;
    const { channel, life } = this.#options;
    const ground = groundOf(config, channel, this.#log);
    const { store, scratch } = ground;
    const port = channel.port<LeaseRequest, LeaseReply>('leases');
    const host = createRemoteHost({ port, appTimeout: config.appTimeout, clock: systemClock });
    const core = this.#createCore(ground, host, this.#openTracing());

    if (scratch) await this.#begin(scratch.start(), () => scratch.stop());
    await this.#begin(store.open(), () => store.close());
    await this.#begin(core.startSending(), () => core.stopSending(DRAIN_MS));
    this.#started.defer(() => host.stop());
    const manner = (): GatewayStop =>
      this.#handOver
        ? { graceMs: DRAIN_MS, handOver: true }
        : { graceMs: DRAIN_MS, noticeMs: noticeOf(config) };
    const listen = await this.#begin(core.takeCalls(), () => core.endCalls(manner()));
    if (listen) this.#listeners.push(listen);
    if (config.database !== undefined) this.#keepTidy(store);
    this.#tellState(store, core);
    life.send({ type: 'serving', listen });
    this.#log.info({ pid: process.pid }, 'a worker is serving');
  }

  async stop(handOver: boolean): Promise<void> {
    this.#handOver = handOver;
    await this.#started.disposeAsync();
    this.#log.flush();
  }

  async measure(): Promise<MetricsSnapshot> {
    return this.#core?.metrics.snapshot() ?? [];
  }

  shed(count: number): void {
    this.#core?.shed(count);
  }

  #createCore({ store, spoolDir }: Ground, host: RemoteHost, tracing: Tracing | undefined): Core {
    const { version, draftDir } = this.#options.begin;
    this.#core = createCore({
      config: this.#config,
      version,
      store,
      shared: true,
      host,
      hosted: () => host.states(),
      spoolDir,
      ...(draftDir !== undefined && { draftDir }),
      listeners: () => this.#listeners,
      clock: systemClock,
      log: this.#log,
      tracing,
    });
    return this.#core;
  }

  /** Ends last, when nothing more can begin a span. */
  #openTracing(): Tracing | undefined {
    const { tracing: config } = this.#config;
    if (config === undefined) return undefined;
    const { version } = this.#options.begin;
    const tracing = openTracing({ config, version, clock: systemClock, log: this.#log });
    this.#started.defer(() => tracing.stop());
    return tracing;
  }

  /** As every node of a database does; the embedded store is the primary's to tidy. */
  #keepTidy(store: Store): void {
    const retention = createRetention({ store, clock: systemClock, log: this.#log, config: this.#config });
    retention.start();
    this.#started.defer(() => retention.stop());
  }

  #tellState(store: Store, core: Core): void {
    let told: { available: boolean; connections: number } | undefined;
    const look = (): void => {
      const state = { available: store.available, connections: core.connections() };
      if (told?.available === state.available && told.connections === state.connections) return;
      told = state;
      this.#options.life.send({ type: 'state', ...state });
    };
    look();
    const looking = setInterval(look, LOOK_MS);
    this.#started.defer(() => clearInterval(looking));
  }

  async #begin<T>(starting: Promise<T>, stop: () => Promise<void>): Promise<T> {
    const started = await starting;
    this.#started.defer(stop);
    return started;
  }
}
