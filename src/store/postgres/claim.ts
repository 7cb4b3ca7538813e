/**
 * Takes unowned deliveries, the oldest first, that no other node takes at this moment and whose secrets this
 * node has the key for: while the keys are being changed, another node may have it.
 */
import { TRIGGERS } from '../codes.ts';
import { type Keyring, unseal } from '../seal.ts';
import type { Confidential, PendingDelivery } from '../store.ts';
import type { Database, Statement } from './connection.ts';
import { refOf } from './hold.ts';
import type { Times } from './times.ts';

const QUEUED =
  'id, project, app, round, attempts, cause, due_at, created_at, key_id, other_target, other_sealed';

const TAKE: Statement = {
  name: 'afterword_claim',
  text: `
    UPDATE afterword_queue SET owner = $2::int, claim = $3::int
    WHERE id = ANY (ARRAY(SELECT id FROM afterword_unowned($1::text[], $4::int))) -- which are locked
    RETURNING ${QUEUED}`,
};

const TAKEN: Statement = {
  name: 'afterword_claimed',
  text: `SELECT ${QUEUED} FROM afterword_queue WHERE owner = $1::int AND claim = $2::int`,
};

const DETAILS: Statement = {
  text: 'SELECT id, target, traceparent, sealed FROM afterword_deliveries WHERE id = ANY ($1::uuid[])',
};

export interface ClaimOptions {
  readonly database: Database;
  readonly keyring: Keyring;
  readonly owner: () => number;
  readonly times: Times;
}

export interface Claim {
  /** Of this node's claims. */
  readonly number: number;
  readonly limit: number;
}

export interface Claimed {
  readonly deliveries: PendingDelivery[];
  readonly unreadable: Unreadable[];
}

/** One that can never be sent: what is sealed cannot be opened although the key is there, or is gone. */
export type Unreadable = Pick<PendingDelivery, 'ref' | 'runId' | 'attempts'>;

interface QueueRow {
  readonly id: string;
  readonly project: string;
  readonly app: string;
  readonly round: number;
  readonly attempts: number;
  readonly cause: number;
  readonly due_at: number;
  readonly created_at: number;
  /** Of what is sealed for where this round goes. */
  readonly key_id: string | null;
  readonly other_target: string | null;
  readonly other_sealed: Uint8Array | null;
}

interface DetailRow {
  readonly id: string;
  readonly target: string;
  readonly traceparent: string | null;
  readonly sealed: Uint8Array | null;
}

export function claimer({ database, keyring, owner, times }: ClaimOptions) {
  const known = [...keyring.keys.keys()];

  async function take({ number, limit }: Claim, replay: boolean): Promise<QueueRow[]> {
    const before = replay ? (await database.query<QueueRow>(TAKEN, [owner(), number])).rows : [];
    if (before.length > 0) return before;
    return (await database.query<QueueRow>(TAKE, [known, owner(), number, limit])).rows;
  }

  return async (claim: Claim, replay: boolean): Promise<Claimed> => {
    const rows = await take(claim, replay);
    const claimed: Claimed = { deliveries: [], unreadable: [] };
    if (rows.length === 0) return claimed;
    const details = await database.query<DetailRow>(DETAILS, [rows.map(({ id }) => id)]);
    const detailsOf = new Map(details.rows.map(row => [row.id, row]));
    for (const row of rows.sort((a, b) => (a.id < b.id ? -1 : 1))) {
      const held = { ref: refOf({ id: row.id, claim: claim.number }), runId: row.id, attempts: row.attempts };
      const detail = detailsOf.get(row.id);
      const confidential = detail && open(row, detail, keyring);
      if (confidential === undefined) claimed.unreadable.push(held);
      else claimed.deliveries.push({ ...held, ...pending(row, detail!, times), confidential });
    }
    return claimed;
  };
}

function open(row: QueueRow, detail: DetailRow, keyring: Keyring): Confidential | undefined {
  const { id, key_id: keyId } = row;
  const sealed = row.other_target === null ? detail.sealed : row.other_sealed;
  return keyId === null || sealed === null ? {} : unseal({ keyId, sealed }, id, keyring);
}

type Rest = Omit<PendingDelivery, keyof Unreadable | 'confidential'>;

function pending(row: QueueRow, detail: DetailRow, times: Times): Rest {
  return {
    projectId: row.project,
    app: row.app,
    target: row.other_target ?? detail.target,
    createdAt: times.toNode(row.created_at),
    ...(detail.traceparent !== null && { traceparent: detail.traceparent }),
    round: row.round,
    trigger: TRIGGERS[row.cause]!,
    dueAt: times.toNode(row.due_at),
  };
}
