/** Writes a new run: its two rows, its headers and its webhook's secret sealed, and its key where it has one. */
import type { DatabaseSync } from 'node:sqlite';
import { syncDirectory } from '../../directory.ts';
import { IDEMPOTENCY_MS, type RunInsertion } from '../../runs.ts';
import { type Keyring, seal, sealHeaders } from '../../seal.ts';
import { formatRunId, KEYS_PER_MS, parseRunId, type RunKey } from '../key.ts';
import type { Args, Blobs, Handlers } from '../protocol.ts';
import type { Locate } from './locate.ts';

interface InsertRunOptions {
  readonly db: DatabaseSync;
  readonly keyring: Keyring;
  readonly spoolDir: string;
  readonly locate: Locate;
}

type NewRow = Args<'insertRun'>;

export function insertRunHandler(options: InsertRunOptions): Handlers['insertRun'] {
  const { db, spoolDir, locate } = options;
  const insertLive = liveWriter(db);
  const insertRequest = requestWriter(options);
  const keys = keyTable(db);
  return (args, blobs, replay) => {
    const key = parseRunId(args.runId);
    if (key === undefined) throw new RangeError(`not a usable run id: ${args.runId}`);
    if (replay && locate.live(args.runId) !== undefined) return { outcome: 'inserted' };
    if (args.key !== undefined) {
      const first = keys.find(args, blobs[2]!);
      if (first !== undefined) return first;
      keys.set(args, key, blobs[2]!);
    }
    // Whoever wrote the file synced it; its name is durable only with the directory.
    if (args.fileSize !== undefined) syncDirectory(spoolDir);
    insertRequest(insertLive(key, args), key, args, blobs);
    return { outcome: 'inserted' };
  };
}

/** Tells the key that the run got. One that has ended still has its own. */
function liveWriter(db: DatabaseSync): (key: RunKey, args: NewRow) => number {
  const insert = db.prepare(
    `INSERT INTO live_runs (id, project, app, starts, begun, cancelled)
     SELECT ?1, ?2, ?3, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM ended_runs WHERE id = ?1)
     ON CONFLICT DO NOTHING`,
  );
  let sequence = 0;
  return (key, { project, app }) => {
    for (let tries = 0; tries < KEYS_PER_MS; tries += 1) {
      sequence = (sequence + 1) % KEYS_PER_MS;
      const id = key.first + sequence;
      if (insert.run(id, project, app).changes === 1) return id;
    }
    throw new RangeError('the millisecond of this run id has no free key left');
  };
}

function requestWriter({ db, keyring }: InsertRunOptions) {
  const insert = db.prepare(
    `INSERT INTO run_requests
       (id, run_id, created_at, target, method, path, query, key_id, sealed, headers, file_size, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, iif(?, coalesce(?, zeroblob(0)), NULL))`,
  );
  return (id: number, key: RunKey, args: NewRow, [body, secret]: Blobs): void => {
    const { runId, authorization } = args;
    const confidential = {
      ...(secret && { secret }),
      ...(authorization !== undefined && { authorization }),
    };
    const headers = sealHeaders(args.headers, runId, keyring);
    insert.run(
      id,
      key.bytes,
      args.createdAt,
      args.target ?? null,
      args.method,
      args.path,
      args.query ?? null,
      headers.keyId,
      seal(confidential, runId, keyring)?.sealed ?? null,
      headers.sealed,
      args.fileSize ?? null,
      Number(body !== undefined), // no bytes are bound as NULL, which stands for no body
      body ?? null,
    );
  };
}

function keyTable(db: DatabaseSync) {
  const select = db.prepare(
    'SELECT run_id, fingerprint FROM run_keys WHERE project = ? AND key = ? AND made_at > ?',
  );
  const insert = db.prepare(
    `INSERT OR REPLACE INTO run_keys (project, key, run_id, fingerprint, made_at) VALUES (?, ?, ?, ?, ?)`,
  );
  return {
    /** What becomes of a run whose key stands for another one already. Times are of the runs, not of the clock. */
    find({ project, key, createdAt }: NewRow, fingerprint: Uint8Array): RunInsertion | undefined {
      const row = select.get(project, key!, createdAt - IDEMPOTENCY_MS);
      if (row === undefined) return undefined;
      const same = Buffer.from(fingerprint).equals(row['fingerprint'] as Uint8Array);
      return { outcome: same ? 'repeated' : 'conflict', runId: formatRunId(row['run_id'] as Uint8Array) };
    },
    set({ project, key, createdAt }: NewRow, { bytes }: RunKey, fingerprint: Uint8Array): void {
      insert.run(project, key!, bytes, fingerprint, createdAt);
    },
  };
}
