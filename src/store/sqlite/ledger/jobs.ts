/**
 * Jobs: many new rounds, a step at a time. A step is one transaction: the rounds that it makes, and how far the
 * job has come with them. It belongs to whoever has claimed it, through that claim alone.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DeliveryFilter, Job } from '../../ledger.ts';
import type { Handlers } from '../protocol.ts';
import { askedWith, type LedgerKeys } from './keys.ts';
import type { MakeRound } from './redeliver.ts';

interface JobRow {
  readonly id: string;
  readonly project: string | null;
  readonly filter: string;
  readonly created_at: number;
  readonly total: number;
  readonly seen: number;
  readonly redelivered: number;
  readonly before: string | null;
  readonly ended_at: number | null;
}

const COLUMNS = 'id, project, filter, created_at, total, seen, redelivered, before, ended_at';

function jobOf(row: JobRow): Job {
  return {
    id: row.id,
    ...(row.project !== null && { projectId: row.project }),
    filter: JSON.parse(row.filter) as DeliveryFilter,
    createdAt: row.created_at,
    state: row.ended_at === null ? 'running' : 'done',
    total: row.total,
    seen: row.seen,
    redelivered: row.redelivered,
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
  };
}

function jobReader(db: DatabaseSync): (id: string) => Job | undefined {
  const select = db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`);
  return id => {
    const row = select.get(id) as JobRow | undefined;
    return row && jobOf(row);
  };
}

export function addJobHandler(db: DatabaseSync, keys: LedgerKeys): Handlers['addJob'] {
  const read = jobReader(db);
  const insert = db.prepare(
    `INSERT INTO jobs (id, project, filter, created_at, total, seen, redelivered) VALUES (?, ?, ?, ?, ?, 0, 0)`,
  );
  return (args, [fingerprint]) => {
    const { id, projectId, filter, createdAt, total } = args;
    const asked = askedWith(args, fingerprint, createdAt);
    const before = asked && keys.find(asked);
    if (before !== undefined)
      return before !== 'conflict' && 'job' in before ? read(before.job)! : 'conflict';
    insert.run(id, projectId ?? null, JSON.stringify(filter), createdAt, total);
    if (asked) keys.set(asked, { job: id });
    return read(id)!;
  };
}

export function findJobHandler(db: DatabaseSync): Handlers['findJob'] {
  const read = jobReader(db);
  return ({ id, project }) => {
    const job = read(id);
    return project === undefined || job?.projectId === project ? job : undefined;
  };
}

export function claimJobHandler(db: DatabaseSync): Handlers['claimJob'] {
  const claim = db.prepare(
    `UPDATE jobs SET owner = ?, claim = ? WHERE rowid = (
       SELECT rowid FROM jobs INDEXED BY jobs_running WHERE ended_at IS NULL AND owner IS NULL
       ORDER BY created_at, rowid LIMIT 1)
     RETURNING ${COLUMNS}`,
  );
  return ({ number }, _blobs, _replay, owner) => {
    const row = claim.get(owner, number) as JobRow | undefined;
    return row && { ...jobOf(row), ...(row.before !== null && { before: row.before }) };
  };
}

export function stepJobHandler(db: DatabaseSync, makeRound: MakeRound): Handlers['stepJob'] {
  const held = db.prepare('SELECT project FROM jobs WHERE id = ? AND owner = ? AND claim = ?');
  const goOn = db.prepare(
    'UPDATE jobs SET seen = seen + ?, redelivered = redelivered + ?, before = ? WHERE id = ?',
  );
  const end = db.prepare('UPDATE jobs SET ended_at = ?, owner = NULL, claim = NULL WHERE id = ?');
  const read = jobReader(db);
  return ({ id, claim, runIds, next, at }, _blobs, _replay, owner) => {
    const row = held.get(id, owner, claim);
    if (row === undefined) return undefined;
    const project = (row['project'] as string | null) ?? undefined;
    const rounds = runIds.filter(runId => makeRound({ runId, project, at }).outcome === 'redelivered');
    goOn.run(runIds.length, rounds.length, next ?? null, id);
    if (next === undefined) end.run(at, id);
    return read(id);
  };
}

/** A job outlives its key. */
export function pruneLedgerHandler(db: DatabaseSync): Handlers['pruneLedger'] {
  const jobs = db.prepare('DELETE FROM jobs INDEXED BY jobs_ended WHERE ended_at < ?');
  const keys = db.prepare('DELETE FROM ledger_keys INDEXED BY ledger_keys_made WHERE made_at <= ?');
  return ({ before, keysBefore }) => {
    jobs.run(Math.min(before, keysBefore));
    keys.run(keysBefore);
  };
}
