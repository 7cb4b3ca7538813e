/**
 * Moves an embedded store to PostgreSQL. It can be cut off at any moment, by kill -9 too, and started again:
 * it goes on where it stopped, and ends with every delivery there exactly once.
 *
 * 1. The data directory is locked, and what a crash left in it is put in order, as at a start.
 * 2. PostgreSQL makes a note of the move, under a new id. The note tells how far it has come.
 * 3. The directory is marked with that id. From here on no service starts on it, and the move cannot go to
 *    another database.
 * 4. Pending deliveries are copied, so that the nodes there can send them soon, then the settled ones. Each
 *    batch is one transaction, in which the note moves on as well: so it is copied once, whatever is cut off,
 *    and also where the nodes have sent or deleted what came before it.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import type { DatabaseConfig } from './config/config.ts';
import { StartError } from './errors.ts';
import { loadKeyring } from './store/keys.ts';
import { type Import, openImport, type Positions } from './store/postgres/import.ts';
import { createKeyring, type Keyring, seal, unseal } from './store/seal.ts';
import { type Export, openExport, type Part } from './store/sqlite/export.ts';
import type { StoredDelivery } from './store/stored.ts';

const PARTS: readonly Part[] = ['pending', 'settled'];

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
  /** So much more has been moved. */
  advance(deliveries: number): void;
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
  /** Secrets that were sealed anew with the newest key. */
  readonly resealed: number;
  /** Not copied, since the database had the run already. */
  readonly present: number;
  /** Bodies whose file was missing or too short; such a delivery ends as it would have without the move. */
  readonly bodiesMissing: number;
}

const NOWHERE: Positions = { pending: 0, settled: 0 };

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
  readonly keys: { readonly from: Keyring; readonly to: Keyring };
  readonly options: MigrateOptions;
}

async function moveAll({ source, target, keys, options }: Ends): Promise<Moved> {
  const { dryRun, progress } = options;
  const { mark } = source;
  const { place } = target;
  const positions = mark === undefined ? NOWHERE : await resume(mark.importId, mark.place, target, options);
  const counts = {
    pending: source.count('pending', positions.pending),
    settled: source.count('settled', positions.settled),
  };
  const move = { place, resumed: mark !== undefined };
  progress.begin(counts, move);
  const sum = { resealed: 0, present: 0, bodiesMissing: 0 };
  if (dryRun) return { ...move, counts, ...sum };

  const importId = mark?.importId ?? (await begin(source, target, options));
  for (const part of PARTS) {
    for (const batch of source.batches(part, positions[part])) {
      const sealed = batch.map(delivery => resealed(delivery, keys));
      const written = await target.write(importId, part, sealed);
      sum.resealed += sealed.filter((delivery, index) => delivery !== batch[index]).length;
      sum.present += written.present;
      sum.bodiesMissing += written.bodiesMissing;
      progress.advance(batch.length);
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

/** Where it stopped. What is pending must never be in two databases, so it goes on in the same or not at all. */
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

/** What no configured key opens is sealed anew; what nothing opens stays as it is, as unreadable as before. */
function resealed(delivery: StoredDelivery, { from, to }: Ends['keys']): StoredDelivery {
  const { sealed, runId } = delivery;
  if (sealed === undefined || to.keys.has(sealed.keyId)) return delivery;
  const confidential = unseal(sealed, runId, from);
  return confidential === undefined ? delivery : { ...delivery, sealed: seal(confidential, runId, to)! };
}
