/**
 * The list while somebody looks at it: reads its pages, one reading at a time, and follows the stream. Whenever
 * something was missed, as before the stream opened, what is shown is read again.
 */
import { type ReadonlySignal, signal } from '@preact/signals';
import type { Delivery, DeliveryList } from '../../api/shapes.ts';
import { type Filter, streamed } from '../../filters.ts';
import { PAGE_ROWS, type Page, type PageAsked, readAll, readOn } from './reading.ts';
import { NO_ROWS, released, reread, type Rows, withChanges, withPage } from './rows.ts';

export interface ListDeps {
  readonly filter: Filter;
  readonly read: (
    parameters: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ) => Promise<DeliveryList>;
  readonly openLive: (filter: Filter, listener: Listener) => () => void;
  /** Whether what is new is to wait, because it would move what somebody has at hand. */
  readonly isBusy: () => boolean;
}

export type Connection = 'off' | 'connecting' | 'live' | 'reconnecting';

interface Listener {
  readonly onChange: (deliveries: readonly Delivery[]) => void;
  readonly onMissed: () => void;
  readonly onConnection: (connection: Connection) => void;
}

export interface Progress {
  /** The first page has been read, so that something can be said about what there is. */
  readonly known: boolean;
  readonly reading: boolean;
  readonly error: Error | undefined;
  /** Pages without a match since the last one with any. */
  readonly empty: number;
}

export interface List {
  readonly rows: ReadonlySignal<Rows>;
  readonly progress: ReadonlySignal<Progress>;
  readonly connection: ReadonlySignal<Connection>;
  /** Reads the first page, or again all that is shown. */
  readonly read: () => void;
  readonly readOlder: () => void;
  readonly release: () => void;
  readonly setLive: (on: boolean) => void;
  readonly stop: () => void;
}

type Task = (signal: AbortSignal) => Promise<void>;

export function createList({ filter, read, openLive, isBusy }: ListDeps): List {
  const rows = signal(NO_ROWS);
  const progress = signal<Progress>({ known: false, reading: true, error: undefined, empty: 0 });
  const connection = signal<Connection>('off');
  let current = new AbortController();
  let told = new Set<string>();
  /** Something was missed while another reading was under way. */
  let again = false;
  let wantsLive = false;
  let closeLive: (() => void) | undefined;

  const tell = (news: Partial<Progress>): void => {
    progress.value = { ...progress.value, ...news };
  };

  async function perform(task: Task): Promise<void> {
    current.abort();
    const { signal } = (current = new AbortController());
    tell({ reading: true, error: undefined });
    try {
      await task(signal);
      if (signal.aborted) return;
      tell({ known: true, reading: false });
      connect();
      if (again) void perform(readAgain);
    } catch (error) {
      if (!signal.aborted) tell({ reading: false, error: error as Error });
    }
  }

  const pageBy =
    (signal: AbortSignal) =>
    async ({ cursor, limit }: PageAsked): Promise<Page<Delivery>> => {
      const page = await read({ ...filter, cursor, limit: String(limit) }, signal);
      signal.throwIfAborted();
      return { items: page.deliveries, next: page.next_cursor };
    };

  const readOlder: Task = async signal => {
    const from = rows.value.next ?? undefined;
    for await (const { items, next } of readOn({ read: pageBy(signal), from, wanted: PAGE_ROWS })) {
      rows.value = withPage(rows.value, { deliveries: [...items], next_cursor: next });
      const { known, empty } = progress.value;
      tell(items.length > 0 ? { known: true, empty: 0 } : { known, empty: empty + 1 });
    }
  };

  const readAgain: Task = async signal => {
    again = false;
    told = new Set();
    const wanted = Math.max(PAGE_ROWS, rows.value.shown.length);
    const { items, next } = await readAll({ read: pageBy(signal), wanted });
    rows.value = reread(rows.value, { deliveries: [...items], next_cursor: next }, { hold: isBusy(), told });
  };

  function readFirst(): void {
    void perform(progress.value.known ? readAgain : readOlder);
  }

  function connect(): void {
    if (!wantsLive || closeLive !== undefined || !progress.value.known) return;
    closeLive = openLive(streamed(filter), {
      onChange: changes => {
        if (progress.value.reading) for (const { run_id } of changes) told.add(run_id);
        rows.value = withChanges(rows.value, changes, { filter, hold: isBusy() });
      },
      onMissed() {
        if (progress.value.reading) again = true;
        else readFirst();
      },
      onConnection: state => {
        connection.value = state;
      },
    });
  }

  function disconnect(): void {
    closeLive?.();
    closeLive = undefined;
    connection.value = 'off';
  }

  return {
    rows,
    progress,
    connection,
    read: readFirst,
    readOlder: () => void perform(readOlder),
    release: () => {
      rows.value = released(rows.value);
    },
    setLive(on) {
      wantsLive = on;
      if (on) connect();
      else disconnect();
    },
    stop() {
      current.abort();
      disconnect();
    },
  };
}
