/** What batches of another store have in common, whatever they are of: how they are given, and their files. */
import type { Client } from 'pg';
import type { NewBody } from '../store.ts';
import type { Times } from './times.ts';

export interface Batch<T> {
  /** In a transaction. */
  readonly client: Client;
  readonly stored: readonly T[];
  /** Of the machine that the other store is on. */
  readonly times: Times;
}

export interface Imported {
  /** Left as they are here, since they were known already. */
  readonly present: number;
  /** Bodies whose file is missing or too short. */
  readonly bodiesMissing: number;
}

interface Bodied {
  readonly runId: string;
  readonly body?: NewBody;
}

/** Tells how many files have less than they should, or are gone; whoever reads such a body will find that out. */
export async function writeFiles(
  bodied: readonly Bodied[],
  write: (id: string, file: string, size: number) => Promise<void>,
): Promise<number> {
  let missing = 0;
  for (const { runId, body } of bodied) {
    if (body === undefined || !('file' in body)) continue;
    try {
      await write(runId, body.file, body.size);
    } catch (error) {
      if (!(error instanceof RangeError) && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      missing += 1;
    }
  }
  return missing;
}
