/**
 * Who sends what: `recover` frees the deliveries of owners that are gone, `release` those of the present one,
 * and with them their runs and jobs; `claim` takes free deliveries.
 *
 * An attempt that was under way when its owner went is recorded as `interrupted` and stays counted, with one
 * exception: a round never ends on such an attempt, so where it was the last one, it is given back.
 */
import type { DatabaseSync } from 'node:sqlite';
import { type Keyring, unseal } from '../seal.ts';
import { ATTEMPTS_PER_ROUND, type Confidential, type PendingDelivery } from '../store.ts';
import type { RecordAttempt } from './attempts.ts';
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import { formatRunId } from './key.ts';
import { jobFreeing } from './ledger/job-freeing.ts';
import type { Handlers } from './protocol.ts';
import { formatDeliveryRef } from './ref.ts';
import { runFreeing } from './runs/freeing.ts';

/** Of an attempt that nobody knows more of. */
export const NO_TIME = { queueMs: 0, totalMs: 0 };

interface OwnershipOptions {
  readonly db: DatabaseSync;
  readonly keyring: Keyring;
  readonly record: RecordAttempt;
}

interface OwnedRow {
  readonly id: number;
  readonly round: number;
  readonly attempts: number;
  readonly cause: number;
  readonly in_flight: number | null;
}

interface ClaimRow extends Omit<OwnedRow, 'in_flight'> {
  readonly project: string;
  readonly due_at: number;
  readonly run_id: Uint8Array;
  readonly app: string;
  readonly target: string;
  readonly created_at: number;
  readonly traceparent: string | null;
  readonly key_id: string | null;
  readonly sealed: Uint8Array | null;
}

export function recoverHandler(options: OwnershipOptions): Handlers['recover'] {
  const { db } = options;
  const free = freeing(options, 'owner IS NOT NULL AND owner <> ?');
  const forget = db.prepare('DELETE FROM answers WHERE owner <> ?');
  return (args, blobs, replay, owner) => {
    forget.run(owner); // nobody waits for these
    return free(args, blobs, replay, owner);
  };
}

export function releaseHandler(options: OwnershipOptions): Handlers['release'] {
  return freeing(options, 'owner = ?');
}

/** `whose` says which of what is owned, by the number of the present owner. */
function freeing({ db, record }: OwnershipOptions, whose: string): Handlers['recover' | 'release'] {
  const freeRuns = runFreeing(db, whose);
  const freeJobs = jobFreeing(db, whose);
  const owned = db.prepare(
    `SELECT id, round, attempts, cause, in_flight FROM deliveries INDEXED BY deliveries_pending
     WHERE state = 0 AND ${whose} LIMIT ?`,
  );
  const free = db.prepare('UPDATE deliveries SET owner = NULL, claim = NULL WHERE id = ?');
  const cutOff = db.prepare(
    `UPDATE deliveries SET owner = NULL, claim = NULL, in_flight = NULL, last_status = NULL, attempts = ?,
       due_at = ? WHERE id = ?`,
  );
  return ({ limit, now }, _blobs, _replay, owner) => {
    freeJobs(owner);
    const rows = owned.all(owner, limit) as unknown as OwnedRow[];
    const interrupted: number[] = [];
    for (const { id, round, attempts, cause, in_flight: startedAt } of rows) {
      if (startedAt === null) {
        free.run(id);
        continue;
      }
      const attempt = { number: attempts, startedAt, timings: NO_TIME, error: 'interrupted' };
      record({ id, round, cause, attempt });
      cutOff.run(Math.min(attempts, ATTEMPTS_PER_ROUND - 1), now, id);
      interrupted.push(id);
    }
    return { count: rows.length + freeRuns(owner, limit - rows.length), interrupted };
  };
}

export function claimHandler({ db, keyring, record }: OwnershipOptions): Handlers['claim'] {
  const columns = `d.id, d.project, d.round, d.attempts, d.cause, d.due_at,
    c.run_id, c.app, coalesce(o.target, c.target) AS target, c.created_at, t.traceparent,
    iif(o.id IS NULL, c.key_id, o.key_id) AS key_id, iif(o.id IS NULL, c.sealed, o.sealed) AS sealed
    FROM deliveries d INDEXED BY deliveries_pending JOIN contents c ON c.id = d.id
    LEFT JOIN overrides o ON o.id = d.id LEFT JOIN traces t ON t.id = d.id WHERE d.state = 0`;
  const unowned = db.prepare(`SELECT ${columns} AND d.owner IS NULL ORDER BY d.id LIMIT ?`);
  const taken = db.prepare(`SELECT ${columns} AND d.owner = ? AND d.claim = ? ORDER BY d.id`);
  const take = db.prepare('UPDATE deliveries SET owner = ?, claim = ? WHERE id = ?');
  const fail = db.prepare(
    'UPDATE deliveries SET state = ?, reason = ?, last_status = NULL, settled_at = ? WHERE id = ?',
  );

  /** It cannot be signed as its caller asked, and never will be: it ends here, on record. */
  function failUnreadable({ id, round, attempts, cause }: ClaimRow, now: number): void {
    const attempt = { number: attempts + 1, startedAt: now, timings: NO_TIME, error: 'secret_unreadable' };
    record({ id, round, cause, attempt });
    fail.run(STATES.indexOf('failed'), REASONS.indexOf('blocked'), now, id);
  }

  return ({ number, limit, now }, _blobs, replay, owner) => {
    const before = replay ? taken.all(owner, number) : [];
    const rows = (before.length > 0 ? before : unowned.all(limit)) as unknown as ClaimRow[];
    const deliveries: PendingDelivery[] = [];
    const unreadable: string[] = [];
    for (const row of rows) {
      const runId = formatRunId(row.run_id);
      const confidential = open(row, runId, keyring);
      if (confidential === undefined) {
        failUnreadable(row, now);
        unreadable.push(runId);
      } else {
        take.run(owner, number, row.id);
        deliveries.push(pendingDelivery(row, runId, confidential));
      }
    }
    return { deliveries, unreadable };
  };
}

function open(
  { key_id: keyId, sealed }: ClaimRow,
  runId: string,
  keyring: Keyring,
): Confidential | undefined {
  return keyId === null || sealed === null ? {} : unseal({ keyId, sealed }, runId, keyring);
}

function pendingDelivery(row: ClaimRow, runId: string, confidential: Confidential): PendingDelivery {
  return {
    ref: formatDeliveryRef(row),
    runId,
    projectId: row.project,
    app: row.app,
    target: row.target,
    createdAt: row.created_at,
    confidential,
    ...(row.traceparent !== null && { traceparent: row.traceparent }),
    round: row.round,
    attempts: row.attempts,
    trigger: TRIGGERS[row.cause]!,
    dueAt: row.due_at,
  };
}
