/**
 * Jobs, each a row that its owner moves on: a step gives a page of deliveries a new round and notes how far it
 * has come, in one transaction. So after the death of its owner it goes on where it was.
 */
import type { ClaimedJob, DeliveryFilter, Job, JobStep, NewJob } from '../ledger.ts';
import { type ActionKey, takeKey, writeKey } from './action-keys.ts';
import type { Database, Statement } from './connection.ts';
import { type Round, startRounds } from './redelivery.ts';

const COLUMNS = 'id, project, filter, created_at, total, seen, redelivered, before, ended_at, claim';

const INSERT: Statement = {
  text: `
    INSERT INTO afterword_jobs (id, project, filter, created_at, total)
    VALUES ($1::text, $2::text, $3::jsonb, $4::float8, $5::int) ON CONFLICT DO NOTHING`,
};

const FIND: Statement = {
  text: `
    SELECT ${COLUMNS} FROM afterword_jobs WHERE id = $1::text AND ($2::text IS NULL OR project = $2::text)`,
};

/** For an owner whom nobody knows any more it would never be freed. */
const CLAIM: Statement = {
  text: `
    UPDATE afterword_jobs SET owner = $1::int, claim = $2::int
    WHERE id = ANY (ARRAY(
      SELECT id FROM afterword_jobs
      WHERE ended_at IS NULL AND owner IS NULL AND EXISTS (SELECT FROM afterword_nodes WHERE id = $1::int)
      ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
    )) RETURNING ${COLUMNS}`,
};

const CLAIMED: Statement = {
  text: `SELECT ${COLUMNS} FROM afterword_jobs WHERE owner = $1::int AND claim = $2::int`,
};

const HOLD: Statement = {
  text: `
    SELECT ${COLUMNS} FROM afterword_jobs
    WHERE id = $1::text AND owner = $2::int AND claim = $3::int AND ended_at IS NULL FOR UPDATE`,
};

const STEP: Statement = {
  text: `
    UPDATE afterword_jobs SET seen = $2::int, redelivered = $3::int, before = $4::uuid, ended_at = $5::float8,
      owner = CASE WHEN $5::float8 IS NULL THEN owner END
    WHERE id = $1::text RETURNING ${COLUMNS}`,
};

const PRUNE: Statement = { text: 'DELETE FROM afterword_jobs WHERE ended_at < $1::float8' };

interface JobRow {
  readonly id: string;
  readonly project: string | null;
  readonly filter: DeliveryFilter;
  readonly created_at: number;
  readonly total: number;
  readonly seen: number;
  readonly redelivered: number;
  readonly before: string | null;
  readonly ended_at: number | null;
  readonly claim: number;
}

/** In a transaction, which may be repeated. `createdAt` is by the database's clock. */
export async function addJob(database: Database, job: NewJob): Promise<Job | 'conflict'> {
  const { id, projectId, filter, createdAt, total, idempotency } = job;
  const key: ActionKey | undefined = idempotency && {
    ...idempotency,
    kind: 'job',
    ...(projectId !== undefined && { projectId }),
    at: createdAt,
  };
  const taken = key && (await takeKey(database, key));
  if (taken === 'conflict') return 'conflict';
  const earlier = taken && (await findJob(database, taken.subject, projectId));
  if (earlier) return earlier;
  await database.query(INSERT, [id, projectId, JSON.stringify(filter), createdAt, total]);
  if (key) await writeKey(database, key, { subject: id });
  return (await findJob(database, id, projectId))!;
}

export async function findJob(
  database: Database,
  id: string,
  projectId: string | undefined,
): Promise<Job | undefined> {
  const [row] = (await database.query<JobRow>(FIND, [id, projectId])).rows;
  return row && jobOf(row);
}

/** A claim is known by its number among those of its owner. */
export async function claimJob(
  database: Database,
  owner: number,
  claim: number,
  replay: boolean,
): Promise<ClaimedJob | undefined> {
  const before = replay ? (await database.query<JobRow>(CLAIMED, [owner, claim])).rows : [];
  const [row] = before.length > 0 ? before : (await database.query<JobRow>(CLAIM, [owner, claim])).rows;
  return row && { ...jobOf(row), ref: refOf(row, owner), ...(row.before !== null && { before: row.before }) };
}

export interface Stepped {
  readonly job: Job;
  readonly rounds: readonly Round[];
}

/**
 * One step, by the database's clock. It may be tried several times, each in a transaction of its own: what the job
 * was to be like after it tells whether it was done.
 */
export function stepping(ref: string, { runIds, next, at }: JobStep) {
  const { id, owner, claim } = holdOf(ref);
  let done: (Stepped & { readonly row: JobRow }) | undefined;

  return async (database: Database): Promise<Stepped | undefined> => {
    const [now] = done ? (await database.query<JobRow>(FIND, [id, undefined])).rows : [];
    if (done && now && isSame(done.row, now)) return done;
    const [held] = (await database.query<JobRow>(HOLD, [id, owner, claim])).rows;
    if (held === undefined) return undefined;
    const projectId = held.project ?? undefined;
    const rounds = runIds.length === 0 ? [] : await startRounds(database, { runIds, projectId, at });
    const seen = held.seen + runIds.length;
    const values = [id, seen, held.redelivered + rounds.length, next, next === undefined ? at : null];
    const row = (await database.query<JobRow>(STEP, values)).rows[0]!;
    done = { job: jobOf(row), rounds, row };
    return done;
  };
}

function isSame(a: JobRow, b: JobRow): boolean {
  return a.seen === b.seen && a.before === b.before && a.ended_at === b.ended_at;
}

/** Those that ended before `before`, by the database's clock. */
export async function pruneJobs(database: Database, before: number): Promise<void> {
  await database.query(PRUNE, [before]);
}

function jobOf(row: JobRow): Job {
  return {
    id: row.id,
    ...(row.project !== null && { projectId: row.project }),
    filter: row.filter,
    createdAt: row.created_at,
    state: row.ended_at === null ? 'running' : 'done',
    total: row.total,
    seen: row.seen,
    redelivered: row.redelivered,
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
  };
}

const SEPARATOR = ':';

function refOf({ id, claim }: Pick<JobRow, 'id' | 'claim'>, owner: number): string {
  return [owner, claim, id].join(SEPARATOR);
}

function holdOf(ref: string): { owner: number; claim: number; id: string } {
  const [owner, claim, ...id] = ref.split(SEPARATOR);
  return { owner: Number(owner), claim: Number(claim), id: id.join(SEPARATOR) };
}
