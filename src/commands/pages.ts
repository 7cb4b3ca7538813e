/**
 * Lists of the service, page by page: a page may be empty and still have a next one.
 */
import { ask } from './ask.ts';
import type { Client, Fault } from './client.ts';
import { type Column, createTable } from './layout.ts';
import { Failed, type Io, isTerminal, printJson } from './output.ts';

/** The service gives no more at once. */
export const PAGE = 200;

export interface Listing {
  /** Where the list is, and by which name its answer has the entries. */
  readonly name: 'runs' | 'deliveries';
  /** What is undefined is not asked for. */
  readonly query: Readonly<Record<string, string | undefined>>;
}

export interface Page<Entry> {
  readonly kind: 'page';
  readonly entries: readonly Entry[];
  /** Null on the last one. */
  readonly next: string | null;
}

export interface PlaceInList {
  readonly limit: number;
  /** Absent: at the beginning. */
  readonly cursor?: string | undefined;
  readonly signal?: AbortSignal;
}

export async function readPage<Entry>(
  client: Client,
  { name, query }: Listing,
  { limit, cursor, signal }: PlaceInList,
): Promise<Page<Entry> | Fault> {
  const path = `/_${name}?${queryOf({ ...query, cursor, limit: String(limit) })}`;
  const question = { path, ...(signal !== undefined && { signal }) };
  const reply = await ask<Record<string, unknown>>(client, question, { key: name, what: name });
  if (reply.kind === 'fault') return reply;
  const { [name]: entries, next_cursor: next } = reply.value;
  return { kind: 'page', entries: entries as Entry[], next: (next ?? null) as string | null };
}

export function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}

/** So many entries, or fewer where there are no more. */
export async function* pagesOf<Entry>(
  client: Client,
  listing: Listing,
  limit: number,
): AsyncGenerator<readonly Entry[]> {
  let left = limit;
  let cursor: string | null | undefined;
  while (left > 0 && cursor !== null) {
    const page: Page<Entry> | Fault = await readPage<Entry>(client, listing, {
      limit: Math.min(left, PAGE),
      cursor,
    });
    if (page.kind === 'fault') throw new Failed(page.message);
    yield page.entries;
    left -= page.entries.length;
    cursor = page.next;
  }
}

export interface ListView<Entry> {
  readonly columns: readonly Column<Entry>[];
  readonly json: boolean;
}

/** A table on a terminal; lines of JSON elsewhere, or where they are asked for. */
export async function printPages<Entry>(
  io: Io,
  pages: AsyncIterable<readonly Entry[]>,
  { columns, json }: ListView<Entry>,
): Promise<void> {
  const table = createTable(io.stdout, columns);
  const readable = isTerminal(io.stdout) && !json;
  let found = 0;
  for await (const entries of pages) {
    found += entries.length;
    if (readable) table.add(entries);
    else for (const entry of entries) printJson(io, entry);
  }
  if (readable && found === 0) io.stderr.write('none was found\n');
}
