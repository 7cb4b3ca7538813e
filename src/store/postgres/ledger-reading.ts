/** What is read of deliveries for people: pages of them, what there is to tell of some, how many are pending. */
import { STATES } from '../codes.ts';
import type {
  DeliveryFilter,
  DeliveryList,
  DeliverySummary,
  LedgerPage,
  PendingOf,
  RunIdList,
} from '../ledger.ts';
import { deliverySummary, type SummaryRow } from '../rows.ts';
import { READING } from './by-index.ts';
import type { Database, DatabasePool, Statement } from './connection.ts';
import { type Query, rangesOf, type Scan, scansOf } from './ledger-listing.ts';

/** Each table once and by the ids: so only the days' tables are opened in which they are. */
const SUMMARIES: Statement = {
  text: `
    WITH d AS MATERIALIZED (
      SELECT id, project, app, target, status, created_at FROM afterword_deliveries WHERE id = ANY ($1::uuid[])
    ), q AS MATERIALIZED (
      SELECT id, due_at, round, other_target FROM afterword_queue WHERE id = ANY ($1::uuid[])
    ), s AS MATERIALIZED (
      SELECT id, state, reason, round, settled_at, other_target FROM afterword_settled
      WHERE id = ANY ($1::uuid[])
    ), a AS MATERIALIZED (
      SELECT DISTINCT ON (id) id, status, error, count(*) OVER (PARTITION BY id)::int AS count
      FROM afterword_attempts WHERE id = ANY ($1::uuid[])
      ORDER BY id, round DESC, number DESC, started_at DESC
    )
    SELECT d.*, q.due_at, coalesce(s.state, ${STATES.indexOf('pending')}) AS state, s.reason,
      coalesce(s.round, q.round) AS round, s.settled_at,
      coalesce(s.other_target, q.other_target) AS other_target,
      coalesce(a.count, 0) AS attempts, a.status AS last_status, a.error AS last_error
    FROM d LEFT JOIN q ON q.id = d.id LEFT JOIN s ON s.id = d.id LEFT JOIN a ON a.id = d.id
    WHERE q.id IS NOT NULL OR s.id IS NOT NULL`,
};

const PENDING_OF: Statement = {
  text: `
    SELECT count(*)::int AS pending, min(created_at) AS oldest FROM afterword_queue
    WHERE $1::text IS NULL OR project = $1::text`,
};

export async function listDeliveries(
  database: DatabasePool,
  filter: DeliveryFilter,
  page: LedgerPage,
  now: number,
): Promise<DeliveryList> {
  return database.transaction(READING, async reader => {
    const { runIds, ...next } = await pageOf(reader, filter, page, now);
    const byId = new Map((await summariesOf(reader, runIds)).map(summary => [summary.runId, summary]));
    return { deliveries: runIds.flatMap(runId => byId.get(runId) ?? []), ...next };
  });
}

export async function listRunIds(
  database: DatabasePool,
  filter: DeliveryFilter,
  page: LedgerPage,
  now: number,
): Promise<RunIdList> {
  return database.transaction(READING, reader => pageOf(reader, filter, page, now));
}

export async function readSummaries(
  database: DatabasePool,
  runIds: readonly string[],
): Promise<DeliverySummary[]> {
  return database.transaction(READING, reader => summariesOf(reader, runIds));
}

export async function countPendingOf(database: Database, projectId: string | undefined): Promise<PendingOf> {
  const { rows } = await database.query<{ pending: number; oldest: number | null }>(PENDING_OF, [projectId]);
  const { pending, oldest } = rows[0]!;
  return { pending, ...(oldest !== null && { oldestAt: oldest }) };
}

async function summariesOf(database: Database, runIds: readonly string[]): Promise<DeliverySummary[]> {
  if (runIds.length === 0) return [];
  const { rows } = await database.query<SummaryRow & { id: string }>(SUMMARIES, [runIds]);
  return rows.map(row => deliverySummary(row.id, row));
}

async function pageOf(
  database: Database,
  filter: DeliveryFilter,
  { before, limit }: LedgerPage,
  now: number,
): Promise<RunIdList> {
  const runIds: string[] = [];
  for (const range of rangesOf(filter, before, now)) {
    const found = await searchRange(database, scansOf(filter, range, limit - runIds.length));
    runIds.push(...found.runIds);
    if (runIds.length > limit) return { runIds: runIds.slice(0, limit), next: runIds[limit - 1]! };
    if (found.end !== undefined) return { runIds, next: found.end };
  }
  return { runIds };
}

interface Found {
  /** Newest first. */
  readonly runIds: readonly string[];
  /** Of what is older, nothing is known. */
  readonly end?: string;
}

/** Of what several scans find, only that is told which is not older than where the first of them stopped. */
async function searchRange(database: Database, scans: readonly Scan[]): Promise<Found> {
  const found: Found[] = [];
  for (const scan of scans) found.push(await runScan(database, scan));
  const end = found
    .flatMap(each => each.end ?? [])
    .sort()
    .at(-1);
  const runIds = found
    .flatMap(each => each.runIds)
    .sort()
    .reverse();
  if (end === undefined) return { runIds };
  return { runIds: runIds.filter(runId => runId >= end), end };
}

async function runScan(database: Database, { page, end, limit }: Scan): Promise<Found> {
  const runIds = await idsOf(database, page);
  if (runIds.length > limit) return { runIds, end: runIds.at(-1)! };
  const [last] = await idsOf(database, end);
  return { runIds, ...(last !== undefined && { end: last }) };
}

async function idsOf(database: Database, { text, values }: Query): Promise<string[]> {
  return (await database.query<{ id: string }>({ text }, values)).rows.map(({ id }) => id);
}
