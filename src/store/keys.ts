/**
 * Where the encryption keys come from: those configured, and the one made once and kept in the data
 * directory. The first configured key seals; a kept key still opens what it sealed before there was another.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../errors.ts';
import { directoryError, ensureDirectory, syncDirectory } from './directory.ts';
import { createKeyring, type Keyring } from './seal.ts';

const FILE = 'encryption.key';
const KEY_TEXT = /^[A-Za-z0-9+/]{43}=$/;

export interface KeySource {
  /** The data directory. */
  readonly dir: string;
  /** 32 bytes each, the newest first. */
  readonly configured?: readonly Uint8Array[];
}

/** Throws a StartError when the kept key cannot be read or made. */
export function loadKeyring({ dir, configured = [] }: KeySource): Keyring {
  const path = join(dir, FILE);
  const kept = readKey(path) ?? (configured.length === 0 ? makeKey(dir, path) : undefined);
  return createKeyring(kept ? [...configured, kept] : configured);
}

function readKey(path: string): Uint8Array | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new StartError(`the encryption key ${path} cannot be read: ${message}`);
  }
  if (KEY_TEXT.test(text)) return Buffer.from(text, 'base64');
  throw new StartError(
    `the encryption key ${path} is damaged: it must be 32 bytes in base64. Put the right file back; ` +
      'without it, the secrets of stored deliveries cannot be read',
  );
}

/** Complete or not at all; of two processes that make one at the same moment, both get the same. */
function makeKey(dir: string, path: string): Uint8Array {
  ensureDirectory(dir);
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    writeDurably(draft, `${randomBytes(32).toString('base64')}\n`);
    publish(draft, path);
    syncDirectory(dir);
  } catch (error) {
    throw directoryError(dir, error);
  } finally {
    rmSync(draft, { force: true });
  }
  return readKey(path)!;
}

/** A link, not a rename: a rename would overwrite the key that another process has just made. */
function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function writeDurably(path: string, text: string): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
