/**
 * Deliveries, runs and jobs that lose their owner: because it is dead, or because it gives them up. They become
 * claimable. Where an attempt was under way, it is recorded as `interrupted` and stays counted, with one
 * exception: a round never ends on such an attempt, so where it was the last one, it is given back. The start of
 * a run stays counted in any case.
 */
import { ATTEMPTS_PER_ROUND } from '../store.ts';
import type { Database, Statement } from './connection.ts';
import { INTERRUPTED } from './cut-off.ts';

const CHUNK = 1_000;

/**
 * The oldest of an owner in a queue. Written as a range, and in the order of the index: an equality would let
 * the planner go through the whole queue by id, or from end to end, in the hope of meeting one soon.
 */
const FIRST_IN = (queue: string, owner: string) =>
  `(SELECT id FROM ${queue} WHERE owner >= ${owner} AND owner <= ${owner} ORDER BY owner, id LIMIT 1)`;

/** Whether an owner has anything. */
export const OWNS = (owner: string) =>
  `(coalesce(${FIRST_IN('afterword_queue', owner)}, ${FIRST_IN('afterword_run_queue', owner)}) IS NOT NULL
    OR EXISTS (SELECT FROM afterword_jobs j WHERE j.owner = ${owner}))`;

/** `owner` is a query for the id of the owner; without a row, nothing is done. */
function freeing(name: string, owner: string): Statement {
  return {
    name,
    text: `
      WITH owner AS (${owner}),
      left_behind AS (
        SELECT q.* FROM owner CROSS JOIN LATERAL afterword_owned(owner.id, ${CHUNK}) q
      ), freed AS (
        UPDATE afterword_queue
        SET owner = NULL, claim = 0, in_flight = NULL,
          attempts = CASE WHEN in_flight IS NULL THEN attempts
            ELSE least(attempts, ${ATTEMPTS_PER_ROUND - 1}) END,
          due_at = CASE WHEN in_flight IS NULL THEN due_at
            ELSE extract(epoch FROM clock_timestamp()) * 1000 END,
          last_status = CASE WHEN in_flight IS NULL THEN last_status END
        WHERE id = ANY (ARRAY(SELECT id FROM left_behind)) RETURNING id
      ), recorded AS (
        INSERT INTO afterword_attempts (id, round, number, cause, started_at, queue_ms, total_ms, error, target)
        SELECT id, round, attempts, cause, in_flight, 0, 0, '${INTERRUPTED}', other_target FROM left_behind
        WHERE in_flight IS NOT NULL ON CONFLICT DO NOTHING
      ), freed_runs AS (
        UPDATE afterword_run_queue
        SET owner = NULL, claim = 0, started_at = coalesce(begun_at, started_at), begun_at = NULL
        WHERE id = ANY (ARRAY(
          SELECT r.id FROM owner CROSS JOIN LATERAL afterword_owned_runs(owner.id, ${CHUNK}) r
        )) RETURNING id
      ), freed_jobs AS (
        UPDATE afterword_jobs SET owner = NULL
        WHERE owner IS NOT NULL AND owner = (SELECT id FROM owner) RETURNING id
      )
      SELECT (SELECT count(*)::int FROM freed) AS deliveries, (SELECT count(*)::int FROM freed_runs) AS runs,
        (SELECT count(*)::int FROM freed_jobs) AS jobs`,
  };
}

/**
 * Nodes whose last beat is older than $2 milliseconds are dead, but only for one that has itself been alive for
 * longer than that ($3): when the database was away, all get time to show that they live. One that closed with
 * something left is dead at once.
 */
const DEAD = `
  (beat_at = '-infinity' OR beat_at < clock_timestamp() - $2::float8 * interval '1 millisecond' AND EXISTS (
    SELECT FROM afterword_nodes me WHERE me.id = $3::int
      AND me.beat_at > clock_timestamp() - $2::float8 * interval '1 millisecond'
      AND me.since < clock_timestamp() - $2::float8 * interval '1 millisecond'))`;

/** The lock of the node's row makes it wait with its next beat, so that it does not come back meanwhile. */
const TAKE_OVER = freeing(
  'afterword_take_over',
  `SELECT id FROM afterword_nodes WHERE id = $1::int AND ${DEAD} FOR UPDATE SKIP LOCKED`,
);

const GIVE_UP = freeing('afterword_give_up', 'SELECT $1::int AS id');

const DEAD_OWNERS: Statement = {
  name: 'afterword_dead_owners',
  text: `
    SELECT id, name FROM afterword_nodes WHERE id <> $1::int AND ${DEAD}
      AND ${OWNS('afterword_nodes.id')}`,
};

export interface DeadNode {
  readonly id: number;
  readonly name: string;
}

export interface Takeover {
  /** The age of a last beat that means death. */
  readonly deadMs: number;
  readonly me: number;
}

/** The dead who still own something. */
export async function findDead(database: Database, { deadMs, me }: Takeover): Promise<DeadNode[]> {
  return (await database.query<DeadNode>(DEAD_OWNERS, [me, deadMs, me])).rows;
}

/** How many lost their owner. */
export interface Freed {
  readonly deliveries: number;
  readonly runs: number;
  readonly jobs: number;
}

export const totalOf = ({ deliveries, runs, jobs }: Freed) => deliveries + runs + jobs;

/** Frees a chunk of what a dead node owns; none as well where it turns out not to be dead. */
export async function takeOver(database: Database, dead: DeadNode, { deadMs, me }: Takeover): Promise<Freed> {
  return (await database.query<Freed>(TAKE_OVER, [dead.id, deadMs, me])).rows[0]!;
}

/** Frees a chunk of what `owner` owns. */
export async function giveUp(database: Database, owner: number): Promise<Freed> {
  return (await database.query<Freed>(GIVE_UP, [owner])).rows[0]!;
}

/** Repeats `free` until there are no more. */
export async function freeAll(free: () => Promise<Freed>): Promise<Freed> {
  let total: Freed = { deliveries: 0, runs: 0, jobs: 0 };
  for (;;) {
    const freed = await free();
    if (totalOf(freed) === 0) return total;
    total = {
      deliveries: total.deliveries + freed.deliveries,
      runs: total.runs + freed.runs,
      jobs: total.jobs + freed.jobs,
    };
  }
}
