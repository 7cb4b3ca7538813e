/**
 * A database of the embedded store: SQL through a connection beside the store's own, as the write-ahead log
 * allows it.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { KEYS_PER_MS, parseRunId } from '../../src/store/sqlite/key.ts';
import { APP, PROJECT } from '../workload.ts';
import { bodyOf, runIdOf, SEALED_BYTES, STATUS, TARGET } from './deliveries.ts';
import { chunksOf, type Ground, type Past, type Tally } from './ground.ts';
import { storeAt } from './place.ts';

/** Run ids are of the millisecond, and otherwise made of the ordinal; keys follow as the store makes them. */
const ROWS = `
  WITH RECURSIVE
    ordinals (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM ordinals WHERE n < :last),
    timed (n, ms) AS (SELECT n, :from + CAST(n * :gap AS INTEGER) FROM ordinals),
    past (id, n, ms) AS (
      SELECT :key + (ms - :from) * ${KEYS_PER_MS} + n % ${KEYS_PER_MS}, n, ms FROM timed
    )`;
const FILL = [
  `INSERT INTO deliveries (id, project, state, due_at, round, attempts, cause, settled_at)
   ${ROWS} SELECT id, :project, 1, ms, 1, 1, 0, ms + 50 FROM past`,
  `INSERT INTO contents (id, run_id, app, target, status, created_at, key_id, sealed, body)
   ${ROWS} SELECT id, unhex(printf('%012x70008000%012x', ms, n)), :app, :target, :status, ms,
     '00000000', zeroblob(${SEALED_BYTES}), :body FROM past`,
  `INSERT INTO attempts (delivery, ordinal, round, number, cause, started_at, queue_ms, total_ms, status)
   ${ROWS} SELECT id, 1, 1, 1, 0, ms, 0.25, 50, :status FROM past`,
];
const TALLY = `
  SELECT
    (SELECT count(*) FROM deliveries WHERE state = 0) AS pending,
    (SELECT count(*) FROM deliveries WHERE id >= :key AND state = 1) AS delivered,
    (SELECT count(*) FROM attempts WHERE delivery >= :key AND status = :status) AS attempts,
    (SELECT count(DISTINCT delivery) FROM attempts WHERE delivery >= :key) AS attempted`;

export async function createSqliteGround(dir: string): Promise<Ground> {
  const place = { store: 'sqlite', dir } as const;
  const store = storeAt(place);
  await store.open();
  await store.close();
  const file = join(dir, 'afterword.db');
  return {
    place,
    addPast: past => addPast(file, past),
    async tally(since) {
      using db = new DatabaseSync(file, { readOnly: true });
      return { ...db.prepare(TALLY).get({ key: firstKey(since), status: STATUS }) } as unknown as Tally;
    },
    serverCpuMicros: async () => undefined,
    async clear() {
      using db = new DatabaseSync(file, { timeout: 5_000 });
      db.exec('BEGIN IMMEDIATE; DELETE FROM deliveries; DELETE FROM contents; DELETE FROM attempts; COMMIT');
    },
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Nothing of it needs to survive a crash, so it waits for no disk before the end. */
async function addPast(file: string, { deliveries, from, until, size }: Past): Promise<void> {
  using db = new DatabaseSync(file);
  db.exec('PRAGMA synchronous = OFF');
  const statements = FILL.map(sql => db.prepare(sql));
  const values = {
    key: firstKey(from),
    from,
    gap: (until - from) / deliveries,
    project: PROJECT,
    app: APP,
    target: TARGET,
    status: STATUS,
    body: bodyOf(runIdOf(from), size),
  };
  for (const statement of statements) statement.setAllowUnknownNamedParameters(true);
  for (const { first, last } of chunksOf(deliveries)) {
    db.exec('BEGIN IMMEDIATE');
    for (const statement of statements) statement.run({ ...values, first, last });
    db.exec('COMMIT');
    await setImmediate(); // a signal can come through
  }
  db.exec('PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)');
}

function firstKey(ms: number): number {
  return parseRunId(runIdOf(ms))!.first;
}
