/**
 * What takes calls, carries out runs and sends deliveries, as far as the role of the node wants it, around a
 * store and places for calls that are given. One process has it whole; where there are workers, each of them
 * does.
 */
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createApi } from './api/api.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { createSender, type Sender } from './delivery/attempt.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { Pending } from './delivery/pending.ts';
import { createTargetPolicy, type TargetPolicy } from './delivery/target.ts';
import { createSpool, type Spool } from './exchange/spool.ts';
import { createWays, type Ways } from './exchange/ways.ts';
import { createAuthenticator } from './gateway/auth.ts';
import { createGateway, type Gateway, type GatewayStop } from './gateway/server.ts';
import type { Logger } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createRuns, type Runs } from './runs/runs.ts';
import type { Lessor } from './runtime/host.ts';
import type { Store } from './store/store.ts';

export interface CoreOptions {
  readonly config: Config;
  readonly version: string;
  readonly store: Store;
  /** Other nodes use the store too. */
  readonly shared: boolean;
  readonly host: Lessor;
  /** For answers that are captured, and where unfinished ones are, if that is another folder. */
  readonly spoolDir: string;
  readonly draftDir?: string;
  /** Where this node listens, which is no target. */
  readonly listeners: () => readonly AddressInfo[];
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Core {
  readonly metrics: Metrics;
  /** Takes up what the store has; comes before the first call. */
  startSending(): Promise<void>;
  /** Lets attempts in flight end for at most this long, and gives the store back what is left. */
  stopSending(graceMs: number): Promise<void>;
  /** Begins to take calls and to carry out runs. Undefined where the role is not to take calls. */
  takeCalls(): Promise<AddressInfo | undefined>;
  /** Takes no more of either, and lets those under way end. */
  endCalls(stop: GatewayStop): Promise<void>;
  /** How many callers are connected, and a way to have fewer. */
  connections(): number;
  shed(count: number): void;
}

interface Sending {
  readonly policy: TargetPolicy;
  readonly sender: Sender;
  readonly dispatcher: Dispatcher;
  readonly pending: Pending;
}

interface Background {
  readonly runs: Runs;
  readonly ways: Ways;
}

export function createCore(options: CoreOptions): Core {
  const { config, store, spoolDir, draftDir = spoolDir, log } = options;
  const metrics: Metrics = createMetrics({
    size: () => sending.dispatcher.size(),
    storeAvailable: () => store.available,
    runsHeld: () => background.runs.held,
  });
  const spool = createSpool({ dir: spoolDir, draftDir, log });
  const sending = createSending(options, metrics);
  const background = createBackground(options, { spool, sending, metrics });
  const { sender, dispatcher } = sending;
  const { runs, ways } = background;
  const gateway =
    config.role === 'dispatcher' ? undefined : createCalls(options, { spool, sending, metrics, runs });
  return {
    metrics,
    startSending: () => dispatcher.start(),
    async stopSending(graceMs) {
      await dispatcher.stop({ graceMs });
      await sender.close();
      await dispatcher.handBack();
    },
    async takeCalls() {
      await spool.start();
      const listening = await gateway?.listen(config.listen);
      runs.start(); // last: where the address is taken, there is nothing to stop
      return listening;
    },
    async endCalls(stop) {
      await Promise.all([gateway?.stop(stop), runs.stop(stop)]);
      await ways.close();
    },
    connections: () => gateway?.connections ?? 0,
    shed: count => gateway?.shed(count),
  };
}

function createSending(options: CoreOptions, metrics: Metrics): Sending {
  const { config, version, store, shared, listeners, clock, log } = options;
  const { webhooks, projects } = config;
  const policy = createTargetPolicy({ allow: webhooks.allowTargets, listeners, localAddresses });
  const sender = createSender({
    policy,
    timeout: webhooks.attemptTimeout,
    userAgent: `Afterword/${version}`,
    clock,
    log,
  });
  const pending = new Pending({ store, clock, log });
  const dispatcher = createDispatcher({
    store,
    sender,
    pending,
    clock,
    random: Math.random,
    log,
    limits: webhooks,
    sends: config.role !== 'gateway',
    shared,
    standardWebhooks: id => projects.get(id)?.standardWebhooks ?? false,
    events: metrics,
  });
  return { policy, sender, dispatcher, pending };
}

interface Given {
  readonly spool: Spool;
  readonly sending: Sending;
  readonly metrics: Metrics;
}

function createBackground(options: CoreOptions, { spool, sending, metrics }: Given): Background {
  const { config, store, host, clock, log } = options;
  const { dispatcher, pending } = sending;
  const ways = createWays({ appTimeout: config.appTimeout, host });
  const runs = createRuns({
    config,
    store,
    pending,
    deliver: (delivery, insert) => dispatcher.accept(delivery, insert),
    ways,
    exchange: { spool, clock, log, maxBody: config.webhooks.maxBody },
    executes: config.role !== 'gateway',
    clock,
    log,
    events: metrics,
  });
  return { runs, ways };
}

function createCalls(options: CoreOptions, given: Given & { readonly runs: Runs }): Gateway {
  const { config, store, host, clock, log } = options;
  const { spool, metrics, runs } = given;
  const { policy, dispatcher, pending } = given.sending;
  return createGateway({
    config,
    authenticator: createAuthenticator({ projects: config.projects, clock, log }),
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
      pending: projectId => pending.of(projectId),
    },
    runs,
    api: createApi({ runs, log }),
    host,
    spool,
    clock,
    log,
    events: metrics,
  });
}

function localAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(each => each?.map(({ address }) => address) ?? []);
}
