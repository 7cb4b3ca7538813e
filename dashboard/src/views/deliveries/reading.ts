/**
 * Reads a list page by page. A page looks at a bounded number of rows: it may have few that match, or none, and
 * still be followed by another. So this reads on until there are enough, but not for ever.
 */

export interface Page<T> {
  readonly items: readonly T[];
  /** Null on the last page. */
  readonly next: string | null;
}

export interface PageAsked {
  readonly cursor: string | undefined;
  readonly limit: number;
}

export interface ReadingOptions<T> {
  readonly read: (page: PageAsked) => Promise<Page<T>>;
  readonly from?: string | undefined;
  /** How many are enough. */
  readonly wanted: number;
}

export const PAGE_ROWS = 50;
const LARGEST_PAGE = 200;
/** Pages in a row that may come up empty before whoever looks is asked whether to go on. */
const MOST_EMPTY = 5;

export async function* readOn<T>({ read, from, wanted }: ReadingOptions<T>): AsyncGenerator<Page<T>, void> {
  let cursor = from;
  let missing = wanted;
  let empty = 0;
  do {
    const page = await read({ cursor, limit: Math.min(missing, LARGEST_PAGE) });
    yield page;
    missing -= page.items.length;
    empty = page.items.length === 0 ? empty + 1 : 0;
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && missing > 0 && empty < MOST_EMPTY);
}

/** All that it reads, as one page. */
export async function readAll<T>(options: ReadingOptions<T>): Promise<Page<T>> {
  const items: T[] = [];
  let next: string | null = null;
  for await (const page of readOn(options)) {
    items.push(...page.items);
    ({ next } = page);
  }
  return { items, next };
}
