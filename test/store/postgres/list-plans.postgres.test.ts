/**
 * What lists read, whatever the planner knows of the tables. There are very many deliveries of today, and some of
 * each day before; a page reads as many rows as it has, or where it has to search, as many as its bound allows.
 */
import { describe, expect, it } from 'vitest';
import type { DeliveryFilter, DeliveryList } from '../../../src/store/ledger.ts';
import { DAY_MS, dayOf, firstId, PARTITIONED } from '../../../src/store/postgres/partitions.ts';
import type { Store } from '../../../src/store/store.ts';
import { createDatabase, type Database } from '../../support/postgres.ts';
import { openTestStore, untilGone } from './opening.ts';

const TODAY = 60_000;
const DAYS_BEFORE = 12;
const OF_A_DAY = 300;
const PENDING = 15_000;

const LIMIT = 20;
/** Its rows in four tables, twice at most, and the first of each day's table. */
const A_PAGE = 8 * LIMIT + 4 * DAYS_BEFORE;
/** Twice the bound, for where it is; and all of the days before. */
const A_SEARCH = 2 * 10_000 + 2 * OF_A_DAY * DAYS_BEFORE + A_PAGE;
/** Of the rows that gave a new queue its pages, the index keeps entries until the first vacuum. */
const FILLERS = 512;
const SEARCH_WITH_LOOKUPS = 2 * 2_000 * 3 + A_PAGE;

/** By their ordinal: most are of one project, one in fifty has failed, and few are of the others. */
const ROWS = `
  WITH made AS (
    SELECT n, (lpad(to_hex(ms), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid AS id, ms,
      CASE WHEN n % 1000 = 7 THEN 'p-few' ELSE 'p-many' END AS project,
      'app-' || n % 3 AS app,
      CASE WHEN n % 1000 = 7 THEN 'few.example' ELSE 'many.example' END AS host,
      CASE WHEN n % 50 = 0 THEN 2 ELSE 1 END AS state
    FROM (
      SELECT n, CASE WHEN n < ${TODAY} THEN $1::bigint - n ELSE
        $1::bigint - (1 + (n - ${TODAY}) / ${OF_A_DAY}) * ${DAY_MS} END AS ms
      FROM generate_series(0, ${TODAY + DAYS_BEFORE * OF_A_DAY - 1}) n
    ) timed
  )`;

const FILL = [
  `${ROWS} INSERT INTO afterword_deliveries (id, project, app, target, host, status, created_at, body)
    SELECT id, project, app, 'https://' || host, host, 200, ms, '{}' FROM made`,
  `${ROWS} INSERT INTO afterword_settled (id, state, reason, round, settled_at, project, app, host, last_status)
    SELECT id, state, CASE state WHEN 2 THEN n / 50 % 2 END, 1, ms, project, app, host,
      CASE state WHEN 2 THEN 500 ELSE 200 END
    FROM made WHERE n >= ${PENDING}`,
  `${ROWS} INSERT INTO afterword_queue (id, round, attempts, cause, due_at, project, app, host, created_at)
    SELECT id, 1, 0, 0, ms, project, app, host, ms FROM made WHERE n < ${PENDING}`,
  `${ROWS} INSERT INTO afterword_attempts (id, round, number, cause, started_at, queue_ms, total_ms, status)
    SELECT id, 1, 1, 0, ms, 0, 1, 200 FROM made WHERE n >= ${PENDING}`,
];

/** A filter, the rows that it may read, and whether its first page is full. */
const LISTS: readonly [filter: DeliveryFilter, rows: number, page: 'full' | 'last' | 'searching'][] = [
  [{}, A_PAGE, 'full'],
  [{ projectId: 'p-many' }, A_PAGE, 'full'],
  [{ projectId: 'p-few' }, A_PAGE, 'full'],
  [{ projectId: 'p-none' }, A_PAGE, 'last'],
  [{ projectId: 'p-many', app: 'app-1' }, A_PAGE, 'full'],
  [{ projectId: 'p-few', app: 'app-none' }, A_PAGE, 'last'],
  [{ host: 'few.example' }, A_PAGE, 'full'],
  [{ host: 'none.example' }, A_PAGE, 'last'],
  [{ state: 'failed' }, A_PAGE, 'full'],
  [{ state: 'failed', projectId: 'p-many' }, A_PAGE, 'full'],
  [{ state: 'failed', projectId: 'p-few' }, A_PAGE, 'last'],
  [{ state: 'failed', host: 'many.example' }, A_PAGE, 'full'],
  [{ state: 'cancelled' }, A_PAGE, 'last'],
  [{ state: 'pending' }, A_PAGE + FILLERS, 'full'],
  [{ reason: 'rejected' }, 2 * A_PAGE, 'full'],
  [{ since: Date.now() - 6.5 * DAY_MS, until: Date.now() - 5.5 * DAY_MS }, A_PAGE, 'full'],
  [{ state: 'delivered', until: Date.now() - 2 * DAY_MS }, 2 * A_PAGE, 'full'],
  [{ app: 'app-none' }, A_SEARCH, 'searching'],
  [{ host: 'many.example', projectId: 'p-none' }, A_SEARCH, 'searching'],
  [{ state: 'pending', projectId: 'p-none' }, A_SEARCH, 'searching'],
  [{ status: { from: 404, to: 404 } }, A_SEARCH, 'searching'],
  [{ state: 'delivered' }, SEARCH_WITH_LOOKUPS, 'searching'],
  [{ projectId: 'p-many', status: { from: 204, to: 204 } }, SEARCH_WITH_LOOKUPS, 'searching'],
];

async function makeDays(database: Database, now: number): Promise<void> {
  for (let days = 0; days <= DAYS_BEFORE; days += 1) {
    const { start, suffix } = dayOf(now - days * DAY_MS);
    const range = `FROM ('${firstId(start)}') TO ('${firstId(start + DAY_MS)}')`;
    for (const table of PARTITIONED) {
      await database.query(
        `CREATE TABLE IF NOT EXISTS ${table}_${suffix} PARTITION OF ${table} FOR VALUES ${range}`,
      );
    }
  }
}

/** A connection tells what it read when it ends, so the store is closed and its connections are waited for. */
async function rowsRead(database: Database, work: (store: Store) => Promise<unknown>): Promise<number> {
  await database.query('SELECT pg_stat_reset()');
  const store = await openTestStore({ url: database.url, connections: 1 });
  await work(store);
  await store.close();
  await untilGone(database);
  const [row] = await database.query<{ read: number }>(
    `SELECT ((SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname ~ '^afterword_')
       + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname ~ '^afterword_'))::int AS read`,
  );
  return row!.read;
}

describe.each<[counted: string, before: string | undefined, after: string | undefined]>([
  ['never', undefined, undefined],
  ['while they were empty', 'VACUUM (ANALYZE)', undefined],
  ['while they were full', undefined, 'VACUUM (ANALYZE)'],
])('of tables that were counted %s', (_counted, before, after) => {
  it('a list reads what it needs', { timeout: 180_000 }, async () => {
    const database = await createDatabase();
    const now = Date.now();
    await rowsRead(database, () => makeDays(database, now));
    if (before !== undefined) await database.query(before);
    for (const sql of FILL) await database.query(sql, [now]);
    if (after !== undefined) await database.query(after);
    const atTheStart = await rowsRead(database, async () => {});

    for (const [filter, rows, page] of LISTS) {
      let listed: DeliveryList | undefined;
      const read = await rowsRead(database, async store => {
        listed = await store.ledger.list(filter, { limit: LIMIT });
      });
      const { deliveries, next } = listed!;
      const full = deliveries.length === LIMIT ? 'full' : 'searching';
      expect([filter, next === undefined ? 'last' : full]).toEqual([filter, page]);
      expect([filter, read - atTheStart]).toSatisfy(([, count]) => (count as number) <= rows);
    }
  });
});
