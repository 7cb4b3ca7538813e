/**
 * A database that the bench measures on: made with the store's own schema, filled, looked at and emptied by
 * SQL, past the store. What is different between the stores is in the files named after them.
 */
import type { Place } from './place.ts';

export interface Ground {
  readonly place: Place;
  /** Adds deliveries of the past, each delivered by its first attempt. */
  addPast(past: Past): Promise<void>;
  /** Of the deliveries made at this time or later, and what is pending at all. */
  tally(since: number): Promise<Tally>;
  /** The CPU time used so far by the database's server, where it has one and that can be told. */
  serverCpuMicros(): Promise<number | undefined>;
  /** Away with all that is settled. */
  clear(): Promise<void>;
  remove(): Promise<void>;
}

export interface Past {
  readonly deliveries: number;
  /** When the first was made, in milliseconds since the epoch; the others follow at equal distances. */
  readonly from: number;
  readonly until: number;
  /** Bytes of each body. */
  readonly size: number;
}

export interface Tally {
  readonly pending: number;
  readonly delivered: number;
  readonly attempts: number;
  /** Deliveries that have attempts. */
  readonly attempted: number;
}

/** How many rows one statement writes: few enough that an interrupted bench ends soon. */
const CHUNK = 50_000;

/** The ordinals from `first` to `last`, in parts. */
export function* chunksOf(count: number): Iterable<{ first: number; last: number }> {
  for (let first = 0; first < count; first += CHUNK)
    yield { first, last: Math.min(first + CHUNK, count) - 1 };
}

/** Throws unless every delivery of a turn was delivered exactly once and none is left. */
export function assertSettled({ pending, delivered, attempts, attempted }: Tally, deliveries: number): void {
  const right = pending === 0 && delivered === deliveries && attempts === deliveries;
  if (right && attempted === deliveries) return;
  throw new Error(
    `of ${deliveries} deliveries ${delivered} were delivered, with ${attempts} attempts of ${attempted} ` +
      `deliveries; ${pending} are pending`,
  );
}
