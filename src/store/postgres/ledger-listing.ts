/**
 * Where a list of deliveries is read, and how: pure.
 *
 * Each filter has the index that fits it best. Where that index does not have all that is asked for, its rows are
 * read in order until the page is full or a bound is met. The index cannot be mistaken: comparing whole rows, and
 * ordering by all of its columns, fits no other.
 *
 * It is read in ranges of ids. Most pages are full with the newest of them, which is in few of the days' tables;
 * to plan for all of them takes the server longer than to read.
 */
import { REASONS, STATES } from '../codes.ts';
import type { DeliveryFilter } from '../ledger.ts';
import { UNDELIVERED } from './ledger-tables.ts';
import { DAY_MS, firstId } from './partitions.ts';

/** Rows that are read in a range, at most; fewer where each of them has to be looked up elsewhere too. */
const ROWS = 10_000;
const ROWS_LOOKED_UP = 2_000;

/** Where the ranges begin, in days before the first. */
const DAYS = [1, 8];

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const LAST_MS = 2 ** 48 - 1;

export interface Query {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface Scan {
  /** The newest that are asked for, up to the limit and one more. */
  readonly page: Query;
  /** The last that `page` looks at before its bound; no row where it comes to the end. */
  readonly end: Query;
  readonly limit: number;
}

type Name = 'project' | 'app' | 'host';

/** A column of an index before the id, and what it is to be. */
interface Lead {
  readonly column: Name | 'state';
  readonly type: 'text' | 'smallint';
  readonly value: unknown;
}

interface Source {
  readonly table: string;
  readonly lead: readonly Lead[];
  /** The condition of its index. */
  readonly condition?: string;
  /** What it knows besides: how a delivery is getting on. */
  readonly progress: readonly ('state' | 'reason' | 'last_status')[];
}

/** From one id on, before another. */
export interface Range {
  readonly from: string;
  readonly before: string;
}

/** The parameter of a value, which is added to those of a query. */
type Given = (value: unknown, type: string) => string;

const PENDING: Source = { table: 'afterword_queue', lead: [], progress: ['last_status'] };

/** Newest first. Ids begin with their time. */
export function rangesOf(
  { since = 0, until }: DeliveryFilter,
  before: string | undefined,
  now: number,
): Range[] {
  const from = idFrom(since);
  const end = until === undefined ? LAST_ID : idFrom(until);
  const newest = before !== undefined && before < end ? before : end;
  const start = Math.min(now, timeOf(newest));
  const cuts = DAYS.map(days => idFrom(start - days * DAY_MS)).filter(cut => cut > from && cut < newest);
  const bounds = [newest, ...cuts, from];
  return cuts.concat(from).map((cut, i) => ({ from: cut, before: bounds[i]! }));
}

function idFrom(ms: number): string {
  return ms > LAST_MS ? LAST_ID : firstId(Math.max(0, Math.ceil(ms)));
}

function timeOf(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16);
}

/** Of up to `limit` in a range. None where nothing can be as the filter says. */
export function scansOf(filter: DeliveryFilter, range: Range, limit: number): Scan[] {
  return sourcesOf(filter).map(source => scanOf(source, filter, range, limit));
}

/** What was delivered was answered with 2xx. */
function sourcesOf(filter: DeliveryFilter): Source[] {
  const { state, reason, status } = filter;
  if (reason !== undefined)
    return state === undefined || state === 'failed' ? [undelivered(filter, 'failed')] : [];
  if (state === 'pending') return [PENDING];
  if (state === 'failed' || state === 'cancelled') return [undelivered(filter, state)];
  const refused = status !== undefined && (status.from > 299 || status.to < 200);
  if (!refused) return [deliveries(filter)];
  return state === undefined
    ? [PENDING, undelivered(filter, 'failed'), undelivered(filter, 'cancelled')]
    : [];
}

function undelivered(filter: DeliveryFilter, state: 'failed' | 'cancelled'): Source {
  const ofState: Lead = { column: 'state', type: 'smallint', value: STATES.indexOf(state) };
  return {
    table: 'afterword_settled',
    lead: [...leadOf(filter, [['host'], ['project']]), ofState],
    condition: UNDELIVERED,
    progress: ['state', 'reason', 'last_status'],
  };
}

function deliveries(filter: DeliveryFilter): Source {
  const lead = leadOf(filter, [['project', 'app'], ['host'], ['project']]);
  return { table: 'afterword_deliveries', lead, progress: [] };
}

/** The first of which all is given. */
function leadOf(filter: DeliveryFilter, choices: readonly (readonly Name[])[]): Lead[] {
  const named = namedBy(filter);
  const chosen = choices.find(names => names.every(name => named[name] !== undefined)) ?? [];
  return chosen.map(column => ({ column, type: 'text', value: named[column] }));
}

function namedBy({ projectId, app, host }: DeliveryFilter): Readonly<Record<Name, string | undefined>> {
  return { project: projectId, app, host };
}

function scanOf(source: Source, filter: DeliveryFilter, { from, before }: Range, limit: number): Scan {
  const values: unknown[] = [];
  const given: Given = (value, type) => `$${values.push(value)}::${type}`;
  const order = keyOf(source)
    .map(column => `${column} DESC`)
    .join(', ');
  const range = { from: given(from, 'uuid'), before: given(before, 'uuid') };
  const rows = `
    SELECT ${['id', 'project', 'app', 'host', ...source.progress].join(', ')} FROM ${source.table}
    WHERE ${[...within(source, range, given), ...(source.condition ? [source.condition] : [])].join(' AND ')}
    ORDER BY ${order}`;
  const ofRows = [...values];
  const asked = [...namesAsked(source, filter, given), ...progressAsked(source, filter, given)];
  const looksUp = source.progress.length === 0 && (filter.state ?? filter.status) !== undefined;
  const bound = looksUp ? ROWS_LOOKED_UP : ROWS;
  return {
    page: {
      text: `
        SELECT id FROM (${rows} LIMIT ${bound}) listed ${looksUp ? PROGRESS(range) : ''}
        ${asked.length > 0 ? `WHERE ${asked.join(' AND ')}` : ''}
        ORDER BY ${order} LIMIT ${given(limit + 1, 'int')}`,
      values,
    },
    end: { text: `SELECT id FROM (${rows} OFFSET ${bound - 1} LIMIT 1) last`, values: ofRows },
    limit,
  };
}

/** By the parameters of its ends. */
const IN_RANGE = ({ from, before }: Range) => `id >= ${from} AND id < ${before}`;

function keyOf({ lead }: Source): string[] {
  return [...lead.map(({ column }) => column), 'id'];
}

/** The ids by themselves as well: they tell in which days' tables to look. */
function within(source: Source, range: Range, given: Given): string[] {
  if (source.lead.length === 0) return [IN_RANGE(range)];
  const key = keyOf(source).join(', ');
  const lead = source.lead.map(({ value, type }) => given(value, type)).join(', ');
  return [`(${key}) >= (${lead}, ${range.from})`, `(${key}) < (${lead}, ${range.before})`, IN_RANGE(range)];
}

function namesAsked(source: Source, filter: DeliveryFilter, given: Given): string[] {
  const key = keyOf(source);
  return Object.entries(namedBy(filter)).flatMap(([column, name]) =>
    name === undefined || key.includes(column) ? [] : [`${column} = ${given(name, 'text')}`],
  );
}

/** Only deliveries themselves may be of any state. */
function progressAsked(source: Source, { state, reason, status }: DeliveryFilter, given: Given): string[] {
  const asked: string[] = [];
  if (state !== undefined && source.progress.length === 0)
    asked.push(`state = ${given(STATES.indexOf(state), 'int')}`);
  if (reason !== undefined) asked.push(`reason = ${given(REASONS.indexOf(reason), 'int')}`);
  if (status !== undefined)
    asked.push(`last_status BETWEEN ${given(status.from, 'int')} AND ${given(status.to, 'int')}`);
  return asked;
}

/** Looked up for each row, since the deliveries themselves do not know. */
const PROGRESS = (range: Range) => `
  CROSS JOIN LATERAL (
    SELECT ${STATES.indexOf('pending')} AS state, last_status FROM afterword_queue WHERE id = listed.id
    UNION ALL
    SELECT state, last_status FROM afterword_settled WHERE id = listed.id AND ${IN_RANGE(range)}
    LIMIT 1
  ) progress`;
