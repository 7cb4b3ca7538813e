/**
 * The token of `afterword dev`: its secret is kept in dev's data directory, so that a token from the last
 * time still works, and so that a command beside it needs none.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import { StartError } from '../errors.ts';
import { issueToken } from '../token.ts';
import type { Io } from './output.ts';

export const DEV_PROJECT = 'p-demo';
export const DEV_DATA = '.afterword';
const SECRET_FILE = 'dev-jwt-secret';
const TOKEN_DAYS = 30;

/** Made once. */
export async function devSecret(data: string): Promise<string> {
  const file = join(data, SECRET_FILE);
  try {
    await mkdir(data, { recursive: true, mode: 0o700 });
    await writeFile(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new StartError(`cannot write to ${data}: ${message}`);
  }
  return readSecret(file);
}

export function devToken(secret: string): Promise<string> {
  const ttlSeconds = TOKEN_DAYS * 24 * 3600;
  return issueToken({ secret, projectId: DEV_PROJECT, ttlSeconds, clock: systemClock });
}

/** For the `afterword dev` of this folder; undefined where there was none. */
export async function devTokenHere({ cwd }: Io): Promise<string | undefined> {
  const file = resolve(cwd, DEV_DATA, SECRET_FILE);
  const secret = await readSecret(file).catch(() => undefined);
  return secret === undefined ? undefined : devToken(secret);
}

async function readSecret(file: string): Promise<string> {
  return (await readFile(file, 'utf8')).trim();
}
