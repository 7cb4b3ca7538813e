/**
 * Above and below the rows of the list: what is new and waits to be shown, and the way to what is older.
 */
import { type Filter, isNarrowed } from '../../filters.ts';
import { go, withParameters } from '../../location.ts';
import type { List } from './list.ts';
import { endOf, isFull, MOST_ROWS } from './rows.ts';

export function News({ count, onShow }: { readonly count: number; readonly onShow: () => void }) {
  return (
    <button
      type="button"
      class="news"
      onClick={() => {
        onShow();
        scrollTo({ top: 0 });
      }}
    >
      {count < MOST_ROWS ? count : `${MOST_ROWS}+`} new
    </button>
  );
}

export function End({ list, filter }: { readonly list: List; readonly filter: Filter }) {
  const rows = list.rows.value;
  const { known, reading, empty, error } = list.progress.value;
  if (empty > 0 && (reading || rows.next !== null)) return <Looking list={list} />;
  if (!known) return null;
  if (rows.shown.length === 0) return error === undefined ? <Empty filter={filter} /> : null;
  if (isFull(rows)) {
    return (
      <div class="row">
        <button type="button" onClick={() => go(withParameters({ until: endOf(rows) }))}>
          Older
        </button>
        <span class="faint">The page holds {MOST_ROWS}; older ones are listed afresh.</span>
      </div>
    );
  }
  if (rows.next === null) return <p class="faint">There are no older ones.</p>;
  return (
    <div class="row">
      <button type="button" disabled={reading} onClick={list.readOlder}>
        Older
      </button>
    </div>
  );
}

/** The service looks at so many at a time, and says so where none of them was one. */
function Looking({ list }: { readonly list: List }) {
  const { reading, empty } = list.progress.value;
  const pages = empty === 1 ? '1 page' : `${empty} pages`;
  return (
    <div class="row">
      <output class="faint">
        Looked through {pages} without a match{reading ? ', looking further…' : '.'}
      </output>
      {!reading && (
        <button type="button" onClick={list.readOlder}>
          Look further
        </button>
      )}
    </div>
  );
}

function Empty({ filter }: { readonly filter: Filter }) {
  if (isNarrowed(filter)) return <p class="panel">No delivery matches these filters.</p>;
  return (
    <div class="panel">
      <h2>No deliveries yet</h2>
      <p>
        Each call with <code>?webhookEndpoint=https://…</code> makes one: its answer is sent there as well,
        and shows up here.
      </p>
    </div>
  );
}
