/**
 * The mark of a store that is being moved, or has been moved, to another one: from then on the deliveries are
 * sent from there, and must not be sent from here as well.
 */
import type { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../errors.ts';

export interface Mark {
  /** The name that the other store knows the move by. */
  readonly importId: string;
  /** The other store, in words for an operator. */
  readonly place: string;
  readonly at: number;
}

export function readMark(db: DatabaseSync): Mark | undefined {
  const row = db.prepare('SELECT import, place, at FROM moved').get();
  if (row === undefined) return undefined;
  return { importId: row['import'] as string, place: row['place'] as string, at: row['at'] as number };
}

/** Durable when it returns. */
export function writeMark(db: DatabaseSync, { importId, place, at }: Mark): void {
  db.prepare('INSERT INTO moved (import, place, at) VALUES (?, ?, ?)').run(importId, place, at);
}

export function refuseMoved(db: DatabaseSync, dir: string): void {
  const mark = readMark(db);
  if (mark === undefined) return;
  throw new StartError(
    `the deliveries and runs in the data directory ${dir} were moved to ${mark.place} ` +
      `(by afterword migrate, ${new Date(mark.at).toISOString()}), which goes on with them. ` +
      'Start with that `database`; if the move was interrupted, run afterword migrate again. ' +
      'For a new embedded store, name another `data`',
  );
}
