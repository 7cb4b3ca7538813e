/**
 * An embedded store, opened to be read out and moved to another. It has the directory to itself meanwhile, as
 * a service would. Nothing is taken out of it: the only things written are what a start after a crash writes
 * too, and the mark.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import { UsageError } from '../../errors.ts';
import { TRIGGERS } from '../codes.ts';
import type { Keyring } from '../seal.ts';
import type { NewBody } from '../store.ts';
import type { StoredDelivery } from '../stored.ts';
import { attemptRecorder } from './attempts.ts';
import { DATABASE_FILE, openDatabase } from './database.ts';
import { formatRunId } from './key.ts';
import { lockDirectory } from './lock.ts';
import { type Mark, readMark, writeMark } from './moved.ts';
import { recoverHandler } from './ownership.ts';
import type { WorkerData } from './protocol.ts';
import { deliveryRecord } from '../rows.ts';
import { attemptsReader, type KeyedRow } from './reading.ts';

/** What is read out together, at most; beyond the bytes by one delivery. Bodies in files do not count. */
const BATCH_ROWS = 500;
const BATCH_BYTES = 8 * 1024 * 1024;
const RECOVER_CHUNK = 500;

export type Part = 'pending' | 'settled';

export interface Export {
  /** Where it is being moved to, once that has been decided. */
  readonly mark: Mark | undefined;
  /** From here on nobody serves this directory any more. Durable when it returns. */
  setMark(mark: Mark): void;
  /** How many there are beyond a position. */
  count(part: Part, after: number): number;
  /** Those beyond a position, in the order of their positions. */
  batches(part: Part, after: number): Iterable<readonly StoredDelivery[]>;
  close(): void;
}

export interface ExportOptions {
  readonly dir: string;
  readonly spoolDir: string;
  readonly keyring: Keyring;
  /** A name that no start of a process has had. */
  readonly nodeId: string;
  readonly clock: Clock;
}

interface StoredRow extends KeyedRow {
  readonly attempts: number;
  readonly cause: number;
  readonly run_id: Uint8Array;
  readonly key_id: string | null;
  readonly sealed: Uint8Array | null;
  readonly file_size: number | null;
  readonly body: Uint8Array | null;
}

/** After the start all pending deliveries are without an owner. */
const WHICH: Readonly<Record<Part, string>> = {
  pending: 'd.state = 0 AND d.owner IS NULL',
  settled: 'd.state <> 0',
};

/** Throws a UsageError where there is none, and a StartError where it cannot be used or another process does. */
export function openExport({ dir, spoolDir, keyring, nodeId, clock }: ExportOptions): Export {
  const file = join(dir, DATABASE_FILE);
  if (!existsSync(file))
    throw new UsageError(`there is no embedded store in ${dir}: it has no ${DATABASE_FILE}`);
  const lock = lockDirectory(dir);
  let db: DatabaseSync;
  try {
    db = openRecovered({ file, nodeId, keyring }, clock);
  } catch (error) {
    lock.release();
    throw error;
  }
  return {
    get mark() {
      return readMark(db);
    },
    setMark: mark => writeMark(db, mark),
    count(part, after) {
      const row = db.prepare(`SELECT count(*) AS count FROM deliveries d WHERE ${WHICH[part]} AND d.id > ?`);
      return row.get(after)!['count'] as number;
    },
    batches: (part, after) => readBatches({ db, spoolDir, part, after }),
    close() {
      db.close();
      lock.release();
    },
  };
}

/** As a start after a crash does: attempts that were cut off are recorded, and nothing has an owner. */
function openRecovered(
  { keyring, ...options }: Pick<WorkerData, 'file' | 'nodeId' | 'keyring'>,
  clock: Clock,
): DatabaseSync {
  const { db, owner } = openDatabase({ ...options, keyring, evenMoved: true });
  const recover = recoverHandler({ db, keyring, record: attemptRecorder(db) });
  let freed: number;
  do {
    db.exec('BEGIN IMMEDIATE');
    freed = recover({ limit: RECOVER_CHUNK, now: clock.now() }, [], false, owner);
    db.exec('COMMIT');
  } while (freed > 0);
  return db;
}

interface Reading {
  readonly db: DatabaseSync;
  readonly spoolDir: string;
  readonly part: Part;
  readonly after: number;
}

function* readBatches({ db, spoolDir, part, after }: Reading): Generator<StoredDelivery[]> {
  const rows = db.prepare(
    `SELECT d.id, d.project, c.app, c.target, c.status, c.created_at, d.state, d.reason, d.round, d.due_at,
       d.settled_at, d.attempts, d.cause, c.run_id, c.key_id, c.sealed, c.file_size, c.body
     FROM deliveries d JOIN contents c ON c.id = d.id WHERE ${WHICH[part]} AND d.id > ? ORDER BY d.id`,
  );
  const attemptsOf = attemptsReader(db);
  let batch: StoredDelivery[] = [];
  let bytes = 0;
  for (const each of rows.iterate(after)) {
    const row = each as unknown as StoredRow;
    const runId = formatRunId(row.run_id);
    const record = deliveryRecord(runId, row, attemptsOf(row.id));
    batch.push({
      ...record,
      position: row.id,
      ...(row.key_id !== null &&
        row.sealed !== null && { sealed: { keyId: row.key_id, sealed: row.sealed } }),
      body: bodyOf(row, join(spoolDir, runId)),
      counted: row.attempts,
      trigger: TRIGGERS[row.cause]!,
    });
    bytes += weightOf(batch.at(-1)!);
    if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** What it takes in memory, apart from its small parts. */
function weightOf({ body, attempts }: StoredDelivery): number {
  const excerpts = attempts.reduce((sum, { excerpt }) => sum + (excerpt?.byteLength ?? 0), 0);
  return excerpts + ('bytes' in body ? body.bytes.byteLength : 0);
}

function bodyOf({ file_size: size, body }: StoredRow, file: string): NewBody {
  return size === null ? { bytes: body ?? new Uint8Array() } : { file, size }; // no bytes are NULL
}
