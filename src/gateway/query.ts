/**
 * Reads the service's own parameters in the query of a call, `webhookEndpoint` and `async=true`, which are cut
 * out of the query that the app sees. An escaped spelling is the same parameter, so that no second one slips
 * through to the app. `async` with any other value is the app's own.
 */
import { percentDecode } from '../delivery/percent.ts';
import { Problem } from '../errors.ts';

export interface CallQuery {
  /** What the app sees; undefined where no query is left, and so no `?`. */
  readonly rest: string | undefined;
  /** As it came, undefined where it is not given. */
  readonly webhookEndpoint: string | undefined;
  readonly async: boolean;
}

const NAMES = ['webhookEndpoint', 'async'] as const;
const LONGEST_NAME = NAMES[0].length;

const PERCENT = 0x25;
const AMPERSAND = 0x26;
const EQUALS = 0x3d;

export function readQuery(query: string | undefined): CallQuery {
  const own = ownParameters(query);
  if (own.length === 0) return { rest: query, webhookEndpoint: undefined, async: false };
  const endpoints = own.filter(({ name }) => name === 'webhookEndpoint');
  if (endpoints.length > 1) {
    throw new Problem('invalid_webhook_endpoint', 'webhookEndpoint is given more than once');
  }
  const async = own.some(isAsync);
  if (async && own.length > endpoints.length + 1) {
    throw new Problem('invalid_query', 'async is given more than once');
  }
  const rest = cutOut(query!, async ? own : endpoints);
  return { rest, webhookEndpoint: endpoints[0]?.value, async };
}

/** Whether a query asks for an asynchronous call, whatever else may be wrong with it. */
export function asksForAsync(query: string | undefined): boolean {
  return ownParameters(query).some(isAsync);
}

/** Where a parameter lies in the query: `name=value` from `start` to `end`, without its separators. */
interface Parameter {
  readonly name: (typeof NAMES)[number];
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

const isAsync = ({ name, value }: Parameter): boolean => name === 'async' && percentDecode(value) === 'true';

const NONE: readonly Parameter[] = [];

/** In the order in which they are given. */
function ownParameters(query: string | undefined): readonly Parameter[] {
  if (query === undefined || !mayHoldOwn(query)) return NONE;
  const found: Parameter[] = [];
  let start = 0;
  let equals = -1;
  let escaped = false;
  for (let at = 0; at <= query.length; at++) {
    const code = at === query.length ? AMPERSAND : query.charCodeAt(at);
    if (code === AMPERSAND) {
      const nameEnd = equals === -1 ? at : equals;
      const name = ownName(query, start, nameEnd, escaped);
      if (name !== undefined) found.push({ name, value: query.slice(nameEnd + 1, at), start, end: at });
      start = at + 1;
      equals = -1;
      escaped = false;
    } else if (equals === -1) {
      if (code === EQUALS) equals = at;
      else if (code === PERCENT) escaped = true;
    }
  }
  return found;
}

/** Asked of every call: most queries need no closer look. */
function mayHoldOwn(query: string): boolean {
  return query.includes('%') || NAMES.some(name => query.includes(name));
}

function ownName(query: string, start: number, end: number, escaped: boolean): Parameter['name'] | undefined {
  const length = end - start;
  if (!escaped) return NAMES.find(name => length === name.length && query.startsWith(name, start));
  if (length > LONGEST_NAME * 3) return undefined;
  const decoded = percentDecode(query.slice(start, end));
  return NAMES.find(name => name === decoded);
}

/** The other parameters and the separators between them stay: as if split at `&`, and joined without these. */
function cutOut(query: string, parameters: readonly Parameter[]): string | undefined {
  return parameters.reduceRight<string | undefined>((left, parameter) => cut(left!, parameter), query);
}

function cut(query: string, { start, end }: Parameter): string | undefined {
  if (start > 0) return query.slice(0, start - 1) + query.slice(end);
  return end < query.length ? query.slice(end + 1) : undefined;
}
