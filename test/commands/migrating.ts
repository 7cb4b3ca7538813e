/** What the tests of `afterword migrate` stand on: a data directory, a database, the command, and nodes. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { silentLogger } from '../../src/log.ts';
import { createPostgresStore } from '../../src/store/postgres/store.ts';
import { createKeyring } from '../../src/store/seal.ts';
import type { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../store/samples.ts';
import { openTestStore } from '../store/sqlite/opening.ts';
import type { Database } from '../support/postgres.ts';
import { run } from './run.ts';

export const NEW_KEY = Buffer.alloc(32, 1);
export const OLD_KEY = Buffer.alloc(32, 2);
export const KEPT_KEY = Buffer.alloc(32, 3);
const LAUNCHER = fileURLToPath(new URL('../../bin/afterword', import.meta.url));

export interface Place {
  /** The configuration file of the nodes. */
  readonly file: string;
  /** The data directory of the embedded store. */
  readonly data: string;
}

export function configure(database: Pick<Database, 'url'> | undefined, data: string): Place {
  const file = join(temporaryDirectory(), 'nodes.yaml');
  const config = {
    data,
    encryptionKey: [NEW_KEY, OLD_KEY].map(key => key.toString('base64')),
    ...(database && { database: database.url }),
  };
  writeFileSync(file, JSON.stringify(config));
  return { file, data };
}

/** An embedded store sealed with one key, closed when `work` is done. */
export async function embedded<T>(key: Buffer, data: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openEmbedded(data, [key]);
  const done = await work(store);
  await store.close();
  return done;
}

export function openEmbedded(data: string, keys: readonly Buffer[]): Promise<Store> {
  return openTestStore({ dir: data, spoolDir: join(data, 'spool'), keyring: createKeyring(keys) });
}

/** A node on the database of a configuration. */
export async function openNode({ file }: Place): Promise<Store> {
  const { config } = loadConfig({ file, env: {}, cwd: '/' });
  const { connections, ...connection } = config.database!;
  const store = createPostgresStore({
    connection,
    connections,
    keyring: createKeyring(config.encryptionKeys),
    nodeId: randomUUID(),
    spoolDir: temporaryDirectory(),
    clock: systemClock,
    log: silentLogger,
  });
  onTestFinished(() => store.close());
  await store.open();
  return store;
}

export const migrate = ({ file }: Place, ...more: string[]) =>
  run(['migrate', '--config', file, '--json', ...more]);

export interface MigrateProcess {
  /** With the exit code, or null where it was killed. */
  readonly ended: Promise<number | null>;
  /** Resolves once it has told so. */
  printed(line: RegExp): Promise<void>;
  kill(): Promise<number | null>;
}

/** The command as a process of its own, to be killed. */
export function startMigrate({ file }: Place): MigrateProcess {
  const child = spawn(process.execPath, [LAUNCHER, 'migrate', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const kill = () => {
    child.kill('SIGKILL');
    return ended;
  };
  onTestFinished(async () => void (await kill()));
  const lines = createInterface(child.stderr);
  return {
    ended,
    kill,
    async printed(expected) {
      for await (const line of lines) if (expected.test(line)) return;
      await new Promise(() => {}); // it ended before
    },
  };
}

/** From now on the database has no room in a table, for rows that are as `when` says; until it is told otherwise. */
export async function refusing(
  database: Database,
  table: string,
  when = '',
): Promise<() => Promise<unknown>> {
  await database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'disk_full'; END $$`);
  await database.query(
    `CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH ROW ${when} EXECUTE FUNCTION refuse()`,
  );
  return () => database.query(`DROP TRIGGER refuse ON ${table}`);
}
