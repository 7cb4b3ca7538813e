/**
 * What the service counts and times, in the Prometheus text format. Labels are closed sets: no URL, host,
 * project or id ever becomes one.
 */
import { type MetricObjectWithValues, type MetricValue, Registry } from '@prometheus-io/client';
import { type Clock, systemClock } from './clock.ts';
import type { BlockReason } from './delivery/target.ts';
import { ofCalls, ofDeliveries, ofRuns, ofStore } from './metrics/counted.ts';
import { createInstruments, type Instruments } from './metrics/instruments.ts';
import { watchProcess } from './metrics/process.ts';
import { type StoredBacklog, tellBacklog, watchOutages } from './metrics/store.ts';

/** Read when the metrics are. */
export interface MetricsSources {
  /** Pending deliveries in memory, those whose turn has not come, and attempts in flight. */
  size(): { readonly held: number; readonly waiting: number; readonly inFlight: number };
  storeAvailable(): boolean;
  /** Runs that this process has claimed and not ended. */
  runsHeld(): number;
  /** Callers that are connected. */
  connections?(): number;
  /** What is pending in the store, where this process can ask it. */
  readonly backlog?: () => Promise<StoredBacklog>;
  readonly clock?: Clock;
}

export interface Metrics {
  /** Begins to watch the event loop and the store. */
  start(): void;
  stop(): void;
  call(call: {
    runtime: 'cortex' | 'custom' | 'none';
    status: number;
    /** The service's own error, where there is one. */
    code?: string;
    webhook: boolean;
    async: boolean;
    durationMs: number;
  }): void;
  lateCommit(): void;
  commit(ms: number): void;
  made(): void;
  attempt(attempt: {
    status?: number;
    error?: string;
    timings: { queueMs: number; firstByteMs?: number; totalMs: number };
  }): void;
  settled(settled: {
    state: 'delivered' | 'failed' | 'cancelled';
    reason?: 'exhausted' | 'rejected' | 'blocked';
  }): void;
  blocked(where: 'intake' | 'connect', reason: BlockReason): void;
  storeFailed(operation: 'insert_delivery' | 'insert_run' | 'read_backlog'): void;
  runBegun(waitedMs: number): void;
  runEnded(run: { state: 'succeeded' | 'failed' | 'cancelled' }): void;
  readonly contentType: string;
  text(): Promise<string>;
  /** All of it at this moment, for `sumOf` in another process. */
  snapshot(): Promise<MetricsSnapshot>;
}

export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

export function createMetrics(sources: MetricsSources): Metrics {
  const instruments = createInstruments();
  const { registry } = instruments;
  const { clock = systemClock, backlog: read } = sources;
  const stored = ofStore(instruments);
  const counted = {
    ...ofCalls(instruments),
    ...ofDeliveries(instruments),
    ...ofRuns(instruments),
    ...stored,
  };
  tellDepths(instruments, sources);
  const outages = watchOutages(instruments, { available: () => sources.storeAvailable(), clock });
  if (read !== undefined) {
    tellBacklog(instruments, { read, clock, failed: () => stored.storeFailed('read_backlog') });
  }
  const watch = watchProcess(instruments, clock);
  return {
    ...counted,
    start() {
      watch.start();
      outages.start();
    },
    stop() {
      outages.stop();
      watch.stop();
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
  };
}

/** What this process has in its hands. */
function tellDepths({ gauge }: Instruments, sources: MetricsSources): void {
  const depths: readonly (readonly [name: string, help: string, read: () => number])[] = [
    ['connections', 'Callers that are connected', () => sources.connections?.() ?? 0],
    ['deliveries_held', 'Pending deliveries in memory', () => sources.size().held],
    ['deliveries_waiting', 'Due deliveries that wait for their turn', () => sources.size().waiting],
    ['attempts_in_flight', 'Attempts in flight', () => sources.size().inFlight],
    ['runs_in_progress', 'Asynchronous calls that are carried out', () => sources.runsHeld()],
  ];
  for (const [name, help, read] of depths) gauge({ name, help, read });
}

/** The metrics of several processes as those of one. */
export function sumOf(snapshots: readonly MetricsSnapshot[]): Pick<Metrics, 'text' | 'snapshot'> {
  const sum = Registry.aggregate(snapshots.map(each => [...each]));
  return { text: () => sum.metrics(), snapshot: () => sum.getMetricsAsJSON() };
}

/** What stays counted when a process has ended. */
export function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ type }) => type !== 'gauge');
}
