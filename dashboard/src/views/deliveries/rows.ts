/**
 * The rows of the list: pages as they are read, and changes as they are told, in one order, the newest run first.
 * Both may tell of the same delivery, in any order: the later word on it counts, whichever comes last. What is
 * new can be held back, so that nothing moves under somebody's hand.
 */
import type { Delivery, DeliveryList } from '../../api/shapes.ts';
import { type Filter, matches } from '../../filters.ts';

export interface Row {
  readonly delivery: Delivery;
  /** It has changed, and the filter does not ask for it any more. */
  readonly stray: boolean;
  /** It came while somebody looked. */
  readonly fresh: boolean;
}

export interface Rows {
  readonly shown: readonly Row[];
  readonly held: readonly Row[];
  /** Null where there are no older ones. */
  readonly next: string | null;
}

/** More would be a burden to the page, and of no use to a reader. */
export const MOST_ROWS = 500;

export const NO_ROWS: Rows = { shown: [], held: [], next: null };

export function isFull({ shown }: Rows): boolean {
  return shown.length >= MOST_ROWS;
}

/** With the next older page. */
export function withPage(rows: Rows, { deliveries, next_cursor: next }: DeliveryList): Rows {
  const added = deliveries.map(delivery => ({ delivery, stray: false, fresh: false }));
  return { ...rows, shown: merged(rows.shown, added), next };
}

export interface Rereading {
  readonly hold: boolean;
  /** Runs that the stream has told of since the reading began, of which its answer may know nothing yet. */
  readonly told: ReadonlySet<string>;
}

/**
 * Read again: what the filter does not find any more is gone, and what it finds anew is held back if so wanted.
 * Rows beyond what was read stay, unless some were passed over in between.
 */
export function reread(
  rows: Rows,
  { deliveries, next_cursor: next }: DeliveryList,
  { hold, told }: Rereading,
): Rows {
  const known = new Map([...rows.shown, ...rows.held].map(row => [row.delivery.run_id, row]));
  const read = deliveries.map(delivery => renewed(known.get(delivery.run_id), delivery, false));
  const meanwhile = [...known.values()].filter(row => told.has(row.delivery.run_id));
  const beyond = beyondEnd(rows.shown, { deliveries, next_cursor: next });
  const all = [...read, ...meanwhile, ...beyond];
  const seen = idsOf(rows.shown);
  const isNew = (row: Row): boolean =>
    hold && !seen.has(row.delivery.run_id) && isAboveEnd(rows, row.delivery);
  return {
    shown: merged(all.filter(row => !isNew(row))),
    held: merged(all.filter(isNew)),
    next: beyond.length > 0 ? rows.next : next,
  };
}

/** The rows that a reading did not get to; none where it did not get to any: there may be others in between. */
function beyondEnd(shown: readonly Row[], { deliveries, next_cursor: next }: DeliveryList): readonly Row[] {
  if (next === null) return [];
  const end = deliveries.at(-1)?.run_id;
  if (end === undefined) return shown;
  const beyond = shown.filter(row => row.delivery.run_id < end);
  return beyond.length < shown.length ? beyond : [];
}

/** With changes as the stream tells them, which the filter need not ask for. */
export function withChanges(
  rows: Rows,
  changes: readonly Delivery[],
  { filter, hold }: { readonly filter: Filter; readonly hold: boolean },
): Rows {
  const changed = new Map(changes.map(each => [each.run_id, each]));
  const renew = (row: Row): Row => {
    const change = changed.get(row.delivery.run_id);
    return change === undefined ? row : renewed(row, change, !matches(filter, change));
  };
  const shown = rows.shown.map(renew);
  const held = rows.held.map(renew).filter(row => !row.stray);
  const known = idsOf([...rows.shown, ...rows.held]);
  const added = [...changed.values()]
    .filter(each => !known.has(each.run_id) && matches(filter, each) && belongs(rows, each))
    .map(delivery => ({ delivery, stray: false, fresh: true }));
  return hold
    ? { ...rows, shown, held: merged(held, added) }
    : { ...rows, shown: merged(shown, held, added), held: [] };
}

/** With all that was held back. */
export function released(rows: Rows): Rows {
  return { ...rows, shown: merged(rows.shown, rows.held), held: [] };
}

/** The moment just after that of the last row: a list of what was before then goes on with that row. */
export function endOf({ shown }: Rows): string {
  return new Date(timeIn(shown.at(-1)!.delivery.run_id) + 1).toISOString();
}

/** When the call came in, which a UUIDv7 holds (RFC 9562, 5.7). */
export function timeIn(runId: string): number {
  return Number.parseInt(runId.replace('-', '').slice(0, 12), 16);
}

/** What is older than the last row comes with its page, where there is one to come. */
function belongs(rows: Rows, delivery: Delivery): boolean {
  return rows.shown.length === 0 || isAboveEnd(rows, delivery) || (rows.next === null && !isFull(rows));
}

function isAboveEnd({ shown }: Rows, { run_id: runId }: Delivery): boolean {
  const last = shown.at(-1);
  return last !== undefined && runId > last.delivery.run_id;
}

/** An answer of the list and an event of the stream overtake each other: an earlier word changes nothing. */
function renewed(row: Row | undefined, delivery: Delivery, stray: boolean): Row {
  if (row === undefined) return { delivery, stray, fresh: false };
  return isEarlier(delivery, row.delivery) ? row : { ...row, delivery, stray };
}

/** Round follows round, within it attempt follows attempt, and its end comes last. */
function isEarlier(one: Delivery, other: Delivery): boolean {
  const [a, b] = [stagesOf(one), stagesOf(other)];
  const differs = a.findIndex((stage, index) => stage !== b[index]);
  return differs !== -1 && a[differs]! < b[differs]!;
}

function stagesOf({ round, attempt_count: attempts, state }: Delivery): readonly number[] {
  return [round, attempts, state === 'pending' ? 0 : 1];
}

/** Each run once, as the first list that has it says, and no more than the page can bear. */
function merged(...lists: readonly (readonly Row[])[]): readonly Row[] {
  const byId = new Map<string, Row>();
  for (const row of lists.flat()) {
    if (!byId.has(row.delivery.run_id)) byId.set(row.delivery.run_id, row);
  }
  return [...byId.values()]
    .sort((a, b) => (a.delivery.run_id < b.delivery.run_id ? 1 : -1))
    .slice(0, MOST_ROWS);
}

function idsOf(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.map(row => row.delivery.run_id));
}
