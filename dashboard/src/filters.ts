/**
 * Which deliveries a list is about: the names that the API gives its filter, as they stand in the address of the
 * page, and what of it the page judges by itself.
 */
import type { Delivery } from './api/shapes.ts';

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
export const FAILURE_REASONS = ['exhausted', 'rejected', 'blocked'] as const;

const FILTER_NAMES = ['project', 'app', 'state', 'reason', 'host', 'status', 'since', 'until'] as const;

export type FilterName = (typeof FILTER_NAMES)[number];

/** As text; whether it makes sense is for the API to say. */
export type Filter = Readonly<Partial<Record<FilterName, string>>>;

type Changes = Readonly<Partial<Record<FilterName, string | undefined>>>;

export function filterOf(query: Pick<URLSearchParams, 'get'>): Filter {
  return Object.fromEntries(
    FILTER_NAMES.map(name => [name, query.get(name) ?? '']).filter(([, text]) => text !== ''),
  ) as Filter;
}

/** Whether anything is asked for that the form can take back; the project is chosen elsewhere. */
export function isNarrowed(filter: Filter): boolean {
  return Object.keys(without(filter, ['project'])).length > 0;
}

/** What becomes of the filter where one name gets another value: only what has failed has a reason. */
export function changesBy(name: FilterName, text: string): Changes {
  const value = text.trim() === '' ? undefined : text.trim();
  const hasReasons = name !== 'state' || value === undefined || value === 'failed';
  return hasReasons ? { [name]: value } : { [name]: value, reason: undefined };
}

/** All names but the project's, to be taken back. */
export const CLEARED: Changes = Object.fromEntries(
  FILTER_NAMES.filter(name => name !== 'project').map(name => [name, undefined]),
);

/**
 * What the stream is asked for. A delivery that is shown is to be seen leaving the filter too, so all that may
 * change about it is judged here instead of there.
 */
export function streamed(filter: Filter): Filter {
  return without(filter, ['state', 'reason', 'host', 'status']);
}

/** Whether a delivery of the stream is one that the filter asks for. */
export function matches({ state, reason, host, status }: Filter, delivery: Delivery): boolean {
  return (
    (state === undefined || state === delivery.state) &&
    (reason === undefined || reason === delivery.reason) &&
    (host === undefined || host.toLowerCase() === new URL(delivery.target).host) &&
    (status === undefined || isOf(status, delivery.last_status))
  );
}

/** A status such as `503`, or a class such as `5xx`. */
function isOf(asked: string, status: number | undefined): boolean {
  const text = String(status ?? '');
  return asked.endsWith('xx') ? text[0] === asked[0] : text === asked;
}

function without(filter: Filter, names: readonly FilterName[]): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([name]) => !names.includes(name as FilterName)));
}
