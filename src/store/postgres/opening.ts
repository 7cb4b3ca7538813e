/**
 * What happens before a node works with a database: it is reached, judged, brought up to date, and refused in
 * words for the operator where it cannot be worked with. Several nodes may do so at the same moment.
 */
import { createHash } from 'node:crypto';
import type { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../errors.ts';
import type { Keyring } from '../seal.ts';
import { type ConnectionOptions, inTransaction, withClient } from './connection.ts';
import { sqlState } from './faults.ts';
import { MIGRATIONS } from './migrations.ts';
import { LOCK, makePartitions } from './partitions.ts';
import { placeOf, startError } from './start-errors.ts';

const OLDEST_SERVER = 13;
/** A step of the schema may take a while. */
const TIMEOUT_MS = 60_000;

/** The server is there, and will let nodes in soon: starting up, or out of connections. */
const SOON: ReadonlySet<string | undefined> = new Set(['57P03', '53300']);
const SOON_WAIT_MS = 30_000;
const SOON_PAUSE_MS = 250;

export interface OpeningOptions {
  readonly connection: ConnectionOptions;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

export interface Opened {
  /** The channel of the nodes that share these tables. */
  readonly channel: string;
}

/** Throws a StartError. */
export async function openDatabase({ connection, keyring, clock }: OpeningOptions): Promise<Opened> {
  const deadline = clock.elapsed() + SOON_WAIT_MS;
  for (;;) {
    try {
      return await withClient({ connection, timeoutMs: TIMEOUT_MS }, client =>
        prepare(client, connection, keyring),
      );
    } catch (error) {
      if (!SOON.has(sqlState(error)) || clock.elapsed() >= deadline) throw startError(error, connection);
    }
    await new Promise<void>(resolve => void clock.after(SOON_PAUSE_MS, resolve));
  }
}

async function prepare(client: Client, connection: ConnectionOptions, keyring: Keyring): Promise<Opened> {
  const settings = await readSettings(client);
  assertVersion(settings, connection);
  assertDurable(settings, connection);
  await inTransaction(client, () => migrate(client, connection));
  await makePartitions(client);
  await assertKeys(client, keyring);
  return { channel: channelOf(settings.schema ?? '') };
}

interface Settings {
  readonly version: number;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly schema: string | null;
}

async function readSettings(client: Client): Promise<Settings> {
  const { rows } = await client.query<Settings>(`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
      current_setting('synchronous_commit') AS synchronous_commit, current_schema() AS schema`);
  return rows[0]!;
}

function assertVersion({ version }: Settings, connection: ConnectionOptions): void {
  if (version >= OLDEST_SERVER) return;
  throw new StartError(
    `the database ${placeOf(connection)} is PostgreSQL ${version}; Afterword needs ${OLDEST_SERVER} or newer`,
  );
}

/** Everything promised rests on these. */
function assertDurable(settings: Settings, connection: ConnectionOptions): void {
  const wrong = [
    settings.fsync !== 'on' && 'fsync is off',
    settings.full_page_writes !== 'on' && 'full_page_writes is off',
    ['off', 'local'].includes(settings.synchronous_commit) &&
      `synchronous_commit is ${settings.synchronous_commit} for user ${connection.user}`,
  ].filter(each => each !== false);
  if (wrong.length === 0) return;
  throw new StartError(
    `the database ${placeOf(connection)} cannot promise durability: ${wrong.join(', ')}; ` +
      'a delivery that was acknowledged could be lost. Set them to on',
  );
}

interface Version {
  readonly version: number;
  readonly compatible_from: number;
}

async function migrate(client: Client, connection: ConnectionOptions): Promise<void> {
  await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
  const { rows } = await client.query<{ present: boolean }>(
    `SELECT to_regclass('afterword_schema') IS NOT NULL AS present`,
  );
  if (!rows[0]!.present) {
    await client.query(`
      CREATE TABLE afterword_schema (version integer NOT NULL, compatible_from integer NOT NULL);
      INSERT INTO afterword_schema VALUES (0, 0)`);
  }
  const found = (await client.query<Version>('SELECT version, compatible_from FROM afterword_schema'))
    .rows[0]!;
  if (found.compatible_from > MIGRATIONS.length) throw newerSchema(found, connection);
  for (const [index, { sql, compatibleFrom }] of MIGRATIONS.entries()) {
    if (index < found.version) continue;
    await client.query(sql);
    await client.query('UPDATE afterword_schema SET version = $1, compatible_from = $2', [
      index + 1,
      compatibleFrom,
    ]);
  }
}

function newerSchema({ version, compatible_from: from }: Version, connection: ConnectionOptions): StartError {
  return new StartError(
    `the database ${placeOf(connection)} was written by a newer version of Afterword (schema ${version}, ` +
      `for programs that know ${from}; this one knows ${MIGRATIONS.length}); start that version, or a newer one`,
  );
}

const SEALED = [
  { queue: 'afterword_queue', what: 'pending deliveries', until: 'they are delivered' },
  { queue: 'afterword_run_queue', what: 'runs', until: 'they have ended' },
] as const;

/** What is sealed and cannot be opened could only be lost: better not to start. */
async function assertKeys(client: Client, keyring: Keyring): Promise<void> {
  for (const { queue, what, until } of SEALED) {
    const { rows } = await client.query<{ key_id: string; count: number }>(
      `SELECT key_id, count(*)::int AS count FROM ${queue} WHERE key_id <> ALL ($1::text[])
       GROUP BY key_id`,
      [[...keyring.keys.keys()]],
    );
    const [unknown] = rows;
    if (unknown === undefined) continue;
    throw new StartError(
      `${unknown.count} ${what} are sealed with the encryption key ${unknown.key_id}, which is not ` +
        `known here. Give that key in encryptionKey beside the new one until ${until}`,
    );
  }
}

/** A plain name, since any schema may have the tables. */
function channelOf(schema: string): string {
  return `afterword_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`;
}
