/**
 * Takes runs without an owner that no other node takes at this moment and whose headers this node has the key
 * for. How many there may be of an app is counted where they are taken, in afterword_claim_runs.
 */
import { type Keyring, unseal, unsealHeaders } from '../seal.ts';
import type { ClaimedRun, RunWebhook, WantedRuns } from '../runs.ts';
import type { Confidential } from '../store.ts';
import type { Database, Statement } from './connection.ts';
import { firstId } from './partitions.ts';
import { runRefOf } from './run-hold.ts';
import { DETAILED } from './run-tables.ts';
import type { Times } from './times.ts';

const TAKE: Statement = {
  name: 'afterword_claim_runs',
  text: `
    SELECT * FROM afterword_claim_runs($1::int, $2::int, $3::text[], $4::text[], $5::text[], $6::int[],
      $7::bool[])`,
};

const TAKE_STRAYS: Statement = {
  text: `
    WITH taken AS (
      UPDATE afterword_run_queue SET owner = $1::int, claim = $2::int
      WHERE id = ANY (ARRAY(
        SELECT id FROM afterword_stray_runs($3::text[], $4::text[], $5::text[], $6::uuid, $7::int)
      )) RETURNING *
    ) ${DETAILED('taken')}`,
};

const TAKEN: Statement = {
  text: `${DETAILED('afterword_run_queue')} WHERE q.owner = $1::int AND q.claim = $2::int`,
};

export interface RunClaimOptions {
  readonly database: Database;
  readonly keyring: Keyring;
  readonly owner: () => number;
  readonly times: Times;
}

export type RunClaim =
  | { readonly wanted: readonly WantedRuns[] }
  | {
      /** Strays are those of other apps. */
      readonly known: readonly Pick<WantedRuns, 'projectId' | 'app'>[];
      readonly before: number;
      readonly limit: number;
    };

interface RunRow {
  readonly id: string;
  readonly project: string;
  readonly app: string;
  readonly starts: number;
  readonly cancelled: boolean;
  readonly method: string;
  readonly path: string;
  readonly query: string | null;
  readonly target: string | null;
  readonly created_at: number;
  readonly key_id: string;
  readonly headers: Uint8Array;
  readonly sealed: Uint8Array | null;
}

/** `number` is that of the claim among this node's. */
export function runClaimer({ database, keyring, owner, times }: RunClaimOptions) {
  const keys = [...keyring.keys.keys()];

  async function take(claim: RunClaim, me: number, number: number): Promise<RunRow[]> {
    const apps = 'wanted' in claim ? claim.wanted : claim.known;
    const values = [me, number, keys, apps.map(({ projectId }) => projectId), apps.map(({ app }) => app)];
    if ('known' in claim) {
      const before = firstId(Math.floor(claim.before));
      return (await database.query<RunRow>(TAKE_STRAYS, [...values, before, claim.limit])).rows;
    }
    const limits = claim.wanted.map(({ limit }) => limit);
    const each = claim.wanted.map(wanted => wanted.each);
    return (await database.query<RunRow>(TAKE, [...values, limits, each])).rows;
  }

  return async (claim: RunClaim, number: number, replay: boolean): Promise<ClaimedRun[]> => {
    const me = owner();
    const before = replay ? (await database.query<RunRow>(TAKEN, [me, number])).rows : [];
    const rows = before.length > 0 ? before : await take(claim, me, number);
    return rows
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(row => ({
        ref: runRefOf({ id: row.id, owner: me, claim: number }),
        ...claimed(row, times),
        ...opened(row, keyring),
      }));
  };
}

function claimed(row: RunRow, times: Times) {
  return {
    runId: row.id,
    projectId: row.project,
    app: row.app,
    method: row.method,
    path: row.path,
    ...(row.query !== null && { query: row.query }),
    createdAt: times.toNode(row.created_at),
    starts: row.starts,
    cancelled: row.cancelled,
  };
}

function opened(row: RunRow, keyring: Keyring): Pick<ClaimedRun, 'headers' | 'webhook' | 'unreadable'> {
  const { id, key_id: keyId, sealed, target } = row;
  const headers = unsealHeaders({ keyId, sealed: row.headers }, id, keyring);
  const confidential = sealed === null ? {} : unseal({ keyId, sealed }, id, keyring);
  if (headers === undefined || confidential === undefined) {
    return { headers: [], ...webhookOf(target, {}), unreadable: true };
  }
  return { headers, ...webhookOf(target, confidential), unreadable: false };
}

function webhookOf(target: string | null, confidential: Confidential): { webhook?: RunWebhook } {
  return target === null ? {} : { webhook: { target, confidential } };
}
