/** What is read of deliveries: one with its attempts, a body; and of all: what is pending, whose files there are. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import {
  ATTEMPT_COLUMNS,
  type AttemptRow,
  attemptRecord,
  type DeliveryDetailRow,
  deliveryRecord,
  type SealedRow,
  signedOf,
} from '../rows.ts';
import { REQUEST_SUFFIX } from '../runs.ts';
import type { Keyring } from '../seal.ts';
import type { AttemptRecord } from '../store.ts';
import { formatRunId, parseRunId } from './key.ts';
import type { Handlers } from './protocol.ts';

/** A delivery's row, with its key. */
export type KeyedRow = DeliveryDetailRow & { readonly id: number };

export function findHandler(db: DatabaseSync, keyring: Keyring): Handlers['find'] {
  const delivery = db.prepare(
    `SELECT d.id, d.project, c.app, c.target, o.target AS other_target, c.status, c.created_at, t.traceparent,
       d.state, d.reason, d.round, d.due_at, d.settled_at, c.key_id, c.sealed
     FROM contents c JOIN deliveries d ON d.id = c.id LEFT JOIN overrides o ON o.id = c.id
     LEFT JOIN traces t ON t.id = c.id WHERE c.id BETWEEN ? AND ? AND c.run_id = ?`,
  );
  const attemptsOf = attemptsReader(db);
  return ({ runId }) => {
    const key = parseRunId(runId);
    if (key === undefined) return undefined;
    const row = delivery.get(key.first, key.last, key.bytes) as (KeyedRow & SealedRow) | undefined;
    if (row === undefined) return undefined;
    return { ...deliveryRecord(runId, row, attemptsOf(row.id)), ...signedOf(row, runId, keyring) };
  };
}

/** The attempts of a delivery, in their order. */
export function attemptsReader(db: DatabaseSync): (id: number) => AttemptRecord[] {
  const attempts = db.prepare(`SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE delivery = ? ORDER BY ordinal`);
  return id => (attempts.all(id) as unknown as AttemptRow[]).map(attemptRecord);
}

export function bodyHandler(db: DatabaseSync, spoolDir: string): Handlers['body'] {
  const select = db.prepare('SELECT run_id, file_size, body FROM contents WHERE id = ?');
  return ({ id }) => {
    const row = select.get(id);
    if (row === undefined) return undefined;
    if (row['file_size'] === null) return { bytes: (row['body'] ?? new Uint8Array()) as Uint8Array }; // no bytes are NULL
    const runId = formatRunId(row['run_id'] as Uint8Array);
    return { file: join(spoolDir, runId), size: row['file_size'] as number };
  };
}

export function backlogHandler(db: DatabaseSync): Handlers['backlog'] {
  const count = db.prepare(
    `SELECT project, sum(count) AS count FROM (
       SELECT project, count(*) AS count FROM deliveries INDEXED BY deliveries_pending
       WHERE state = 0 GROUP BY project
       UNION ALL
       SELECT project, count(*) FROM live_runs INDEXED BY live_runs_project GROUP BY project)
     GROUP BY project`,
  );
  return () => ({
    pending: new Map(count.all().map(row => [row['project'] as string, row['count'] as number])),
  });
}

export function spooledHandler(db: DatabaseSync): Handlers['spooled'] {
  const among = (table: string) => {
    const spooled = db.prepare(
      `SELECT 1 FROM ${table} WHERE id BETWEEN ? AND ? AND run_id = ? AND file_size IS NOT NULL`,
    );
    return (runId: string) => {
      const key = parseRunId(runId);
      return key !== undefined && spooled.get(key.first, key.last, key.bytes) !== undefined;
    };
  };
  const [requests, contents, results] = [among('run_requests'), among('contents'), among('ended_runs')];
  return ({ names }) =>
    names.filter(name =>
      name.endsWith(REQUEST_SUFFIX)
        ? requests(name.slice(0, -REQUEST_SUFFIX.length))
        : contents(name) || results(name),
    );
}
