/**
 * The processes of the bench of tracing: an app, a receiver, a collector, the load generator and what only
 * counts; and services in pairs, one that traces and one that does not, each with a store of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '../child.ts';
import { type Ground, openGround } from '../ground.ts';
import type { CountingResult } from './counting.ts';

export interface Service {
  /** Where it takes calls. */
  readonly port: number;
  cpuMicros(): Promise<number>;
  /** Resolves once no delivery is pending. The metrics are not asked for that. */
  settled(): Promise<void>;
  /** Reads the metrics, as Prometheus does. */
  scrape(): Promise<void>;
}

/** The same service twice. */
export interface Pair {
  readonly off: Service;
  readonly on: Service;
  stop(): Promise<void>;
}

export interface Stand {
  readonly receiver: Child;
  readonly collector: Child;
  readonly load: Child;
  readonly token: string;
  /** Where the receiver takes deliveries. */
  readonly target: string;
  openPair(): Promise<Pair>;
  counting(): Promise<CountingResult>;
  close(): Promise<void>;
}

/** After the first of these, what is counted has been compiled. */
const COUNTINGS = [200_000, 1_000_000];

export async function openStand(interrupted: AbortSignal): Promise<Stand> {
  const ground = await openGround(interrupted);
  try {
    const [app, receiver, collector, load] = await Promise.all([
      ground.script('app', 1),
      ground.script('receiver', 1),
      ground.script('tracing/collector', 1),
      ground.script('load', 0),
    ]);
    let pairs = 0;
    return {
      receiver,
      collector,
      load,
      token: await ground.token(),
      target: `http://127.0.0.1:${receiver.ports[0]}/hook`,
      openPair: () => openPair(ground, `pair-${++pairs}`, app.ports[0]!, collector.ports[0]!),
      counting: () => measureCounting(ground),
      close: () => ground.close(),
    };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** With the log as it is by default: a line for each call and each attempt. */
async function openPair(ground: Ground, name: string, appPort: number, collectorPort: number): Promise<Pair> {
  const [off, on] = await Promise.all([
    ground.afterword(`${name}-off`, { appPort, logLevel: 'info', env: { OTEL_SDK_DISABLED: 'true' } }),
    ground.afterword(`${name}-on`, { appPort, logLevel: 'info', env: tracedTo(collectorPort) }),
  ]);
  return {
    off: serviceOf(off),
    on: serviceOf(on),
    stop: async () => void (await Promise.all([off.stop(), on.stop()])),
  };
}

/** Every call, as by default. No span is lost on a busy machine, and none is waited for longer than need be. */
function tracedTo(collectorPort: number): Readonly<Record<string, string>> {
  return {
    OTEL_SDK_DISABLED: 'false',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collectorPort}`,
    OTEL_BSP_MAX_QUEUE_SIZE: '100000',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  };
}

function serviceOf(child: Child): Service {
  const [admin, calls] = child.ports;
  const ask = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${admin}${path}`);
    if (!answer.ok) throw new Error(`${path} answers ${answer.status}`);
    return answer.text();
  };
  return {
    port: calls!,
    cpuMicros: () => child.ask<number>('cpu'),
    async settled() {
      const pending = '/api/v1/deliveries?state=pending&limit=1';
      while (!(await ask(pending)).includes('"deliveries":[]')) await sleep(20);
    },
    async scrape() {
      if (!(await ask('/metrics')).includes('afterword_calls_total{'))
        throw new Error('no calls are counted');
    },
  };
}

async function measureCounting(ground: Ground): Promise<CountingResult> {
  const child = await ground.script('tracing/counting', 0);
  let result: CountingResult = { callMicros: 0, webhookMicros: 0 };
  for (const times of COUNTINGS) result = await child.ask<CountingResult>('count', times);
  await child.stop();
  return result;
}
