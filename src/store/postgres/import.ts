/**
 * Takes in the deliveries and runs of another store, for `afterword migrate`, beside the nodes that work on this
 * database. Those that are pending or waiting come without an owner; the nodes find them when they look.
 *
 * A move is known here by an id, with the positions in the other store up to which it has come. A batch and the
 * new position are one transaction. So nothing comes twice, whatever has become of it here meanwhile.
 */
import type { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../errors.ts';
import type { Keyring } from '../seal.ts';
import type { Part, Stored } from '../stored.ts';
import { type ConnectionOptions, createClient, disconnect, inTransaction } from './connection.ts';
import { describe } from './faults.ts';
import type { Batch, Imported } from './import-batch.ts';
import { importDeliveries } from './import-deliveries.ts';
import { importEndedRuns, importKeys, importWaitingRuns } from './import-runs.ts';
import { openDatabase } from './opening.ts';
import { dayOf, makeDays } from './partitions.ts';
import { placeOf, startError } from './start-errors.ts';
import { createTimes, type Times } from './times.ts';

/** A batch is large, and the nodes have their own work for the database. */
const CLOCK_LOOKS = 5;
const TIMEOUT_MS = 60_000;

/** Up to where each part of the other store is here. */
export type Positions = Readonly<Record<Part, number>>;

const WRITERS: { readonly [P in Part]: (batch: Batch<Stored[P]>) => Promise<Imported> } = {
  pending: importDeliveries,
  settled: importDeliveries,
  waiting: importWaitingRuns,
  kept: importEndedRuns,
  delivered: importEndedRuns,
  keys: importKeys,
};

export interface Import {
  /** The database, as `host:port/name`. */
  readonly place: string;
  /** Makes a note of a move that begins. */
  begin(id: string, source: string): Promise<void>;
  /** Undefined where no such move is known. */
  positions(id: string): Promise<Positions | undefined>;
  /** What is beyond the position of a part, in its order. */
  write<P extends Part>(id: string, part: P, stored: readonly Stored[P][]): Promise<Imported>;
  close(): Promise<void>;
}

export interface ImportOptions {
  readonly connection: ConnectionOptions;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Only to ask for positions: the database is left as it is. */
  readonly readOnly: boolean;
}

/** Throws a StartError, as all that it gives does. */
export async function openImport({ connection, keyring, clock, readOnly }: ImportOptions): Promise<Import> {
  if (!readOnly) await openDatabase({ connection, keyring, clock });
  const place = placeOf(connection);
  const client = createClient({ connection, timeoutMs: TIMEOUT_MS });
  const times = createTimes();
  try {
    await client.connect();
    await observe(client, times, clock);
  } catch (error) {
    await disconnect(client);
    throw startError(error, connection);
  }
  const attempt = <T>(work: () => Promise<T>) => work().catch((error: unknown) => interrupted(error, place));
  return {
    place,
    begin: (id, source) =>
      attempt(async () => {
        await client.query('INSERT INTO afterword_imports (id, source) VALUES ($1, $2)', [id, source]);
      }),
    positions: id => attempt(() => readPositions(client, id)),
    write: (id, part, stored) =>
      attempt(async () => {
        await makeDays(client, daysOf(stored));
        return inTransaction(client, async () => {
          await advance(client, id, part, stored);
          return WRITERS[part]({ client, stored, times });
        });
      }),
    close: () => disconnect(client),
  };
}

/** The quickest of some looks at the database's clock is the best; what it took is halved between both ways. */
async function observe(client: Client, times: Times, clock: Clock): Promise<void> {
  let quickest = Number.POSITIVE_INFINITY;
  let [database, node] = [0, 0];
  for (let looks = 0; looks < CLOCK_LOOKS; looks += 1) {
    const before = clock.now();
    const { rows } = await client.query<{ now: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
    );
    const took = clock.now() - before;
    if (took >= quickest) continue;
    quickest = took;
    [database, node] = [rows[0]!.now, before + took / 2];
  }
  times.observe(database, node, node);
}

async function readPositions(client: Client, id: string): Promise<Positions | undefined> {
  const { rows: tables } = await client.query<{ present: boolean }>(
    `SELECT to_regclass('afterword_imports') IS NOT NULL AS present`,
  );
  if (!tables[0]!.present) return undefined;
  const { rows } = await client.query<Positions>(
    `SELECT pending::float8, settled::float8, waiting::float8, kept::float8, delivered::float8, keys::float8
     FROM afterword_imports WHERE id = $1`,
    [id],
  );
  return rows[0];
}

/** The note moves on to the end of the batch, and is locked until that is written. */
async function advance(
  client: Client,
  id: string,
  part: Part,
  stored: readonly Stored[Part][],
): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE afterword_imports SET ${part} = $2 WHERE id = $1 AND ${part} < $3`,
    [id, stored.at(-1)!.position, stored[0]!.position],
  );
  if (rowCount !== 1) throw new StartError('another process moves the same store at this moment');
}

/** Those of the run ids, which begin with their millisecond: a delivery of a run is in that of the run. */
function daysOf(stored: readonly Stored[Part][]) {
  const days = stored.map(({ runId }) => dayOf(Number.parseInt(runId.replace('-', '').slice(0, 12), 16)));
  return [...new Map(days.map(day => [day.suffix, day])).values()];
}

/** Whatever it was, nothing is lost by it. */
function interrupted(error: unknown, place: string): never {
  if (error instanceof StartError || error instanceof TypeError) throw error;
  throw new StartError(
    `the move to ${place} was cut off: ${describe(error)}. ` +
      'Nothing is lost; run afterword migrate again, and it goes on where it stopped',
  );
}
