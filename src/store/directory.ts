/**
 * Directories that must still be there after a power loss, and the words for an operator when they cannot
 * be made.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartError } from '../errors.ts';

/** Makes `dir` (mode 0700) where it is missing, durably. */
export function ensureDirectory(dir: string): void {
  const path = resolve(dir);
  try {
    const first = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (first !== undefined) syncParents(path, dirname(first));
    if (!statSync(path).isDirectory()) throw new StartError(`${path} is not a directory`);
  } catch (error) {
    throw directoryError(path, error);
  }
}

/** What to tell the operator when something in the data directory cannot be made or written. */
export function directoryError(dir: string, error: unknown): StartError {
  if (error instanceof StartError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return new StartError(`the data directory ${dir} cannot be used: it, or a part of its path, is a file`);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new StartError(`the data directory ${dir} is not writable (${code})`);
    default:
      return new StartError(`the data directory ${dir} cannot be used: ${message}`);
  }
}

/** Makes the entries of a directory durable: syncing a file does not sync its name. */
export function syncDirectory(dir: string): void {
  const descriptor = openSync(dir, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncParents(path: string, top: string): void {
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    syncDirectory(parent);
    if (parent === top || parent === dirname(parent)) return;
  }
}
