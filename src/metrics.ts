/**
 * What the service counts and times, in the Prometheus text format. Labels are closed sets: no URL, host,
 * project or id ever becomes one.
 */
import {
  type Aggregator,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from '@prometheus-io/client';

/** Read when the metrics are. */
export interface Gauges {
  /** Pending deliveries in memory, those whose turn has not come, and attempts in flight. */
  size(): { readonly held: number; readonly waiting: number; readonly inFlight: number };
  storeAvailable(): boolean;
  /** Runs that this process has claimed and not ended. */
  runsHeld(): number;
}

export interface Metrics {
  call(call: { runtime: string; status: number; webhook: boolean; durationMs: number }): void;
  lateCommit(): void;
  commit(ms: number): void;
  attempt(attempt: { status?: number; error?: string; queueMs: number; totalMs: number }): void;
  settled(settled: { state: string; reason?: string }): void;
  runEnded(run: { state: string }): void;
  readonly contentType: string;
  text(): Promise<string>;
  /** All of it at this moment, for `sumOf` in another process. */
  snapshot(): Promise<MetricsSnapshot>;
}

export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

const CALL_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 900];
const ATTEMPT_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30];
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

export function createMetrics(gauges: Gauges): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counter = <T extends string>(name: string, help: string, labelNames: T[] = []): Counter<T> =>
    new Counter({ name: `afterword_${name}`, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[]): Histogram =>
    new Histogram({ name: `afterword_${name}`, help, buckets, registers });
  const gauge = (name: string, help: string, read: () => number, aggregator: Aggregator = 'sum'): void => {
    const collect = function (this: Gauge): void {
      this.set(read());
    };
    const settings = { name: `afterword_${name}`, help, registers: [], collect, aggregator };
    registry.registerMetric(new Gauge(settings));
  };

  const calls = counter('calls_total', 'Calls, by runtime and status class', [
    'runtime',
    'status',
    'webhook',
  ]);
  const callSeconds = histogram(
    'call_duration_seconds',
    'From a call to the end of its answer',
    CALL_SECONDS,
  );
  const late = counter('commit_wait_exceeded_total', 'Answers that ended before their delivery was stored');
  const commits = histogram(
    'commit_duration_seconds',
    'From an answer to its stored delivery',
    COMMIT_SECONDS,
  );
  const attempts = counter('attempts_total', 'Attempts, by status class or error code', ['outcome']);
  const attemptSeconds = histogram('attempt_duration_seconds', 'One attempt', ATTEMPT_SECONDS);
  const queueSeconds = histogram('attempt_queue_seconds', 'From due to sent', ATTEMPT_SECONDS);
  const settled = counter('deliveries_settled_total', 'Deliveries that ended', ['state', 'reason']);
  const runs = counter('runs_total', 'Asynchronous calls that ended', ['state']);
  gauge('runs_in_progress', 'Asynchronous calls that are carried out', () => gauges.runsHeld());
  gauge('deliveries_held', 'Pending deliveries in memory', () => gauges.size().held);
  gauge('deliveries_waiting', 'Due deliveries that wait for their turn', () => gauges.size().waiting);
  gauge('attempts_in_flight', 'Attempts in flight', () => gauges.size().inFlight);
  gauge(
    'store_available',
    '1 while the store takes what is new',
    () => (gauges.storeAvailable() ? 1 : 0),
    'min',
  );
  gauge('resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage.rss());
  gauge('cpu_seconds_total', 'CPU time of the process', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });

  return {
    call({ runtime, status, webhook, durationMs }) {
      calls.inc({ runtime, status: statusClass(status), webhook: webhook ? 'yes' : 'no' });
      callSeconds.observe(durationMs / 1000);
    },
    lateCommit: () => late.inc(),
    commit: ms => commits.observe(ms / 1000),
    attempt({ status, error, queueMs, totalMs }) {
      attempts.inc({ outcome: status === undefined ? (error ?? 'other') : statusClass(status) });
      attemptSeconds.observe(totalMs / 1000);
      queueSeconds.observe(queueMs / 1000);
    },
    settled: ({ state, reason = 'none' }) => settled.inc({ state, reason }),
    runEnded: ({ state }) => runs.inc({ state }),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
  };
}

/** The metrics of several processes as those of one. */
export function sumOf(snapshots: readonly MetricsSnapshot[]): Pick<Metrics, 'text' | 'snapshot'> {
  const sum = Registry.aggregate(snapshots.map(each => [...each]));
  return { text: () => sum.metrics(), snapshot: () => sum.getMetricsAsJSON() };
}

/** What stays counted when a process has ended. */
export function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ name, type }) => type !== 'gauge' || name.endsWith('_total'));
}

function statusClass(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}
