/**
 * Deliveries that a filter asks for, newest first. Each part of a list is read off an index, a bounded number of
 * rows at a time. Where the bound is met, the page ends with the last row that was looked at, whether that is
 * part of the list or not, and the next one goes on from there.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { DeliveryFilter, LedgerPage } from '../../ledger.ts';
import { markReader } from '../catalogue.ts';
import { firstKeyAt, parseRunId } from '../key.ts';
import type { LocateDelivery } from './locate.ts';
import { type Alternatives, type Condition, type Part, partsOf, type Reach } from './plan.ts';

/** How many rows of an index are read for one page, all parts together. */
export const MOST_ROWS = 20_000;
const SOME_ROWS = 1_000;

/** Keys from the first, before the second. */
interface Range {
  readonly from: number;
  readonly to: number;
}

type RangeOf = (part: Part) => Range;

interface Bounded {
  readonly part: Part;
  /** The last row to look at, where there are more. */
  readonly stop: number | undefined;
}

export interface Keys {
  readonly keys: readonly number[];
  /** Of the last row that was looked at, where there may be more. */
  readonly next: number | undefined;
}

export type ListKeys = (filter: DeliveryFilter, page: LedgerPage) => Keys;

const NOTHING: Keys = { keys: [], next: undefined };

export function keyLister(db: DatabaseSync, locate: LocateDelivery): ListKeys {
  const read = keyReader(db);
  const readMark = markReader(db);
  const ownersOf = ownerReader(db);

  /** A part for each owner, if that is how its rows lie. */
  function spread(alternatives: Alternatives): readonly Alternatives[] {
    const [first] = alternatives;
    if (!first?.eachOwner) return [alternatives];
    return ownersOf().map(owner => [{ ...first, by: [...first.by, owner] }]);
  }

  /** The last row of a part to look at, where there are more than so many. */
  function stopOf(part: Part, range: Range, most: number): number | undefined {
    if (part.rest.length === 0) return undefined;
    const [stop, more] = read({ from: part.from, conditions: part.by }, range, 2, most - 1);
    return more === undefined ? undefined : stop;
  }

  /** Of several ways to the same rows, the one that gets furthest back within the bound. */
  function furthest(alternatives: Alternatives, rangeOf: RangeOf, most: number): Bounded {
    const bounded = alternatives.map(part => ({ part, stop: stopOf(part, rangeOf(part), most) }));
    return bounded.reduce((best, each) => ((each.stop ?? -1) < (best.stop ?? -1) ? each : best));
  }

  function look(lists: readonly Alternatives[], rangeOf: RangeOf, limit: number, most: number): Keys {
    const each = Math.floor(most / lists.length);
    const bounded = lists.map(alternatives => furthest(alternatives, rangeOf, each));
    // What lies behind the nearest stop may belong between what other parts have there.
    const stop = bounded.reduce((nearest, part) => Math.max(nearest, part.stop ?? -1), -1);
    const found = bounded.flatMap(({ part }) => {
      const { from, to } = rangeOf(part);
      const rows = { from: `${part.from} ${part.join}`, conditions: [...part.by, ...part.rest] };
      return read(rows, { from: Math.max(from, stop), to }, limit + 1, 0);
    });
    const keys = found.toSorted((a, b) => b - a).slice(0, limit);
    if (found.length > limit) return { keys, next: keys.at(-1) };
    return { keys, next: stop < 0 ? undefined : stop };
  }

  return (filter, page) => {
    const range = rangeOfPage(filter, page, locate);
    const lists = partsOf(filter).flatMap(spread);
    if (range === undefined || lists.length === 0) return NOTHING;
    const rangeOf = rangesWithin(range, readMark());
    // Where much of what there is belongs to the list, a page is found among few.
    const found = look(lists, rangeOf, page.limit, SOME_ROWS);
    const enough = found.next === undefined || found.keys.length === page.limit;
    return enough ? found : look(lists, rangeOf, page.limit, MOST_ROWS);
  };
}

function rangesWithin({ from, to }: Range, mark: number): RangeOf {
  const ranges: Readonly<Record<Reach, Range>> = {
    all: { from, to },
    recent: { from: Math.max(from, mark + 1), to },
    catalogued: { from, to: Math.min(to, mark + 1) },
  };
  return ({ reach }) => ranges[reach];
}

/** Undefined where it is to go on from what is no run id. Of a delivery that is gone, its millisecond is known. */
function rangeOfPage(
  { since, until }: DeliveryFilter,
  { before }: LedgerPage,
  locate: LocateDelivery,
): Range | undefined {
  const cursor =
    before === undefined ? Number.MAX_SAFE_INTEGER : (locate.key(before) ?? parseRunId(before)?.first);
  if (cursor === undefined) return undefined;
  return {
    from: since === undefined ? 0 : firstKeyAt(since),
    to: until === undefined ? cursor : Math.min(cursor, firstKeyAt(until)),
  };
}

interface Rows {
  readonly from: string;
  readonly conditions: readonly Condition[];
}

type ReadKeys = (rows: Rows, range: Range, limit: number, offset: number) => number[];

function keyReader(db: DatabaseSync): ReadKeys {
  const statements = new Map<string, StatementSync>();
  return ({ from, conditions }, range, limit, offset) => {
    const where = [...conditions.map(([sql]) => sql), 'id >= ?', 'id < ?'].join(' AND ');
    const sql = `SELECT id FROM ${from} WHERE ${where} ORDER BY id DESC LIMIT ? OFFSET ?`;
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    const parameters = conditions.flatMap(([, ...values]) => values);
    return statement.all(...parameters, range.from, range.to, limit, offset).map(row => row['id'] as number);
  };
}

/** Everyone who has pending deliveries, and nobody, in one step each. */
function ownerReader(db: DatabaseSync): () => Condition[] {
  const next = db.prepare(
    `SELECT owner FROM deliveries INDEXED BY deliveries_pending WHERE state = 0 AND owner > ?
     ORDER BY owner LIMIT 1`,
  );
  const after = (owner: number) => next.get(owner)?.['owner'] as number | undefined;
  return () => {
    const conditions: Condition[] = [['owner IS NULL']];
    for (let owner = after(-1); owner !== undefined; owner = after(owner))
      conditions.push(['owner = ?', owner]);
    return conditions;
  };
}
