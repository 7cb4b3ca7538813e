/**
 * What takes calls and sends deliveries, as far as the role of the node wants it, around a store and places
 * for calls that are given. One process has it whole; where there are workers, each of them does.
 */
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { createSender, type Sender } from './delivery/attempt.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { createTargetPolicy, type TargetPolicy } from './delivery/target.ts';
import { createAuthenticator } from './gateway/auth.ts';
import { createGateway, type Gateway, type GatewayStop } from './gateway/server.ts';
import { createSpool, type Spool } from './gateway/spool.ts';
import type { Logger } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
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
  /** Undefined where the role is not to take calls. */
  takeCalls(): Promise<AddressInfo | undefined>;
  /** Takes no more, and lets those under way end. */
  endCalls(stop: GatewayStop): Promise<void>;
  /** How many callers are connected, and a way to have fewer. */
  connections(): number;
  shed(count: number): void;
}

interface Sending {
  readonly policy: TargetPolicy;
  readonly sender: Sender;
  readonly dispatcher: Dispatcher;
  readonly metrics: Metrics;
}

interface Calls {
  readonly spool: Spool;
  readonly gateway: Gateway;
}

export function createCore(options: CoreOptions): Core {
  const { listen, role } = options.config;
  const sending = createSending(options);
  const { sender, dispatcher, metrics } = sending;
  const calls = role === 'dispatcher' ? undefined : createCalls(options, sending);
  return {
    metrics,
    startSending: () => dispatcher.start(),
    async stopSending(graceMs) {
      await dispatcher.stop({ graceMs });
      await sender.close();
      await dispatcher.handBack();
    },
    async takeCalls() {
      await calls?.spool.start();
      return calls?.gateway.listen(listen);
    },
    async endCalls(stop) {
      await calls?.gateway.stop(stop);
    },
    connections: () => calls?.gateway.connections ?? 0,
    shed: count => calls?.gateway.shed(count),
  };
}

function createSending({ config, version, store, shared, listeners, clock, log }: CoreOptions): Sending {
  const { webhooks, projects } = config;
  const policy = createTargetPolicy({ allow: webhooks.allowTargets, listeners, localAddresses });
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
    sends: config.role !== 'gateway',
    shared,
    standardWebhooks: id => projects.get(id)?.standardWebhooks ?? false,
    events: metrics,
  });
  return { policy, sender, dispatcher, metrics };
}

function createCalls(options: CoreOptions, { policy, metrics, dispatcher }: Sending): Calls {
  const { config, store, host, spoolDir, draftDir = spoolDir, clock, log } = options;
  const spool = createSpool({ dir: spoolDir, draftDir, log });
  const gateway = createGateway({
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
      pending: projectId => dispatcher.pending(projectId),
    },
    host,
    spool,
    clock,
    log,
    events: metrics,
  });
  return { spool, gateway };
}

function localAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(each => each?.map(({ address }) => address) ?? []);
}
