/**
 * Writes new deliveries, a batch in one statement: what came in, and its place in the queue. One that is there
 * already is left as it is.
 */
import { hostOf } from '../ledger.ts';
import { type Keyring, type Sealed, seal } from '../seal.ts';
import type { NewDelivery } from '../store.ts';
import { createBlobs } from './blobs.ts';
import type { Database, Statement } from './connection.ts';
import { sqlState, UNIQUE_VIOLATION } from './faults.ts';
import { inRow } from './parts.ts';
import type { Times } from './times.ts';

export interface Insertion
  extends Pick<NewDelivery, 'projectId' | 'app' | 'target' | 'statusCode' | 'traceparent' | 'owned'> {
  /** The run id. */
  readonly id: string;
  /** By the database's clock. */
  readonly createdAt: number;
  readonly begunAt?: number;
  readonly sealed?: Sealed;
  /** Its bytes, or the size of what was stored in parts. */
  readonly body: Uint8Array | number;
}

/** A body that is a file is in parts already. */
export function insertionOf(delivery: NewDelivery, keyring: Keyring, times: Times): Insertion {
  const { runId, body, confidential, createdAt, begunAt, ...rest } = delivery;
  const sealed = seal(confidential, runId, keyring);
  return {
    ...rest,
    id: runId,
    createdAt: times.toDatabase(createdAt),
    ...(begunAt !== undefined && { begunAt: times.toDatabase(begunAt) }),
    ...(sealed && { sealed }),
    body: inRow(body),
  };
}

export interface InsertOptions {
  readonly database: Database;
  /** This node's number; undefined while it cannot be sure that it owns what it owns. */
  readonly owner: () => number | undefined;
  /** Some were left without an owner. */
  readonly onUnowned: () => void;
}

/** The rows of a batch, numbered by their `place`; $2 has their bytes. */
export const GIVEN = `
  SELECT * FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::int[], $8::float8[],
    $9::text[], $10::int[], $11::int[], $12::int[], $13::int[], $14::bigint[], $15::bool[], $16::float8[],
    $17::text[], $18::text[])
  WITH ORDINALITY AS g (id, project, app, target, status, created_at, key_id, sealed_start, sealed_length,
    body_start, body_length, body_size, owned, begun_at, host, traceparent, place)`;

/** How many parameters that are, with the owner and the bytes. */
export const GIVEN_PARAMETERS = 18;

/** Of rows as given. */
export const DELIVERIES = (given: string) => `
  INSERT INTO afterword_deliveries
    (id, project, app, target, host, status, created_at, traceparent, key_id, sealed, body_size, body)
  SELECT id, project, app, target, host, status, created_at, traceparent, key_id,
    substring($2::bytea FROM sealed_start FOR sealed_length), body_size,
    substring($2::bytea FROM body_start FOR body_length)
  FROM ${given}`;

/**
 * An owner that has been taken for dead so long ago that its row is gone owns nothing any more; an attempt can
 * be counted only for an owner.
 */
export const QUEUED = (given: string) => `
  INSERT INTO afterword_queue (id, owner, round, attempts, cause, due_at, in_flight, key_id, project, app, host,
    created_at)
  SELECT g.id, owner.id, 1, CASE WHEN begun.at IS NULL THEN 0 ELSE 1 END, 0, g.created_at, begun.at,
    g.key_id, g.project, g.app, g.host, g.created_at
  FROM ${given} g
  CROSS JOIN (SELECT (SELECT id FROM afterword_nodes WHERE id = $1::int) AS id) me
  CROSS JOIN LATERAL (SELECT CASE WHEN g.owned THEN me.id END AS id) owner
  CROSS JOIN LATERAL (SELECT CASE WHEN owner.id IS NOT NULL THEN g.begun_at END AS at) begun`;

const INSERT: Statement = {
  name: 'afterword_insert',
  text: `WITH given AS (${GIVEN}), stored AS (${DELIVERIES('given')}) ${QUEUED('given')}`,
};

const PRESENT: Statement = { text: 'SELECT id FROM afterword_deliveries WHERE id = ANY($1::uuid[])' };

export function sizeOfInsertion({ body, sealed }: Insertion): number {
  return (typeof body === 'number' ? 0 : body.byteLength) + (sealed?.sealed.byteLength ?? 0);
}

export function insertRunner({ database, owner, onUnowned }: InsertOptions) {
  async function insert(insertions: readonly Insertion[]): Promise<void> {
    const me = owner();
    await database.query(INSERT, givenValues(me, insertions));
    if (leavesUnowned(me, insertions)) onUnowned();
  }

  async function insertAbsent(insertions: readonly Insertion[]): Promise<void> {
    const absent = new Map(insertions.map(insertion => [insertion.id, insertion]));
    const { rows } = await database.query<{ id: string }>(PRESENT, [[...absent.keys()]]);
    for (const { id } of rows) absent.delete(id);
    if (absent.size > 0) await insert([...absent.values()]);
  }

  return async (insertions: readonly Insertion[], replay: boolean): Promise<readonly string[]> => {
    if (replay) {
      await insertAbsent(insertions);
    } else {
      await insert(insertions).catch((error: unknown) => {
        if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
        return insertAbsent(insertions);
      });
    }
    return insertions.map(({ id }) => id);
  };
}

export function leavesUnowned(owner: number | undefined, insertions: readonly Insertion[]): boolean {
  return insertions.length > 0 && (owner === undefined || insertions.some(({ owned }) => !owned));
}

/** The parameters of `GIVEN`, and the owner before them. */
export function givenValues(owner: number | undefined, insertions: readonly Insertion[]): unknown[] {
  const blobs = createBlobs();
  const sealed = insertions.map(insertion => blobs.add(insertion.sealed?.sealed));
  const bodies = insertions.map(({ body }) => blobs.add(typeof body === 'number' ? undefined : body));
  return [
    owner,
    blobs.joined(),
    insertions.map(({ id }) => id),
    insertions.map(({ projectId }) => projectId),
    insertions.map(({ app }) => app),
    insertions.map(({ target }) => target),
    insertions.map(({ statusCode }) => statusCode),
    insertions.map(({ createdAt }) => createdAt),
    insertions.map(insertion => insertion.sealed?.keyId),
    sealed.map(({ start }) => start),
    sealed.map(({ length }) => length),
    bodies.map(({ start }) => start),
    bodies.map(({ length }) => length),
    insertions.map(({ body }) => (typeof body === 'number' ? body : null)),
    insertions.map(({ owned }) => owned),
    insertions.map(({ begunAt }) => begunAt),
    insertions.map(({ target }) => hostOf(target)),
    insertions.map(({ traceparent }) => traceparent),
  ];
}
