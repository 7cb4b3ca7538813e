/**
 * Counts what happens in this process, by project and minute and by receiver and hour, and adds it to the store
 * every few seconds. Counting is an addition in memory: what it costs a call is a look into a map.
 *
 * Memory is bounded: projects are those of the configuration, receivers beyond a number are counted together,
 * and what a store cannot take for hours is forgotten from its beginning.
 */
import type { Clock } from './clock.ts';
import type { Logger } from './log.ts';
import {
  type Counts,
  type HostCounts,
  LATENCY_BOUNDS,
  type MinuteCounts,
  type StatsStore,
} from './store/stats.ts';

export interface StatisticsOptions {
  readonly stats: StatsStore;
  readonly projects: ReadonlySet<string>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface CountedCall {
  /** Absent where it is nobody's: its token was not good. */
  readonly projectId?: string | undefined;
  readonly status: number;
}

export interface CountedAttempt {
  readonly projectId: string;
  readonly host: string;
  /** The first of its delivery. */
  readonly first: boolean;
  readonly delivered: boolean;
  readonly totalMs: number;
}

export interface Statistics {
  call(call: CountedCall): void;
  made(delivery: { readonly projectId: string }): void;
  attempt(attempt: CountedAttempt): void;
  settled(settled: { readonly projectId: string; readonly state: 'delivered' | 'failed' }): void;
  start(): void;
  /** Gives the store the rest, and waits a little for it. */
  stop(): Promise<void>;
}

const FLUSH_MS = 10_000;
/** A store that cannot be written must not hold up a stop. */
const LAST_FLUSH_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MOST_HOSTS = 1_000;
/** The name under which receivers beyond that are counted. */
const OTHER_HOSTS = 'other';
const MOST_MINUTES = 240;
/** Longer than the longest window that is told. */
const KEPT_MS = 8 * 86_400_000;

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Numbers = Writable<Omit<Counts, 'firstAttempts'>> & { readonly firstAttempts: number[] };
type HostNumbers = Writable<HostCounts>;

export function createStatistics({ stats, projects, clock, log }: StatisticsOptions): Statistics {
  const minutes = new Map<number, Map<string, Numbers>>();
  let hosts = new Map<string, HostNumbers>();
  let current: { readonly minute: number; readonly of: Map<string, Numbers> } | undefined;
  let prunedAt = 0;
  let flushing: Promise<void> | undefined;
  let cancel = (): void => {};
  let stopped = false;

  function numbersOf(projectId: string): Numbers {
    const minute = startOf(clock.now(), MINUTE_MS);
    if (current?.minute !== minute) current = { minute, of: minuteAt(minute) };
    let numbers = current.of.get(projectId);
    if (numbers === undefined) {
      numbers = noNumbers();
      current.of.set(projectId, numbers);
    }
    return numbers;
  }

  function minuteAt(minute: number): Map<string, Numbers> {
    const of = minutes.get(minute) ?? new Map<string, Numbers>();
    minutes.set(minute, of);
    for (const oldest of minutes.keys()) {
      if (minutes.size <= MOST_MINUTES) break;
      minutes.delete(oldest);
    }
    return of;
  }

  function hostNumbers(projectId: string, name: string): HostNumbers {
    const hour = startOf(clock.now(), HOUR_MS);
    const known = hosts.get(`${hour} ${projectId} ${name}`);
    if (known !== undefined) return known;
    const host = hosts.size < MOST_HOSTS ? name : OTHER_HOSTS;
    const key = `${hour} ${projectId} ${host}`;
    const numbers = hosts.get(key) ?? { projectId, host, hour, attempts: 0, failures: 0 };
    hosts.set(key, numbers);
    return numbers;
  }

  /** What is counted while the store takes it belongs to the next. */
  function takeAll(): [MinuteCounts[], HostCounts[]] {
    const counted = [...minutes].flatMap(([minute, of]) =>
      [...of].map(([projectId, numbers]) => ({ projectId, minute, ...numbers })),
    );
    const ofHosts = [...hosts.values()];
    minutes.clear();
    current = undefined;
    hosts = new Map();
    return [counted, ofHosts];
  }

  async function write(): Promise<void> {
    const [counted, ofHosts] = takeAll();
    try {
      if (counted.length > 0 || ofHosts.length > 0) await stats.add(counted, ofHosts);
      const now = clock.now();
      if (stopped || now - prunedAt < HOUR_MS) return;
      prunedAt = now;
      await stats.prune(now - KEPT_MS);
    } catch (error) {
      if (!stopped) log.warn({ err: error as Error }, 'what was counted could not be stored');
    }
  }

  function flush(): Promise<void> {
    flushing ??= write().finally(() => (flushing = undefined));
    return flushing;
  }

  function flushLater(): void {
    cancel = clock.after(FLUSH_MS, () => {
      void flush();
      flushLater();
    });
  }

  return {
    call({ projectId, status }) {
      if (projectId === undefined || !projects.has(projectId)) return;
      const numbers = numbersOf(projectId);
      numbers.calls += 1;
      if (status >= 500) numbers.callErrors += 1;
    },
    made({ projectId }) {
      numbersOf(projectId).made += 1;
    },
    attempt({ projectId, host, first, delivered, totalMs }) {
      if (first) numbersOf(projectId).firstAttempts[bucketOf(totalMs)]! += 1;
      const numbers = hostNumbers(projectId, host);
      numbers.attempts += 1;
      if (!delivered) numbers.failures += 1;
    },
    settled({ projectId, state }) {
      numbersOf(projectId)[state] += 1;
    },
    start: flushLater,
    async stop() {
      stopped = true;
      cancel();
      const late = Promise.withResolvers<void>();
      const cancelWait = clock.after(LAST_FLUSH_MS, late.resolve);
      await Promise.race([flush().then(flush), late.promise]);
      cancelWait();
    },
  };
}

function noNumbers(): Numbers {
  const firstAttempts = Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0);
  return { calls: 0, callErrors: 0, made: 0, delivered: 0, failed: 0, firstAttempts };
}

function startOf(time: number, length: number): number {
  return Math.floor(time / length) * length;
}

function bucketOf(ms: number): number {
  const index = LATENCY_BOUNDS.findIndex(bound => ms <= bound);
  return index === -1 ? LATENCY_BOUNDS.length : index;
}
