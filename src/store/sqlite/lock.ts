/**
 * One process per data directory. The lock is SQLite's own, on a database that holds nothing: the kernel
 * releases it however the process ends. The pid beside it is only for the message.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../errors.ts';
import { directoryError } from '../directory.ts';
import { createFile } from './database.ts';
import { describe, isSqliteError, primaryCode } from './faults.ts';

const BUSY = 5;

export interface DirectoryLock {
  release(): void;
}

/** Throws a StartError when another process has it. */
export function lockDirectory(dir: string): DirectoryLock {
  const file = join(dir, 'lock.db');
  const pidFile = join(dir, 'pid');
  createFile(file);
  const db = new DatabaseSync(file);
  try {
    db.exec('BEGIN EXCLUSIVE');
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    db.close();
    if (!isSqliteError(error)) throw directoryError(dir, error);
    if (primaryCode(error) !== BUSY) {
      throw new StartError(`the data directory ${dir} cannot be locked: ${describe(error)}`);
    }
    throw new StartError(`the data directory ${dir} is in use by another process (pid ${readPid(pidFile)})`);
  }
  return { release: () => db.close() };
}

function readPid(pidFile: string): string {
  try {
    return readFileSync(pidFile, 'utf8').trim() || 'unknown';
  } catch {
    return 'unknown';
  }
}
