/** What is read of runs: one, those that a filter asks for, the bytes that one came or ended with. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { runRecord, type RunRow } from '../../run-rows.ts';
import { REQUEST_SUFFIX, type RunRecord } from '../../runs.ts';
import type { NewBody } from '../../store.ts';
import { formatRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';
import type { Locate } from './locate.ts';

export type ReadRecord = (id: number) => RunRecord | undefined;

export function recordReader(db: DatabaseSync): ReadRecord {
  const live = db.prepare(
    `SELECT r.run_id, l.project, l.app, r.created_at, r.target, l.starts, l.started_at, l.begun, l.cancelled,
       NULL AS state, NULL AS status, NULL AS error, NULL AS ended_at, NULL AS delivery_state,
       NULL AS delivery_reason, 0 AS delivery_attempts
     FROM live_runs l JOIN run_requests r ON r.id = l.id WHERE l.id = ?`,
  );
  const ended = db.prepare(
    `SELECT e.run_id, e.project, e.app, e.created_at, e.target, e.starts, e.started_at, 0 AS begun,
       0 AS cancelled, e.state, e.status, e.error, e.ended_at, d.state AS delivery_state,
       d.reason AS delivery_reason,
       (SELECT count(*) FROM attempts a WHERE a.delivery = e.delivery) AS delivery_attempts
     FROM ended_runs e LEFT JOIN deliveries d ON d.id = e.delivery WHERE e.id = ?`,
  );
  return id => {
    const row = (live.get(id) ?? ended.get(id)) as (RunRow & { run_id: Uint8Array }) | undefined;
    return row && runRecord(formatRunId(row.run_id), row);
  };
}

export function findRunHandler(locate: Locate, read: ReadRecord): Handlers['findRun'] {
  return ({ project, runId }) => {
    const id = locate.live(runId) ?? locate.ended(runId);
    const record = id === undefined ? undefined : read(id);
    return project === undefined || record?.projectId === project ? record : undefined;
  };
}

/** In the order of time, past those that are under way, until the first that is not. */
export function oldestQueuedRunHandler(db: DatabaseSync): Handlers['oldestQueuedRun'] {
  const oldest = db.prepare(
    `SELECT r.created_at FROM live_runs l CROSS JOIN run_requests r ON r.id = l.id
     WHERE l.id > 0 AND l.begun = 0 AND l.cancelled = 0 ORDER BY l.id LIMIT 1`,
  );
  return () => oldest.get()?.['created_at'] as number | undefined;
}

export function endedRunsHandler(locate: Locate): Handlers['endedRuns'] {
  return ({ runIds }) => runIds.filter(runId => locate.live(runId) === undefined);
}

export function runBodyHandler(db: DatabaseSync, spoolDir: string): Handlers['runBody'] {
  const select = db.prepare(
    `SELECT r.run_id, r.file_size, r.body FROM live_runs l JOIN run_requests r ON r.id = l.id
     WHERE l.id = ? AND l.owner = ? AND l.claim = ?`,
  );
  return ({ id, claim }, _blobs, _replay, owner) => {
    const row = select.get(id, owner, claim);
    if (row === undefined || (row['file_size'] === null && row['body'] === null)) return undefined;
    return bodyOf(row, spoolDir, REQUEST_SUFFIX);
  };
}

interface ResultOptions {
  readonly db: DatabaseSync;
  readonly spoolDir: string;
  readonly locate: Locate;
  /** Reads the body of a delivery. */
  readonly body: Handlers['body'];
}

export function runResultHandler({ db, spoolDir, locate, body }: ResultOptions): Handlers['runResult'] {
  const select = db.prepare(
    'SELECT run_id, delivery, file_size, body FROM ended_runs WHERE id = ? AND project = ?',
  );
  return ({ project, runId }, blobs, replay, owner) => {
    const id = locate.ended(runId);
    const row = id === undefined ? undefined : select.get(id, project);
    if (row === undefined) return undefined;
    if (row['delivery'] !== null) return body({ id: row['delivery'] as number }, blobs, replay, owner);
    return bodyOf(row, spoolDir, '');
  };
}

type BodyRow = ReturnType<ReturnType<DatabaseSync['prepare']>['get']> & {};

function bodyOf(row: BodyRow, spoolDir: string, suffix: string): NewBody {
  if (row['file_size'] === null) return { bytes: (row['body'] ?? new Uint8Array()) as Uint8Array }; // no bytes are NULL
  const file = join(spoolDir, `${formatRunId(row['run_id'] as Uint8Array)}${suffix}`);
  return { file, size: row['file_size'] as number };
}
