/**
 * Attempts: counted in the queue before they are sent, recorded in rows of their own when they end. Both only
 * while this node holds the delivery. What has settled leaves the queue. A batch is one statement of each kind.
 */
import type { QueryResultRow } from 'pg';
import { REASONS, STATES } from '../codes.ts';
import { sizeOfAnswer } from '../rows.ts';
import type { AttemptResult, DeliveryRef, Next } from '../store.ts';
import { createBlobs } from './blobs.ts';
import type { Database, Statement } from './connection.ts';
import { type Columns, givenRows } from './given.ts';
import { type Hold, refOf } from './hold.ts';
import { CANCELLED, INTERRUPTED } from './cut-off.ts';

export interface Counting extends Hold {
  /** When the attempt began, by the database's clock; undefined: it is taken back. */
  readonly startedAt?: number;
}

/** Times are by the database's clock. */
export interface Ending extends Hold {
  readonly attempt: AttemptResult;
  readonly next: Next;
}

export interface AttemptOptions {
  readonly database: Database;
  /** This node's number. */
  readonly owner: () => number;
}

/**
 * The planner is to look up each by its id. A plain equality would let it read all of the queue for a join, and
 * without `IS TRUE` it would go by the owner, through all that it ever had since the last vacuum.
 */
const MINE = 'q.id = ANY (ARRAY[g.id]) AND (q.owner = $1::int AND q.claim = g.claim) IS TRUE';

const HELD: Columns = [
  ['id', 'uuid'],
  ['claim', 'int'],
];
const ENDED: Columns = [
  ...HELD,
  ['number', 'int'],
  ['started_at', 'float8'],
  ['queue_ms', 'float8'],
  ['dns_ms', 'float8'],
  ['connect_ms', 'float8'],
  ['tls_ms', 'float8'],
  ['first_byte_ms', 'float8'],
  ['total_ms', 'float8'],
  ['status', 'int'],
  ['error', 'text'],
  ['headers', 'text'],
  ['excerpt_start', 'int'],
  ['excerpt_length', 'int'],
  ['state', 'int'],
  ['reason', 'int'],
  ['due_at', 'float8'],
];

/** The attempt under way is known by its beginning, so counting it twice counts it once. */
const BEGIN: Statement = {
  name: 'afterword_begin',
  text: `
    UPDATE afterword_queue q
    SET attempts = q.attempts + CASE WHEN q.in_flight = g.started_at THEN 0 ELSE 1 END,
      in_flight = g.started_at
    FROM ${givenRows([...HELD, ['started_at', 'float8']], 2)}
    WHERE ${MINE} RETURNING g.id, g.claim`,
};

/** With $4, one that was taken back before counts as taken back. */
const WITHDRAW: Statement = {
  name: 'afterword_withdraw',
  text: `
    UPDATE afterword_queue q
    SET attempts = q.attempts - CASE WHEN q.in_flight IS NULL THEN 0 ELSE 1 END, in_flight = NULL
    FROM ${givenRows(HELD, 2)}
    WHERE ${MINE} AND (q.in_flight IS NOT NULL OR $4::bool) RETURNING g.id, g.claim`,
};

/** What the queue knows of a delivery and its attempts or its end are told with. */
const KEPT = 'q.round, q.cause, q.project, q.app, q.host, q.other_target';

const END: Statement = {
  name: 'afterword_end',
  text: `
    WITH given AS (
      SELECT * FROM ${givenRows(ENDED, 3)}
    ), again AS (
      UPDATE afterword_queue q SET in_flight = NULL, due_at = g.due_at, last_status = g.status
      FROM given g WHERE ${MINE} AND g.state = 0 RETURNING ${KEPT}, g.*
    ), settled AS (
      DELETE FROM afterword_queue q
      USING given g WHERE ${MINE} AND g.state <> 0 RETURNING ${KEPT}, g.*
    ), ended AS (
      SELECT * FROM again UNION ALL SELECT * FROM settled
    ), recorded AS (
      INSERT INTO afterword_attempts
        (id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms,
         status, error, target, headers, excerpt)
      SELECT id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
        total_ms, status, error, other_target, headers,
        substring($2::bytea FROM excerpt_start FOR excerpt_length)
      FROM ended ON CONFLICT DO NOTHING
    ), finished AS (
      INSERT INTO afterword_settled
        (id, state, reason, round, settled_at, project, app, host, last_status, other_target)
      SELECT id, state, reason, round, extract(epoch FROM clock_timestamp()) * 1000, project, app, host, status,
        other_target
      FROM settled
    )
    SELECT id, claim FROM ended`,
};

/** Which were written already; whoever took a delivery over, or cancelled it, has recorded the attempt, but not its end. */
const RECORDED: Statement = {
  text: `
    SELECT g.id, g.claim
    FROM unnest($1::uuid[], $2::int[], $3::int[], $4::float8[]) AS g (id, claim, number, started_at)
    CROSS JOIN LATERAL (
      SELECT FROM afterword_attempts
      WHERE id = g.id AND number = g.number AND started_at = g.started_at
        AND (error IN ('${INTERRUPTED}', '${CANCELLED}')) IS NOT TRUE LIMIT 1
    ) a`,
};

/** Each result: whether the delivery is this node's. */
export function countingRunner({ database, owner }: AttemptOptions) {
  async function begin(begun: readonly Counting[]): Promise<DeliveryRef[]> {
    if (begun.length === 0) return [];
    const started = begun.map(({ startedAt }) => startedAt);
    return refs(await database.query(BEGIN, [owner(), ...holds(begun), started]));
  }
  async function withdraw(withdrawn: readonly Counting[], replay: boolean): Promise<DeliveryRef[]> {
    if (withdrawn.length === 0) return [];
    return refs(await database.query(WITHDRAW, [owner(), ...holds(withdrawn), replay]));
  }
  return async (countings: readonly Counting[], replay: boolean): Promise<readonly boolean[]> => {
    const begun = countings.filter(({ startedAt }) => startedAt !== undefined);
    const withdrawn = countings.filter(({ startedAt }) => startedAt === undefined);
    const done = new Set([...(await begin(begun)), ...(await withdraw(withdrawn, replay))]);
    return countings.map(counting => done.has(refOf(counting)));
  };
}

/** Each result: whether it was written. */
export function endingRunner({ database, owner }: AttemptOptions) {
  async function recorded(endings: readonly Ending[]): Promise<DeliveryRef[]> {
    const numbers = endings.map(({ attempt }) => attempt.number);
    const started = endings.map(({ attempt }) => attempt.startedAt);
    return refs(await database.query(RECORDED, [...holds(endings), numbers, started]));
  }
  return async (endings: readonly Ending[], replay: boolean): Promise<readonly boolean[]> => {
    const done = new Set(replay ? await recorded(endings) : []);
    const open = endings.filter(ending => !done.has(refOf(ending)));
    if (open.length > 0) {
      for (const ref of refs(await database.query(END, [owner(), ...columns(open)]))) done.add(ref);
    }
    return endings.map(ending => done.has(refOf(ending)));
  };
}

export function sizeOfEnding({ attempt }: Ending): number {
  return sizeOfAnswer(attempt);
}

function columns(endings: readonly Ending[]): unknown[] {
  const blobs = createBlobs();
  const attempts = endings.map(({ attempt }) => attempt);
  const timings = attempts.map(attempt => attempt.timings);
  const excerpts = attempts.map(({ excerpt }) => blobs.add(excerpt));
  return [
    blobs.joined(),
    ...holds(endings),
    attempts.map(({ number }) => number),
    attempts.map(({ startedAt }) => startedAt),
    timings.map(({ queueMs }) => queueMs),
    timings.map(({ dnsMs }) => dnsMs),
    timings.map(({ connectMs }) => connectMs),
    timings.map(({ tlsMs }) => tlsMs),
    timings.map(({ firstByteMs }) => firstByteMs),
    timings.map(({ totalMs }) => totalMs),
    attempts.map(({ status }) => status),
    attempts.map(({ error }) => error),
    attempts.map(({ headers }) => headers),
    excerpts.map(({ start }) => start),
    excerpts.map(({ length }) => length),
    endings.map(({ next }) => STATES.indexOf(next.state)),
    endings.map(({ next }) => (next.state === 'failed' ? REASONS.indexOf(next.reason) : null)),
    endings.map(({ next }) => (next.state === 'pending' ? next.dueAt : null)),
  ];
}

function holds(held: readonly Hold[]): [ids: string[], claims: number[]] {
  return [held.map(({ id }) => id), held.map(({ claim }) => claim)];
}

function refs({ rows }: { rows: readonly QueryResultRow[] }): DeliveryRef[] {
  return rows.map(row => refOf(row as Hold));
}
