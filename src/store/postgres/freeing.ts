/**
 * Deliveries that lose their owner: because it is dead, or because it gives them up. They become claimable, and
 * where an attempt was under way, that is recorded as `interrupted` and stays counted, with one exception: a
 * round never ends on such an attempt, so where it was the last one, it is given back.
 */
import { ATTEMPTS_PER_ROUND } from '../store.ts';
import type { Database, Statement } from './connection.ts';

export const INTERRUPTED = 'interrupted';

const CHUNK = 1_000;

/**
 * The oldest delivery of an owner. Written as a range, and in the order of the index: an equality would let the
 * planner go through the whole queue by id, or from end to end, in the hope of meeting one soon.
 */
export const FIRST_OWNED_BY = (owner: string) =>
  `(SELECT id FROM afterword_queue WHERE owner >= ${owner} AND owner <= ${owner} ORDER BY owner, id LIMIT 1)`;

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
            ELSE extract(epoch FROM clock_timestamp()) * 1000 END
        WHERE id = ANY (ARRAY(SELECT id FROM left_behind)) RETURNING id
      ), recorded AS (
        INSERT INTO afterword_attempts (id, round, number, cause, started_at, queue_ms, total_ms, error)
        SELECT id, round, attempts, cause, in_flight, 0, 0, '${INTERRUPTED}' FROM left_behind
        WHERE in_flight IS NOT NULL ON CONFLICT DO NOTHING
      )
      SELECT count(*)::int AS freed FROM freed`,
  };
}

/**
 * Nodes whose last beat is older than $2 milliseconds are dead, but only for one that has itself been alive for
 * longer than that ($3): when the database was away, all get time to show that they live. One that closed with
 * deliveries left is dead at once.
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
      AND ${FIRST_OWNED_BY('afterword_nodes.id')} IS NOT NULL`,
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

/** Frees a chunk of what a dead node owns; 0 as well where it turns out not to be dead. */
export async function takeOver(
  database: Database,
  dead: DeadNode,
  { deadMs, me }: Takeover,
): Promise<number> {
  return freed(await database.query<{ freed: number }>(TAKE_OVER, [dead.id, deadMs, me]));
}

/** Frees a chunk of what `owner` owns. */
export async function giveUp(database: Database, owner: number): Promise<number> {
  return freed(await database.query<{ freed: number }>(GIVE_UP, [owner]));
}

function freed({ rows }: { rows: readonly { freed: number }[] }): number {
  return rows[0]!.freed;
}
