/** What is read of runs: one, a page of them, which of them have ended. */
import { RUN_STATES, STATES } from '../codes.ts';
import { type RunRow, runRecord } from '../run-rows.ts';
import type { RunFilter, RunPage, RunRecord, RunState } from '../runs.ts';
import type { Database, Statement } from './connection.ts';

/** One row at most, looked up by the run's id. */
const ITS = (columns: string, table: string) =>
  `LATERAL (SELECT ${columns} FROM ${table} WHERE id = r.id LIMIT 1)`;

/** Of what has neither a place in the queue nor an end, the rest is being pruned. */
const RECORDS = (runs: string) => `
  SELECT r.id, r.project, r.app, r.created_at, r.target,
    coalesce(e.starts, q.starts) AS starts,
    CASE WHEN e.id IS NULL THEN coalesce(q.begun_at, q.started_at) ELSE e.started_at END AS started_at,
    q.begun_at IS NOT NULL AS begun, coalesce(q.cancelled, false) AS cancelled,
    e.state, e.status, e.error, e.ended_at,
    CASE WHEN d.id IS NULL THEN s.state ELSE ${STATES.indexOf('pending')} END AS delivery_state,
    s.reason AS delivery_reason,
    (SELECT count(*)::int FROM afterword_attempts WHERE id = r.id) AS delivery_attempts
  FROM ${runs} r
  LEFT JOIN ${ITS('*', 'afterword_run_queue')} q ON true
  LEFT JOIN ${ITS('id, starts, started_at, state, status, error, ended_at', 'afterword_run_ends')} e ON true
  LEFT JOIN ${ITS('id', 'afterword_queue')} d ON true
  LEFT JOIN ${ITS('state, reason', 'afterword_settled')} s ON true
  WHERE q.id IS NOT NULL OR e.id IS NOT NULL`;

const FIND: Statement = {
  text: RECORDS('(SELECT * FROM afterword_runs WHERE id = $1::uuid AND coalesce(project = $2::text, true))'),
};

const LIVE: Statement = { text: 'SELECT id FROM afterword_run_queue WHERE id = ANY ($1::uuid[])' };

const OLDEST_QUEUED: Statement = { text: 'SELECT afterword_oldest_queued_run() AS at' };

const IN_QUEUE = (condition: string) => `afterword_run_queue WHERE ${condition}`;
const ENDED = (state: RunState) => `afterword_run_ends WHERE state = ${RUN_STATES.indexOf(state)}`;

/** Where runs of a state are found. */
const PLACES: Readonly<Record<RunState, readonly string[]>> = {
  queued: [IN_QUEUE('begun_at IS NULL AND NOT cancelled')],
  running: [IN_QUEUE('begun_at IS NOT NULL AND owner IS NOT NULL')],
  succeeded: [ENDED('succeeded')],
  failed: [ENDED('failed')],
  cancelled: [ENDED('cancelled'), IN_QUEUE('begun_at IS NULL AND cancelled')],
};

/** Its times are by the database's clock, as those of all records. */
export async function findRun(
  database: Database,
  projectId: string | undefined,
  runId: string,
): Promise<RunRecord | undefined> {
  const [row] = (await database.query<RunRow>(FIND, [runId, projectId ?? null])).rows;
  return row && runRecord(runId, row);
}

export async function listRuns(database: Database, filter: RunFilter, page: RunPage): Promise<RunRecord[]> {
  const { text, values } = listing(filter, page);
  const { rows } = await database.query<RunRow & { id: string }>({ text }, values);
  return rows.map(row => runRecord(row.id, row));
}

/** By the database's clock. */
export async function oldestQueuedAt(database: Database): Promise<number | undefined> {
  return (await database.query<{ at: number | null }>(OLDEST_QUEUED)).rows[0]!.at ?? undefined;
}

/** Those that have not ended. */
export async function liveRuns(database: Database, runIds: readonly string[]): Promise<string[]> {
  return (await database.query<{ id: string }>(LIVE, [runIds])).rows.map(({ id }) => id);
}

/** The newest are picked by an index first, and only those are looked at. */
function listing({ projectId, app, state }: RunFilter, { before, limit }: RunPage) {
  const conditions = [
    ['project =', 'text', projectId],
    ['app =', 'text', app],
    ['id <', 'uuid', before],
  ].filter(([, , value]) => value !== undefined);
  const narrowed = conditions
    .map(([comparison, type], i) => ` AND ${comparison} $${i + 2}::${type}`)
    .join('');
  const places = state === undefined ? ['afterword_runs WHERE true'] : PLACES[state];
  const picked = places.map(place => `(SELECT id FROM ${place}${narrowed} ORDER BY id DESC LIMIT $1::int)`);
  const text = `
    WITH picked AS (
      SELECT id FROM (${picked.join(' UNION ALL ')}) p ORDER BY id DESC LIMIT $1::int
    ) ${RECORDS(`(SELECT r.* FROM picked p JOIN afterword_runs r ON r.id = ANY (ARRAY[p.id]))`)}
    ORDER BY r.id DESC`;
  return { text, values: [limit, ...conditions.map(([, , value]) => value)] };
}
