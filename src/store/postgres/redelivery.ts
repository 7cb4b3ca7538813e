/**
 * New rounds by hand: a delivery that has ended leaves those that have settled and goes back into the queue,
 * without an owner, in one transaction. A round to another target has that, and what is sealed anew for it, in
 * the queue alone: when it has ended, only the target is left of it.
 */
import { TRIGGERS } from '../codes.ts';
import type { OtherTarget, Redelivered, Redelivery } from '../ledger.ts';
import { type Keyring, seal, type Sealed, unseal } from '../seal.ts';
import { type ActionKey, takeKey, writeKey } from './action-keys.ts';
import type { Database, Statement } from './connection.ts';

const LOOK: Statement = {
  text: `
    SELECT d.key_id, d.sealed, q.id IS NOT NULL AS pending, coalesce(q.round, s.round) AS round
    FROM afterword_deliveries d
    LEFT JOIN afterword_queue q ON q.id = $1::uuid LEFT JOIN afterword_settled s ON s.id = $1::uuid
    WHERE d.id = $1::uuid AND ($2::text IS NULL OR d.project = $2::text)
      AND (q.id IS NOT NULL OR s.id IS NOT NULL)`,
};

/** With $4 to $6: to another target. */
const REDELIVER: Statement = {
  text: `
    WITH ended AS (
      DELETE FROM afterword_settled WHERE id = ANY ($1::uuid[]) AND ($2::text IS NULL OR project = $2::text)
      RETURNING id, round, last_status
    ), own AS MATERIALIZED (
      SELECT id, key_id, project, app, host, created_at FROM afterword_deliveries WHERE id = ANY ($1::uuid[])
    )
    INSERT INTO afterword_queue (id, round, attempts, cause, due_at, key_id, project, app, host, created_at,
      last_status, other_target, other_sealed)
    SELECT id, e.round + 1, 0, ${TRIGGERS.indexOf('manual')}, $3::float8,
      CASE WHEN $4::text IS NULL THEN key_id ELSE $5::text END, project, app, host, created_at,
      e.last_status, $4::text, $6::bytea
    FROM ended e JOIN own USING (id)
    RETURNING id, round`,
};

export interface Round {
  readonly runId: string;
  readonly round: number;
}

export interface NewRounds {
  readonly runIds: readonly string[];
  readonly projectId: string | undefined;
  /** When their first attempts are due, by the database's clock. */
  readonly at: number;
  readonly to?: { readonly target: string; readonly sealed: Sealed | undefined };
}

/** In a transaction. Those that have not ended are left as they are. */
export async function startRounds(database: Database, rounds: NewRounds): Promise<Round[]> {
  const { runIds, projectId, at, to } = rounds;
  const values = [runIds, projectId, at, to?.target, to?.sealed?.keyId, to?.sealed?.sealed];
  const { rows } = await database.query<{ id: string; round: number }>(REDELIVER, values);
  return rows.map(({ id, round }) => ({ runId: id, round }));
}

interface DeliveryRow {
  readonly key_id: string | null;
  readonly sealed: Uint8Array | null;
  readonly pending: boolean;
  readonly round: number;
}

/**
 * One redelivery. It may be tried several times, each in a transaction of its own, since the answer to the first
 * may have been lost: the round that it was to make tells whether it was made.
 */
export function redelivering(redelivery: Redelivery, keyring: Keyring) {
  const { runId, projectId, at, to, idempotency } = redelivery;
  const key: ActionKey | undefined = idempotency && {
    ...idempotency,
    kind: 'redelivery',
    ...(projectId !== undefined && { projectId }),
    at,
  };
  let made = Infinity;

  return async (database: Database): Promise<Redelivered> => {
    const taken = key && (await takeKey(database, key));
    if (taken === 'conflict' || (taken && taken.subject !== runId)) return { outcome: 'conflict' };
    if (taken) return { outcome: made === taken.round ? 'redelivered' : 'repeated', round: taken.round! };
    const [delivery] = (await database.query<DeliveryRow>(LOOK, [runId, projectId])).rows;
    if (delivery === undefined) return { outcome: 'not_found' };
    if (delivery.round >= made) return { outcome: 'redelivered', round: made };
    if (delivery.pending) return { outcome: 'pending' };
    const elsewhere = to && sealFor(to, delivery, runId, keyring);
    if (elsewhere === 'unreadable') return { outcome: 'unreadable' };
    const rounds = { runIds: [runId], projectId, at, ...(elsewhere && { to: elsewhere }) };
    const [round] = await startRounds(database, rounds);
    if (round === undefined) return { outcome: 'pending' }; // somebody else was faster
    made = round.round;
    if (key) await writeKey(database, key, { subject: runId, round: made });
    return { outcome: 'redelivered', round: made };
  };
}

/** The secret stays; the authorization was for the delivery's own target alone. */
function sealFor({ target, authorization }: OtherTarget, row: DeliveryRow, runId: string, keyring: Keyring) {
  const { key_id: keyId, sealed } = row;
  const own = keyId === null || sealed === null ? {} : unseal({ keyId, sealed }, runId, keyring);
  if (own === undefined) return 'unreadable';
  const { secret } = own;
  const confidential = { ...(secret && { secret }), ...(authorization !== undefined && { authorization }) };
  return { target, sealed: seal(confidential, runId, keyring) };
}
