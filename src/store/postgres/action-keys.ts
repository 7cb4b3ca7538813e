/**
 * Keys that come with redeliveries and jobs, so that the same can be asked for twice and is done once. Who comes
 * with a key waits until whoever else has it is done. It is written last: where nothing came of an action, its key
 * is still free.
 */
import { IDEMPOTENCY_MS, type Idempotency } from '../runs.ts';
import type { Database, Statement } from './connection.ts';
import { KEY_LOCK_CLASS } from './partitions.ts';

/** What a key came with, by its number in the table. */
const KINDS = ['redelivery', 'job'] as const;

export interface ActionKey extends Idempotency {
  readonly kind: (typeof KINDS)[number];
  /** Of all projects together where absent. */
  readonly projectId?: string;
  /** By the database's clock. */
  readonly at: number;
}

/** What was done by it. */
export interface Deed {
  /** The run or the job. */
  readonly subject: string;
  readonly round?: number;
}

const TURN: Statement = {
  text: `SELECT pg_advisory_xact_lock(${KEY_LOCK_CLASS}, hashtext(concat_ws('/', current_schema(), $1::int, $2::text, $3::text)))`,
};

const FIND: Statement = {
  text: `
    SELECT subject, round, fingerprint FROM afterword_action_keys
    WHERE kind = $1::int AND project = $2::text AND key = $3::text AND made_at > $4::float8 - ${IDEMPOTENCY_MS}`,
};

const WRITE: Statement = {
  text: `
    INSERT INTO afterword_action_keys (kind, project, key, made_at, subject, round, fingerprint)
    VALUES ($1::int, $2::text, $3::text, $4::float8, $5::text, $6::int, $7::bytea)
    ON CONFLICT (kind, project, key) DO UPDATE SET made_at = excluded.made_at, subject = excluded.subject,
      round = excluded.round, fingerprint = excluded.fingerprint`,
};

const PRUNE: Statement = {
  text: `
    DELETE FROM afterword_action_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM afterword_action_keys
      WHERE made_at <= extract(epoch FROM clock_timestamp()) * 1000 - ${IDEMPOTENCY_MS}
      ORDER BY made_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    ))`,
};

interface KeyRow {
  readonly subject: string;
  readonly round: number | null;
  readonly fingerprint: Buffer;
}

/** In a transaction. Undefined where the key is free, and until the transaction ends nobody else's. */
export async function takeKey(database: Database, key: ActionKey): Promise<Deed | 'conflict' | undefined> {
  const named = nameOf(key);
  await database.query(TURN, named);
  const [row] = (await database.query<KeyRow>(FIND, [...named, key.at])).rows;
  if (row === undefined) return undefined;
  if (!row.fingerprint.equals(key.fingerprint)) return 'conflict';
  return { subject: row.subject, ...(row.round !== null && { round: row.round }) };
}

export async function writeKey(database: Database, key: ActionKey, { subject, round }: Deed): Promise<void> {
  await database.query(WRITE, [...nameOf(key), key.at, subject, round, key.fingerprint]);
}

export async function pruneActionKeys(database: Database, limit: number): Promise<void> {
  await database.query(PRUNE, [limit]);
}

/** No project has an empty name. */
function nameOf({ kind, projectId = '', key }: ActionKey): unknown[] {
  return [KINDS.indexOf(kind), projectId, key];
}
