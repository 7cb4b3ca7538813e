/**
 * Opens the database so that a commit means "on disk", brings its schema up to date, and refuses, in words
 * for the operator, what it cannot work with.
 */
import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../errors.ts';
import { directoryError } from '../directory.ts';
import { hostOf } from '../ledger.ts';
import type { Keyring } from '../seal.ts';
import { describe, isSqliteError, primaryCode } from './faults.ts';
import { MIGRATIONS } from './migrations.ts';
import { refuseMoved } from './moved.ts';
import type { Handlers, WorkerData } from './protocol.ts';

/** Its name in the data directory. */
export const DATABASE_FILE = 'afterword.db';

const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const SYNCHRONOUS_FULL = 2;
const BUSY_TIMEOUT_MS = 2_000;

/** Keeps the WAL near 32 MiB: without a cap it grows by hundreds of megabytes in seconds of load. */
const CHECKPOINT_PAGES = 8_000;

export interface Database {
  readonly db: DatabaseSync;
  /** The number of the node that opened it, among the owners. */
  readonly owner: number;
}

interface OpenOptions extends Omit<WorkerData, 'spoolDir'> {
  /** Opens one that has been moved away as well; otherwise that is refused. */
  readonly evenMoved?: boolean;
}

export function openDatabase({ file, nodeId, keyring, evenMoved = false }: OpenOptions): Database {
  let db: DatabaseSync | undefined;
  try {
    createFile(file);
    db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    configure(db);
    assertDurable(db);
    migrate(db, file);
    if (!evenMoved) refuseMoved(db, dirname(file));
    registerKeys(db, keyring);
    return { db, owner: registerNode(db, nodeId) };
  } catch (error) {
    db?.close();
    throw startError(file, error);
  }
}

/** SQLite would make it readable for all. An existing file is not opened here: closing it would drop its locks. */
export function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw directoryError(dirname(file), error);
  }
}

/** Everything promised rests on these, so they are read back and not trusted to have been set. */
export function assertDurable(db: DatabaseSync): void {
  const journal = pragma(db, 'journal_mode');
  const synchronous = pragma(db, 'synchronous');
  if (journal === 'wal' && synchronous === SYNCHRONOUS_FULL && pragma(db, 'fullfsync') === 1) return;
  throw new StartError(
    `the database cannot promise durability here (journal_mode ${journal}, synchronous ${synchronous}); ` +
      'put the data directory on a local file system',
  );
}

function registerNode(db: DatabaseSync, name: string): number {
  db.prepare('INSERT INTO nodes (name) VALUES (?) ON CONFLICT DO NOTHING').run(name);
  return db.prepare('SELECT id FROM nodes WHERE name = ?').get(name)!['id'] as number;
}

export function registerHandler(db: DatabaseSync): Handlers['register'] {
  return ({ name }) => registerNode(db, name);
}

/** What is pending and cannot be opened could only be lost: better not to start. */
function registerKeys(db: DatabaseSync, keyring: Keyring): void {
  db.prepare('INSERT INTO seal_keys (key_id) VALUES (?) ON CONFLICT DO NOTHING').run(keyring.newest);
  const used = db.prepare('SELECT key_id FROM seal_keys').all();
  const pendingWith = db.prepare(
    `SELECT (SELECT count(*) FROM deliveries d INDEXED BY deliveries_pending JOIN contents c ON c.id = d.id
         LEFT JOIN overrides o ON o.id = d.id
         WHERE d.state = 0 AND iif(o.id IS NULL, c.key_id, o.key_id) = ?1) AS deliveries,
       (SELECT count(*) FROM run_requests WHERE key_id = ?1) AS runs`,
  );
  for (const row of used) {
    const keyId = row['key_id'] as string;
    if (keyring.keys.has(keyId)) continue;
    const { deliveries, runs } = pendingWith.get(keyId)! as { deliveries: number; runs: number };
    if (deliveries + runs === 0) continue;
    const what = [deliveries > 0 && `${deliveries} pending deliveries`, runs > 0 && `${runs} runs`];
    throw new StartError(
      `${what.filter(Boolean).join(' and ')} are sealed with the encryption key ${keyId}, which is not known ` +
        'here. Start with the old encryptionKey (or put encryption.key back into the data directory) until ' +
        `they are ${runs > 0 ? 'done' : 'delivered'}`,
    );
  }
}

function configure(db: DatabaseSync): void {
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -32768;
  `);
}

function migrate(db: DatabaseSync, file: string): void {
  const version = pragma(db, 'user_version') as number;
  if (version > MIGRATIONS.length) {
    throw new StartError(
      `the database ${file} was written by a newer version of Afterword ` +
        `(schema ${version}, this one knows ${MIGRATIONS.length}); start that version, or a newer one`,
    );
  }
  const missing = MIGRATIONS.slice(version);
  if (missing.length === 0) return;
  db.function('host_of', { deterministic: true }, target => hostOf(String(target)));
  db.exec(`BEGIN IMMEDIATE; ${missing.join(';')}; PRAGMA user_version = ${MIGRATIONS.length}; COMMIT;`);
}

function pragma(db: DatabaseSync, name: string): number | string {
  return Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0] as number | string;
}

function startError(file: string, error: unknown): StartError {
  if (error instanceof StartError) return error;
  if (isSqliteError(error) && [CORRUPT, NOT_A_DATABASE].includes(primaryCode(error))) {
    return new StartError(
      `the database ${file} is damaged, or is not a database: ${describe(error)}. ` +
        'Put a backup back, or move the file away to start with an empty store',
    );
  }
  return new StartError(`the database ${file} cannot be opened: ${describe(error)}`);
}
