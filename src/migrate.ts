/**
 * Moves an embedded store to PostgreSQL. It can be cut off at any moment, by kill -9 too, and started again:
 * it goes on where it stopped, and ends with every delivery and every run there exactly once.
 *
 * 1. The data directory is locked, and what a crash left in it is put in order, as at a start.
 * 2. PostgreSQL makes a note of the move, under a new id. The note tells how far it has come.
 * 3. The directory is marked with that id. From here on no service starts on it, and the move cannot go to
 *    another database.
 * 4. The parts are copied one after the other, as `PARTS` says. Each batch is one transaction, in which the note
 *    moves on as well: so it is copied once, whatever is cut off, and also where the nodes have sent, carried
 *    out or deleted what came before it.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import type { DatabaseConfig } from './config/config.ts';
import { StartError } from './errors.ts';
import { loadKeyring } from './store/keys.ts';
import { type Import, openImport, type Positions } from './store/postgres/import.ts';
import { type Keyrings, reseal } from './store/reseal.ts';
import { createKeyring } from './store/seal.ts';
import { type Export, openExport } from './store/sqlite/export.ts';
import type { Part } from './store/stored.ts';

/**
 * Keys first, so that a call that is repeated to the nodes is known there as early as can be. Then the work that
 * they can go on with. Of what has ended, the runs that only their caller can ask for come first. The others come
 * after their deliveries: whoever finds a run finds its result.
 */
const PARTS: readonly Part[] = ['keys', 'waiting', 'pending', 'kept', 'settled', 'delivered'];

export interface MigrateOptions {
  /** The data directory of the embedded store. */
  readonly from: string;
  readonly database: DatabaseConfig;
  /** The newest first; it seals what is sealed with a key that is none of them. */
  readonly encryptionKeys: readonly Uint8Array[];
  /** Count, and move nothing. */
  readonly dryRun: boolean;
  readonly clock: Clock;
  readonly progress: Progress;
}

export interface Progress {
  /** Both ends are open; so much is left to move. */
  begin(left: Counts, move: Move): void;
  /** So much more of a part has been moved. */
  advance(part: Part, count: number): void;
}

export type Counts = Readonly<Record<Part, number>>;

export interface Move {
  /** The database, in words for an operator. */
  readonly place: string;
  /** It was begun before. */
  readonly resumed: boolean;
}

export interface Moved extends Move {
  /** Moved now, or with `dryRun`, what would be. */
  readonly counts: Counts;
  /** Deliveries and runs whose secrets were sealed anew with the newest key. */
  readonly resealed: number;
  /** Not copied, since the database had them already. */
  readonly present: number;
  /** Bodies whose file was missing or too short; what needs one ends as it would have without the move. */
  readonly bodiesMissing: number;
}

const NOWHERE: Positions = { keys: 0, waiting: 0, pending: 0, kept: 0, settled: 0, delivered: 0 };

/** Throws a StartError, or a UsageError, with a message for the operator. */
export async function migrate(options: MigrateOptions): Promise<Moved> {
  const { from, database, encryptionKeys, dryRun, clock } = options;
  const keys = {
    from: loadKeyring({ dir: from, configured: encryptionKeys }),
    to: createKeyring(encryptionKeys),
  };
  const nodeId = `migrate-${randomUUID()}`;
  const source = openExport({ dir: from, spoolDir: join(from, 'spool'), keyring: keys.from, nodeId, clock });
  try {
    const { connections: _, ...connection } = database;
    const target = await openImport({ connection, keyring: keys.to, clock, readOnly: dryRun });
    try {
      return await moveAll({ source, target, keys, options });
    } finally {
      await target.close();
    }
  } finally {
    source.close();
  }
}

interface Ends {
  readonly source: Export;
  readonly target: Import;
  readonly keys: Keyrings;
  readonly options: MigrateOptions;
}

async function moveAll({ source, target, keys, options }: Ends): Promise<Moved> {
  const { dryRun, progress } = options;
  const { mark } = source;
  const { place } = target;
  const positions = mark === undefined ? NOWHERE : await resume(mark.importId, mark.place, target, options);
  const left = PARTS.map(part => [part, source.count(part, positions[part])] as const);
  const counts = Object.fromEntries(left) as Counts;
  const move = { place, resumed: mark !== undefined };
  progress.begin(counts, move);
  const sum = { resealed: 0, present: 0, bodiesMissing: 0 };
  if (dryRun) return { ...move, counts, ...sum };

  const importId = mark?.importId ?? (await begin(source, target, options));
  for (const part of PARTS) {
    for (const batch of source.batches(part, positions[part])) {
      const sealed = batch.map(stored => reseal(part, stored, keys));
      const written = await target.write(importId, part, sealed);
      sum.resealed += sealed.filter((stored, index) => stored !== batch[index]).length;
      sum.present += written.present;
      sum.bodiesMissing += written.bodiesMissing;
      progress.advance(part, batch.length);
    }
  }
  return { ...move, counts, ...sum };
}

/** First the note there, then the mark here: a mark without its note would be one that nobody can follow. */
async function begin(source: Export, target: Import, { from, clock }: MigrateOptions): Promise<string> {
  const importId = randomUUID();
  await target.begin(importId, from);
  source.setMark({ importId, place: target.place, at: clock.now() });
  return importId;
}

/** Where it stopped. What is pending or waits must never be in two databases, so it goes on in the same or not at all. */
async function resume(
  importId: string,
  place: string,
  target: Import,
  { from }: MigrateOptions,
): Promise<Positions> {
  const positions = await target.positions(importId);
  if (positions !== undefined) return positions;
  throw new StartError(
    `the data directory ${from} is being moved to ${place}, and ${target.place} does not know of that move: ` +
      'it is another database, or an older state of it. Configure the `database` that the move was begun with',
  );
}
