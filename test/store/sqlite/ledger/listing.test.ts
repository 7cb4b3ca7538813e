/** What a list costs does not depend on how many deliveries there are, whatever it asks for. */
import { expect, it } from 'vitest';
import type { DeliveryFilter } from '../../../../src/store/ledger.ts';
import { CATALOGUE_CHUNK } from '../../../../src/store/sqlite/catalogue.ts';
import { MOST_ROWS } from '../../../../src/store/sqlite/ledger/listing.ts';
import { type ManyRows, openMany } from './many-rows.ts';

const COUNT = 200_000;
const LIMIT = 50;
/** Those that the catalogue has not yet, twice, and a few. */
const FEW_ROWS = 4 * CATALOGUE_CHUNK + 4_000;
const STATUS_503 = { status: { from: 503, to: 503 } };

/** What an index finds by itself: in one page, with few rows beside those that are told. */
const BY_INDEX: DeliveryFilter[] = [
  {},
  { projectId: 'p-1' },
  { projectId: 'p-none' },
  { projectId: 'p-rare' },
  { projectId: 'p-rare', app: 'rare' },
  { projectId: 'p-rare', app: 'rare', host: 'rare.example', state: 'delivered' },
  { projectId: 'p-rare', state: 'delivered' },
  { host: 'rare.example' },
  { host: 'rare.example', projectId: 'p-rare' },
  { state: 'delivered' },
  { state: 'pending' },
  { state: 'pending', projectId: 'p-1' },
  { state: 'failed' },
  { state: 'failed', projectId: 'p-rare' },
  { state: 'failed', host: 'rare.example', projectId: 'p-rare' },
  { state: 'cancelled' },
  { state: 'cancelled', app: 'rare' },
  { reason: 'rejected', app: 'rare' },
  { reason: 'exhausted' },
  { state: 'delivered', ...STATUS_503 },
  STATUS_503,
  { ...STATUS_503, app: 'rare' },
  { ...STATUS_503, projectId: 'p-0', host: 'host-1.example' },
];

/** What has to be looked for among the rows of an index: page by page, each of them bounded. */
const BY_LOOKING: DeliveryFilter[] = [
  { app: 'rare' },
  { app: 'none', status: { from: 200, to: 299 } },
  { host: 'host-1.example', projectId: 'p-1', app: 'app-3', status: { from: 204, to: 204 } },
  { projectId: 'p-1', status: { from: 100, to: 199.5 }, state: 'delivered' },
  { status: { from: 204, to: 503 }, projectId: 'p-0' },
];

function everyPage(many: ManyRows, filter: DeliveryFilter) {
  const runIds: string[] = [];
  const looked: number[] = [];
  let before: string | undefined;
  do {
    const page = many.list(filter, { limit: LIMIT, ...(before !== undefined && { before }) });
    runIds.push(...page.runIds);
    looked.push(many.looked());
    before = page.next;
  } while (before !== undefined && runIds.length < 5 * LIMIT);
  return { runIds, looked };
}

/** The same without any index but that of the keys. */
function expected({ db }: ManyRows, filter: DeliveryFilter): number {
  const { projectId = null, app = null, host = null, state = null, reason = null, status } = filter;
  const codes = { pending: 0, delivered: 1, failed: 2, cancelled: 3 };
  const reasons = { exhausted: 0, rejected: 1, blocked: 2 };
  const { count } = db
    .prepare(
      `SELECT count(*) AS count FROM deliveries NOT INDEXED WHERE project = coalesce(?, project)
         AND app = coalesce(?, app) AND host = coalesce(?, host) AND state = coalesce(?, state)
         AND coalesce(reason, -1) = coalesce(?, reason, -1)
         AND (? IS NULL OR last_status BETWEEN ? AND ?)`,
    )
    .get(
      projectId,
      app,
      host,
      state && codes[state],
      reason && reasons[reason],
      status?.from ?? null,
      status?.from ?? null,
      status?.to ?? null,
    ) as { count: number };
  return count;
}

it('reads a bounded number of rows for a page', { timeout: 60_000 }, () => {
  const many = openMany(COUNT);
  for (const filter of BY_INDEX) {
    const { runIds, looked } = everyPage(many, filter);
    expect([filter, runIds.length]).toEqual([filter, Math.min(expected(many, filter), 5 * LIMIT)]);
    expect([filter, Math.max(...looked) <= FEW_ROWS]).toEqual([filter, true]);
  }
  for (const filter of BY_LOOKING) {
    const { runIds, looked } = everyPage(many, filter);
    expect([filter, runIds.length]).toEqual([filter, Math.min(expected(many, filter), 5 * LIMIT)]);
    expect([filter, Math.max(...looked) <= 5 * MOST_ROWS]).toEqual([filter, true]);
  }
  // What is counted is counted: one that had to look at everything did.
  expect(everyPage(many, { app: 'rare' }).looked.reduce((sum, each) => sum + each)).toBeGreaterThan(COUNT);
});
