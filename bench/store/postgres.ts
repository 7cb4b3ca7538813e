/**
 * Databases of the store on PostgreSQL: on a server that the bench starts with the settings of a small real
 * one, or on the server that it is given.
 */
import { hostOf } from '../../src/store/ledger.ts';
import { DAY_MS, dayOf, firstId, PARTITIONED } from '../../src/store/postgres/partitions.ts';
import { createDatabaseOn, type Database } from '../../test/support/postgres-database.ts';
import { startServer } from '../../test/support/postgres-server.ts';
import { APP, PROJECT } from '../workload.ts';
import { bodyOf, runIdOf, SEALED_BYTES, STATUS, TARGET } from './deliveries.ts';
import { chunksOf, type Ground, type Past, type Tally } from './ground.ts';
import { storeAt } from './place.ts';
import { serverCpuMicros } from './server-cpu.ts';

const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' };

/** All of a delivery but the queue, which is empty between turns and keeps its pages. */
const HISTORY = PARTITIONED.join();

/** Run ids are of the millisecond, and otherwise made of the ordinal. */
const ROWS = `
  WITH timed (n, ms) AS (
    SELECT n, $3::bigint + floor(n * $4::float8)::bigint FROM generate_series($1::bigint, $2::bigint) n
  ), past (id, ms) AS (
    SELECT (lpad(to_hex(ms), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, ms FROM timed
  )`;

interface Filling {
  readonly sql: string;
  /** After the four of ROWS. */
  readonly values: (past: Past) => readonly unknown[];
}

const FILL: readonly Filling[] = [
  {
    sql: `${ROWS}
      INSERT INTO afterword_deliveries
        (id, project, app, target, host, status, created_at, key_id, sealed, body)
      SELECT id, $5, $6, $7, $11, $8, ms, '00000000', $9, $10 FROM past`,
    values: ({ from, size }) => [
      PROJECT,
      APP,
      TARGET,
      STATUS,
      Buffer.alloc(SEALED_BYTES),
      bodyOf(runIdOf(from), size),
      hostOf(TARGET),
    ],
  },
  {
    sql: `${ROWS}
      INSERT INTO afterword_attempts (id, round, number, cause, started_at, queue_ms, total_ms, status)
      SELECT id, 1, 1, 0, ms, 0.25, 50, $5 FROM past`,
    values: () => [STATUS],
  },
  {
    sql: `${ROWS}
      INSERT INTO afterword_settled (id, state, round, settled_at, project, app, host, last_status)
      SELECT id, 1, 1, ms + 50, $5, $6, $7, $8 FROM past`,
    values: () => [PROJECT, APP, hostOf(TARGET), STATUS],
  },
];

const TALLY = `
  SELECT
    (SELECT count(*) FROM afterword_queue)::int AS pending,
    (SELECT count(*) FROM afterword_settled WHERE id >= $1 AND state = 1)::int AS delivered,
    (SELECT count(*) FROM afterword_attempts WHERE id >= $1 AND status = $2)::int AS attempts,
    (SELECT count(DISTINCT id) FROM afterword_attempts WHERE id >= $1)::int AS attempted`;

export interface PostgresServer {
  createGround(dir: string): Promise<Ground>;
  close(): Promise<void>;
}

/** `url` is of a user who may create databases; a server is started where it is not given. */
export async function openPostgres(url?: string): Promise<PostgresServer> {
  if (url !== undefined) return { createGround: dir => createGround(dir, url), close: async () => {} };
  const server = await startServer({ settings: SETTINGS });
  return { createGround: dir => createGround(dir, server.url), close: () => server.close() };
}

async function createGround(dir: string, admin: string): Promise<Ground> {
  const database = await createDatabaseOn(admin);
  const place = { store: 'postgres', dir, url: database.url } as const;
  const store = storeAt(place);
  await store.open();
  await store.close();
  return {
    place,
    addPast: past => addPast(database, past),
    async tally(since) {
      const [tally] = await database.query<Tally & Record<string, number>>(TALLY, [runIdOf(since), STATUS]);
      return tally!;
    },
    async serverCpuMicros() {
      const [backend] = await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      return serverCpuMicros(backend!.pid);
    },
    async clear() {
      await database.query(`TRUNCATE ${HISTORY}`);
    },
    remove: () => database.drop(),
  };
}

async function addPast(database: Database, past: Past): Promise<void> {
  const { deliveries, from, until } = past;
  for (let ms = from; dayOf(ms).start <= until; ms += DAY_MS) await addDay(database, ms);
  for (const { first, last } of chunksOf(deliveries)) {
    for (const { sql, values } of FILL) {
      await database.query(sql, [first, last, from, (until - from) / deliveries, ...values(past)]);
    }
  }
  await database.query(`VACUUM (ANALYZE) ${HISTORY}`);
  await database.query('CHECKPOINT');
}

/** As the store would have made it when that day was near. */
async function addDay(database: Database, ms: number): Promise<void> {
  const { start, suffix } = dayOf(ms);
  const range = `FROM ('${firstId(start)}') TO ('${firstId(start + DAY_MS)}')`;
  for (const table of PARTITIONED) {
    await database.query(
      `CREATE TABLE IF NOT EXISTS ${table}_${suffix} PARTITION OF ${table} FOR VALUES ${range}`,
    );
  }
}
