/** Reads the runs of an embedded store out, those that wait and those that have ended, and the keys of callers. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { RUN_STATES } from '../codes.ts';
import { type FinalRunState, REQUEST_SUFFIX } from '../runs.ts';
import type { NewBody } from '../store.ts';
import type { StoredEndedRun, StoredKey, StoredWaitingRun } from '../stored.ts';
import type { PartReader } from './export-part.ts';
import { formatRunId } from './key.ts';

interface RunRow {
  readonly id: number;
  readonly run_id: Uint8Array;
  readonly project: string;
  readonly app: string;
  readonly created_at: number;
  readonly target: string | null;
  readonly starts: number;
  readonly started_at: number | null;
  readonly file_size: number | null;
  readonly body: Uint8Array | null;
}

interface WaitingRow extends RunRow {
  readonly cancelled: number;
  readonly method: string;
  readonly path: string;
  readonly query: string | null;
  readonly key_id: string;
  readonly sealed: Uint8Array | null;
  readonly headers: Uint8Array;
}

interface EndedRow extends RunRow {
  readonly state: number;
  readonly status: number;
  readonly error: string | null;
  readonly ended_at: number;
  readonly delivery: number | null;
}

interface KeyRow {
  readonly project: string;
  readonly key: string;
  readonly run_id: Uint8Array;
  readonly fingerprint: Uint8Array;
  readonly made_at: number;
}

/** After the start no run has an owner. */
export function waitingRunReader(db: DatabaseSync, spoolDir: string): PartReader<StoredWaitingRun> {
  return {
    count: after => counted(db, 'live_runs WHERE id > ?', after),
    *read(after) {
      const rows = db.prepare(
        `SELECT l.id, l.project, l.app, l.starts, l.started_at, l.cancelled, r.run_id, r.created_at, r.target,
           r.method, r.path, r.query, r.key_id, r.sealed, r.headers, r.file_size, r.body
         FROM live_runs l JOIN run_requests r ON r.id = l.id WHERE l.id > ? ORDER BY l.id`,
      );
      for (const row of rows.iterate(after)) yield waitingRun(row as unknown as WaitingRow, spoolDir);
    },
    weightOf: ({ headers, body }) => headers.sealed.byteLength + weightOf(body),
  };
}

/** Where the result of an ended run is: with the run itself, or with its delivery. */
const WHERE = { kept: 'delivery IS NULL', delivered: 'delivery IS NOT NULL' } as const;

export function endedRunReader(
  db: DatabaseSync,
  spoolDir: string,
  part: keyof typeof WHERE,
): PartReader<StoredEndedRun> {
  return {
    count: after => counted(db, `ended_runs WHERE ${WHERE[part]} AND id > ?`, after),
    *read(after) {
      const rows = db.prepare(
        `SELECT id, run_id, project, app, created_at, target, starts, started_at, state, status, error, ended_at,
           delivery, file_size, body
         FROM ended_runs WHERE ${WHERE[part]} AND id > ? ORDER BY id`,
      );
      for (const row of rows.iterate(after)) yield endedRun(row as unknown as EndedRow, spoolDir);
    },
    weightOf: ({ result }) => weightOf(result),
  };
}

/** Keys have no number of their own. Their ordinal is as good, since nothing changes in a store that is moved. */
export function keyReader(db: DatabaseSync): PartReader<StoredKey> {
  return {
    count: after => counted(db, '(SELECT 1 FROM run_keys LIMIT -1 OFFSET ?)', after),
    *read(after) {
      const rows = db.prepare(
        `SELECT project, key, run_id, fingerprint, made_at FROM run_keys
         ORDER BY project, key LIMIT -1 OFFSET ?`,
      );
      let position = after;
      for (const each of rows.iterate(after)) {
        const { project, key, run_id: runId, fingerprint, made_at: madeAt } = each as unknown as KeyRow;
        position += 1;
        yield { position, projectId: project, key, runId: formatRunId(runId), fingerprint, madeAt };
      }
    },
    weightOf: () => 0,
  };
}

function counted(db: DatabaseSync, beyond: string, after: number): number {
  return db.prepare(`SELECT count(*) AS count FROM ${beyond}`).get(after)!['count'] as number;
}

function weightOf(body: NewBody | undefined): number {
  return body && 'bytes' in body ? body.bytes.byteLength : 0;
}

/** What all runs have. */
function runOf(row: RunRow) {
  return {
    position: row.id,
    runId: formatRunId(row.run_id),
    projectId: row.project,
    app: row.app,
    createdAt: row.created_at,
    ...(row.target !== null && { target: row.target }),
    starts: row.starts,
    ...(row.started_at !== null && { startedAt: row.started_at }),
  };
}

function waitingRun(row: WaitingRow, spoolDir: string): StoredWaitingRun {
  const run = runOf(row);
  const { key_id: keyId, sealed, file_size: size, body } = row;
  const file = join(spoolDir, `${run.runId}${REQUEST_SUFFIX}`);
  return {
    ...run,
    cancelled: row.cancelled === 1,
    method: row.method,
    path: row.path,
    ...(row.query !== null && { query: row.query }),
    headers: { keyId, sealed: row.headers },
    ...(sealed !== null && { sealed: { keyId, sealed } }),
    ...(size !== null && { body: { file, size } }),
    ...(body !== null && { body: { bytes: body } }),
  };
}

function endedRun(row: EndedRow, spoolDir: string): StoredEndedRun {
  const run = runOf(row);
  const { delivery, file_size: size, body } = row;
  const result =
    size === null ? { bytes: body ?? new Uint8Array() } : { file: join(spoolDir, run.runId), size }; // no bytes are NULL
  return {
    ...run,
    state: RUN_STATES[row.state] as FinalRunState,
    statusCode: row.status,
    ...(row.error !== null && { error: row.error }),
    endedAt: row.ended_at,
    ...(delivery === null && { result }),
  };
}
