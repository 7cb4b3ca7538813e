/**
 * Where the page is. The address holds all that is chosen (view, filters, window), so that a link, a reload and
 * the way back show the same. Links are plain `<a href>`: one listener keeps those within the page.
 */
import { computed, signal } from '@preact/signals';

const href = signal('/');

const url = computed(() => new URL(href.value, 'http://page'));

export const path = computed(() => url.value.pathname);

export const query = computed(() => url.value.searchParams);

/** Text of a query, or undefined. */
export function parameter(name: string): string | undefined {
  return query.value.get(name) ?? undefined;
}

/** The present place with other parameters: undefined or empty ones are left out. */
export function withParameters(changes: Readonly<Record<string, string | undefined>>): string {
  return hrefOf(path.value, { ...Object.fromEntries(query.value), ...changes });
}

/** A path with its parameters, those that are undefined or empty left out. */
export function hrefOf(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((each): each is [string, string] => Boolean(each[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

/** Another place: a new entry in the history, or for a change that is none of its own (typing) in place of it. */
export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  arrive();
}

export function startLocation(): void {
  arrive();
  addEventListener('popstate', arrive);
  document.addEventListener('click', followWithin);
}

function arrive(): void {
  const from = path.peek();
  href.value = location.pathname + location.search;
  if (path.peek() !== from) scrollTo(0, 0);
}

function followWithin(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || link.target !== '' || link.origin !== location.origin || link.hash !== '') return;
  event.preventDefault();
  go(link.pathname + link.search);
}
