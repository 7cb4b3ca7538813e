/**
 * What takes calls, carries out runs and sends deliveries, as far as the role of the node wants it, around a
 * store and places for calls that are given. One process has it whole; where there are workers, each of them
 * does.
 */
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Api, createApi } from './api/api.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { createSender, type Sender } from './delivery/attempt.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { Pending } from './delivery/pending.ts';
import { tellingRefusals } from './delivery/refusals.ts';
import { createTargetPolicy, type TargetPolicy } from './delivery/target.ts';
import { callEvents, type Counting, dispatcherEvents } from './events.ts';
import { createSpool, type Spool } from './exchange/spool.ts';
import { createWays, type Ways } from './exchange/ways.ts';
import { createAuthenticator } from './gateway/auth.ts';
import { createGateway, type Gateway, type GatewayStop } from './gateway/server.ts';
import type { Logger } from './log.ts';
import { readBacklog } from './metrics/store.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createRedeliveries, type Redeliveries } from './redelivery.ts';
import { createRuns, type Runs } from './runs/runs.ts';
import type { HostedState } from './runtime/app-state.ts';
import type { Lessor } from './runtime/host.ts';
import { createStatistics } from './stats.ts';
import type { Store } from './store/store.ts';
import type { Tracing } from './trace.ts';

export interface CoreOptions {
  readonly config: Config;
  readonly version: string;
  readonly store: Store;
  /** Other nodes use the store too. */
  readonly shared: boolean;
  readonly host: Lessor;
  /** How the apps stand that run on this machine. */
  readonly hosted: () => Promise<readonly HostedState[]>;
  /** For answers that are captured, and where unfinished ones are, if that is another folder. */
  readonly spoolDir: string;
  readonly draftDir?: string;
  /** Where this node listens, which is no target. */
  readonly listeners: () => readonly AddressInfo[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

export interface Core {
  readonly metrics: Metrics;
  /** The management API, for another listener than that of the calls. */
  readonly api: Api;
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
    connections: () => gateway?.connections ?? 0,
    backlog: () => readBacklog(store),
    clock: options.clock,
  });
  const projects = new Set(config.projects.keys());
  const statistics = createStatistics({ ...options, stats: store.stats, projects });
  const counting = { metrics, statistics };
  const redeliveries = createRedeliveries({ ...options, ledger: store.ledger });
  const spool = createSpool({ dir: spoolDir, draftDir, log });
  const sending = createSending(options, counting);
  const background = createBackground(options, { spool, sending, metrics });
  const { sender, dispatcher } = sending;
  const { runs, ways } = background;
  const api = createManagement(options, { sending, metrics, runs, redeliveries });
  const gateway =
    config.role === 'dispatcher' ? undefined : createCalls(options, { spool, sending, counting, runs, api });
  return {
    metrics,
    api,
    async startSending() {
      await dispatcher.start();
      metrics.start();
      statistics.start();
      lookForJobs(config, redeliveries);
    },
    async stopSending(graceMs) {
      await redeliveries.stop();
      await dispatcher.stop({ graceMs });
      await sender.close();
      await dispatcher.handBack();
      metrics.stop();
      await statistics.stop();
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

interface Managed {
  readonly sending: Sending;
  readonly metrics: Metrics;
  readonly runs: Runs;
  readonly redeliveries: Redeliveries;
}

function createManagement(options: CoreOptions, { sending, metrics, runs, redeliveries }: Managed): Api {
  return createApi({
    ...options,
    runs,
    policy: sending.policy,
    onJob: () => lookForJobs(options.config, redeliveries),
    onCancelled: () => metrics.settled({ state: 'cancelled' }),
  });
}

/** Jobs are the work of nodes that send. */
function lookForJobs({ role }: Pick<Config, 'role'>, redeliveries: Redeliveries): void {
  if (role !== 'gateway') redeliveries.expect();
}

function createSending(options: CoreOptions, counting: Counting): Sending {
  const { config, version, store, shared, listeners, clock, log, tracing } = options;
  const { webhooks, projects } = config;
  const policy = tellingRefusals(
    createTargetPolicy({ allow: webhooks.allowTargets, listeners, localAddresses }),
    (where, reason) => counting.metrics.blocked(where, reason),
  );
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
    events: dispatcherEvents(counting),
    tracing,
  });
  return { policy, sender, dispatcher, pending };
}

interface Given {
  readonly spool: Spool;
  readonly sending: Sending;
  readonly metrics: Metrics;
}

function createBackground(options: CoreOptions, { spool, sending, metrics }: Given): Background {
  const { config, store, host, clock, log, tracing } = options;
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
    tracing,
  });
  return { runs, ways };
}

interface Serving extends Omit<Given, 'metrics'> {
  readonly counting: Counting;
  readonly runs: Runs;
  readonly api: Api;
}

function createCalls(options: CoreOptions, given: Serving): Gateway {
  const { config, store, host, clock, log, tracing } = options;
  const { spool, counting, runs, api } = given;
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
        counting.metrics.commit(clock.elapsed() - began);
      },
      pending: projectId => pending.of(projectId),
    },
    runs,
    api,
    host,
    spool,
    clock,
    log,
    events: callEvents(counting),
    tracing,
  });
}

export function localAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(each => each?.map(({ address }) => address) ?? []);
}
