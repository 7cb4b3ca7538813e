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
import type { Keyring } from '../seal.ts';
import type { Part, Stored } from '../stored.ts';
import { attemptRecorder } from './attempts.ts';
import { DATABASE_FILE, openDatabase } from './database.ts';
import { deliveryReader } from './export-deliveries.ts';
import { inBatches, type PartReader } from './export-part.ts';
import { endedRunReader, keyReader, waitingRunReader } from './export-runs.ts';
import { lockDirectory } from './lock.ts';
import { type Mark, readMark, writeMark } from './moved.ts';
import { recoverHandler } from './ownership.ts';
import type { WorkerData } from './protocol.ts';

const RECOVER_CHUNK = 500;

export interface Export {
  /** Where it is being moved to, once that has been decided. */
  readonly mark: Mark | undefined;
  /** From here on nobody serves this directory any more. Durable when it returns. */
  setMark(mark: Mark): void;
  /** How many there are beyond a position. */
  count(part: Part, after: number): number;
  /** Those beyond a position, in the order of their positions. */
  batches<P extends Part>(part: P, after: number): Iterable<readonly Stored[P][]>;
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
  const readers = partReaders(db, spoolDir);
  return {
    get mark() {
      return readMark(db);
    },
    setMark: mark => writeMark(db, mark),
    count: (part, after) => readers[part].count(after),
    batches: <P extends Part>(part: P, after: number) => inBatches(readers[part], after),
    close() {
      db.close();
      lock.release();
    },
  };
}

function partReaders(db: DatabaseSync, spoolDir: string): { readonly [P in Part]: PartReader<Stored[P]> } {
  return {
    pending: deliveryReader(db, spoolDir, 'pending'),
    settled: deliveryReader(db, spoolDir, 'settled'),
    waiting: waitingRunReader(db, spoolDir),
    kept: endedRunReader(db, spoolDir, 'kept'),
    delivered: endedRunReader(db, spoolDir, 'delivered'),
    keys: keyReader(db),
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
    freed = recover({ limit: RECOVER_CHUNK, now: clock.now() }, [], false, owner).count;
    db.exec('COMMIT');
  } while (freed > 0);
  return db;
}
