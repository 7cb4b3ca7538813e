/**
 * Who carries out what: a claim takes runs without an owner, of each app as many as its limit has room for.
 * Its cost is that of the runs that it takes and of those that have an owner, however many wait.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { ClaimedRun, WantedRuns } from '../../runs.ts';
import { type Keyring, unseal, unsealHeaders } from '../../seal.ts';
import { firstKeyAt, formatRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';
import { formatRef } from './ref.ts';

/** How many of an app are taken at once that only have to be ended. */
const CANCELLED_CHUNK = 500;

interface ClaimOptions {
  readonly db: DatabaseSync;
  readonly keyring: Keyring;
}

interface WaitingRow {
  readonly id: number;
  readonly project: string;
  readonly app: string;
  readonly starts: number;
  readonly cancelled: number;
  readonly run_id: Uint8Array;
  readonly created_at: number;
  readonly target: string | null;
  readonly method: string;
  readonly path: string;
  readonly query: string | null;
  readonly key_id: string;
  readonly sealed: Uint8Array | null;
  readonly headers: Uint8Array;
}

type Select = (...parameters: (string | number)[]) => WaitingRow[];

/** Waiting runs by one of the indexes, each with its request. */
function selecting(db: DatabaseSync, index: string, which: string): Select {
  const select = db.prepare(
    `SELECT l.id, l.project, l.app, l.starts, l.cancelled, r.run_id, r.created_at, r.target, r.method, r.path,
       r.query, r.key_id, r.sealed, r.headers
     FROM live_runs l INDEXED BY ${index} CROSS JOIN run_requests r ON r.id = l.id WHERE ${which}`,
  );
  return (...parameters) => select.all(...parameters) as unknown as WaitingRow[];
}

const OF_APP = 'l.project = ? AND l.app = ?';

export function claimRunsHandler(options: ClaimOptions): Handlers['claimRuns'] {
  const { db } = options;
  const take = taking(options);
  const owned = db.prepare(
    `SELECT count(*) AS count FROM live_runs l INDEXED BY live_runs_owned
     WHERE ${OF_APP} AND l.owner IS NOT NULL AND (l.begun = 1 OR l.cancelled = 0)`,
  );
  const oldest = selecting(
    db,
    'live_runs_app',
    `${OF_APP} AND l.owner IS NULL AND l.cancelled = 0 ORDER BY l.id LIMIT ?`,
  );
  const cancelled = selecting(
    db,
    'live_runs_cancelled',
    `${OF_APP} AND l.owner IS NULL AND l.cancelled = 1 ORDER BY l.id LIMIT ?`,
  );
  const ofApp = ({ projectId, app, limit }: WantedRuns): WaitingRow[] => {
    const room = limit - (owned.get(projectId, app)!['count'] as number);
    const taken = room > 0 ? oldest(projectId, app, room) : [];
    return [...taken, ...cancelled(projectId, app, CANCELLED_CHUNK)];
  };
  return ({ number, wanted }, _blobs, replay, owner) =>
    take({ number, owner, replay, waiting: () => wanted.flatMap(ofApp) });
}

export function claimStrayRunsHandler(options: ClaimOptions): Handlers['claimStrayRuns'] {
  const { db } = options;
  const take = taking(options);
  const next = db.prepare(
    `SELECT project, app FROM live_runs INDEXED BY live_runs_app
     WHERE (project, app) > (?, ?) ORDER BY project, app LIMIT 1`,
  );
  const oldest = selecting(
    db,
    'live_runs_app',
    `${OF_APP} AND l.owner IS NULL AND l.id < ? ORDER BY l.id LIMIT ?`,
  );
  /** The apps that have runs, in one step each. */
  function* apps(): Generator<{ project: string; app: string }> {
    let row = next.get('', '');
    while (row !== undefined) {
      const [project, app] = [row['project'] as string, row['app'] as string];
      yield { project, app };
      row = next.get(project, app);
    }
  }
  return ({ number, known, before, limit }, _blobs, replay, owner) => {
    const names = new Set(known.map(({ projectId, app }) => `${projectId}/${app}`));
    const waiting = () => {
      const rows: WaitingRow[] = [];
      for (const { project, app } of apps()) {
        if (rows.length >= limit) break;
        if (names.has(`${project}/${app}`)) continue;
        rows.push(...oldest(project, app, firstKeyAt(before), limit - rows.length));
      }
      return rows;
    };
    return take({ number, owner, replay, waiting });
  };
}

interface Taking {
  readonly number: number;
  readonly owner: number;
  readonly replay: boolean;
  readonly waiting: () => WaitingRow[];
}

/** Makes waiting runs the owner's, or finds again what the same claim has taken before. */
function taking({ db, keyring }: ClaimOptions): (taking: Taking) => ClaimedRun[] {
  const taken = selecting(db, 'live_runs_owned', 'l.owner = ? AND l.claim = ?');
  const take = db.prepare('UPDATE live_runs SET owner = ?, claim = ? WHERE id = ?');
  return ({ number, owner, replay, waiting }) => {
    const before = replay ? taken(owner, number) : [];
    const rows = before.length > 0 ? before : waiting();
    for (const { id } of rows) take.run(owner, number, id);
    return rows.toSorted((a, b) => a.id - b.id).map(row => claimedRun(row, number, keyring));
  };
}

function claimedRun(row: WaitingRow, claim: number, keyring: Keyring): ClaimedRun {
  const runId = formatRunId(row.run_id);
  const { key_id: keyId, sealed, target } = row;
  const headers = unsealHeaders({ keyId, sealed: row.headers }, runId, keyring);
  const confidential = sealed === null ? {} : unseal({ keyId, sealed }, runId, keyring);
  const unreadable = headers === undefined || confidential === undefined;
  return {
    ref: formatRef({ runId, id: row.id, claim }),
    runId,
    projectId: row.project,
    app: row.app,
    createdAt: row.created_at,
    starts: row.starts,
    cancelled: row.cancelled === 1,
    unreadable,
    method: row.method,
    path: row.path,
    ...(row.query !== null && { query: row.query }),
    headers: unreadable ? [] : headers,
    ...(target !== null && { webhook: { target, confidential: unreadable ? {} : confidential } }),
  };
}
