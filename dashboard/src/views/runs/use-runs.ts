/**
 * The runs that the address asks for, as many pages of them as somebody has asked to see, read again every so
 * often: a run changes until it has ended, and no stream tells of it.
 */
import { useSignal } from '@preact/signals';
import { get } from '../../api/client.ts';
import type { Run, RunList } from '../../api/shapes.ts';
import { go, hrefOf, withParameters } from '../../location.ts';
import { type Resource, useResource } from '../../resource.ts';
import { PAGE_ROWS, type Page, type PageAsked, readAll } from '../deliveries/reading.ts';
import { MOST_ROWS } from '../deliveries/rows.ts';

export interface RunQuery {
  readonly project: string | undefined;
  readonly state: string | undefined;
  readonly app: string | undefined;
  /** Where the list begins, if not with the newest. */
  readonly cursor: string | undefined;
}

export interface RunsFound extends Resource<Page<Run>> {
  readonly readOlder: (next: string) => void;
}

const BUSY_MS = 3_000;
const CALM_MS = 10_000;

export function useRuns(query: RunQuery): RunsFound {
  const key = hrefOf('', { ...query });
  const shown = useSignal({ key, rows: PAGE_ROWS });
  const wanted = shown.value.key === key ? shown.value.rows : PAGE_ROWS;
  const busy = useSignal(false);
  const { state, reload } = useResource({
    key,
    everyMs: busy.value ? BUSY_MS : CALM_MS,
    load: async signal => {
      const read = (page: PageAsked): Promise<Page<Run>> => readPage(query, page, signal);
      const found = await readAll({ read, from: query.cursor, wanted });
      busy.value = found.items.some(run => run.ended_at === undefined);
      return found;
    },
  });

  function readOlder(next: string): void {
    if (wanted >= MOST_ROWS) {
      go(withParameters({ cursor: next }));
    } else {
      shown.value = { key, rows: wanted + PAGE_ROWS };
      reload();
    }
  }

  return { state, reload, readOlder };
}

async function readPage(
  query: RunQuery,
  { cursor, limit }: PageAsked,
  signal: AbortSignal,
): Promise<Page<Run>> {
  const asked = { ...query, cursor, limit: String(limit) };
  const { runs, next_cursor: next } = await get<RunList>('runs', asked, signal);
  return { items: runs, next };
}
