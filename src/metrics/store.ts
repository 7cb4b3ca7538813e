/**
 * What there is to tell of the store: what is pending in it, read when somebody reads the metrics but at most
 * every 10 s, and when it could not be written to. A store that is away answers late or never; the metrics are
 * told all the same, with what was read last.
 */
import type { Clock } from '../clock.ts';
import type { Ledger } from '../store/ledger.ts';
import type { RunStore } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import type { Instruments } from './instruments.ts';

export interface StoredBacklog {
  readonly deliveries: number;
  /** When the oldest of them was made. */
  readonly oldestAt: number | undefined;
  /** That have not ended. */
  readonly runs: number;
  /** When the oldest of those was made that are queued. */
  readonly oldestQueuedAt: number | undefined;
}

interface Counted extends Pick<Store, 'backlog'> {
  readonly ledger: Pick<Ledger, 'pendingOf'>;
  readonly runs: Pick<RunStore, 'oldestQueuedAt'>;
}

/** The store counts runs along with deliveries. Between the questions either may change a little. */
export async function readBacklog(store: Counted): Promise<StoredBacklog> {
  const [{ pending: both }, { pending: deliveries, oldestAt }, oldestQueuedAt] = await Promise.all([
    store.backlog(),
    store.ledger.pendingOf(),
    store.runs.oldestQueuedAt(),
  ]);
  const all = [...both.values()].reduce((sum, count) => sum + count, 0);
  return { deliveries, oldestAt, runs: Math.max(0, all - deliveries), oldestQueuedAt };
}

const FRESH_MS = 10_000;
/** A reading of the metrics waits no longer for one of the store. */
const WAIT_MS = 500;

export interface BacklogOptions {
  readonly read: () => Promise<StoredBacklog>;
  readonly clock: Clock;
  readonly failed: () => void;
}

/** Undefined until the store has told. */
export function createBacklogReader(options: BacklogOptions): () => Promise<StoredBacklog | undefined> {
  const { read, clock, failed } = options;
  let latest: StoredBacklog | undefined;
  let begunAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function readAnew(): Promise<void> {
    try {
      latest = await read();
    } catch {
      failed();
    }
    reading = undefined;
  }

  return async () => {
    if (reading === undefined && clock.elapsed() - begunAt >= FRESH_MS) {
      begunAt = clock.elapsed();
      reading = readAnew();
    }
    if (reading !== undefined) await atMost(WAIT_MS, reading, clock);
    return latest;
  };
}

async function atMost(ms: number, work: Promise<void>, clock: Clock): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  await Promise.race([work, late]);
  cancel();
}

export function tellBacklog({ gauge }: Instruments, options: BacklogOptions): void {
  const backlog = createBacklogReader(options);
  // Processes that share a store all read the same.
  const aggregator = 'max';
  const ageOf = (which: 'oldestAt' | 'oldestQueuedAt') => async () => {
    const found = await backlog();
    if (found === undefined) return undefined;
    const now = options.clock.now();
    return Math.max(0, now - (found[which] ?? now)) / 1000;
  };
  gauge({
    name: 'deliveries_pending',
    help: 'Pending deliveries in the store',
    aggregator,
    read: async () => (await backlog())?.deliveries,
  });
  gauge({
    name: 'oldest_pending_delivery_seconds',
    help: 'Age of the oldest pending delivery in the store, 0 where there is none',
    aggregator,
    read: ageOf('oldestAt'),
  });
  gauge({
    name: 'runs_unfinished',
    help: 'Asynchronous calls in the store that are queued or carried out',
    aggregator,
    read: async () => (await backlog())?.runs,
  });
  gauge({
    name: 'oldest_queued_run_seconds',
    help: 'Age of the oldest asynchronous call in the store that is queued, 0 where there is none',
    aggregator,
    read: ageOf('oldestQueuedAt'),
  });
}

export interface OutageWatch {
  start(): void;
  stop(): void;
}

/** Between two looks at the store; a shorter outage may go unseen. */
const LOOK_MS = 100;

export interface OutageOptions {
  readonly available: () => boolean;
  readonly clock: Clock;
}

/** Before it was available for the first time, a store is not away but opening. */
export function watchOutages(
  { gauge, total }: Instruments,
  { available, clock }: OutageOptions,
): OutageWatch {
  let outages = 0;
  let awayMs = 0;
  let awaySince: number | undefined;
  let opened = false;
  let cancel = (): void => {};

  function look(): void {
    const now = clock.elapsed();
    if (awaySince !== undefined) awayMs += now - awaySince;
    const away = opened && !available();
    if (away && awaySince === undefined) outages += 1;
    awaySince = away ? now : undefined;
    opened ||= available();
    cancel = clock.after(LOOK_MS, look);
  }

  gauge({
    name: 'store_available',
    help: '1 while the store takes what is new',
    aggregator: 'min',
    read: () => (available() ? 1 : 0),
  });
  total({ name: 'store_outages_total', help: 'How often the store became unavailable', read: () => outages });
  total({
    name: 'store_unavailable_seconds_total',
    help: 'How long the store was unavailable',
    read: () => awayMs / 1000,
  });
  return { start: look, stop: () => cancel() };
}
