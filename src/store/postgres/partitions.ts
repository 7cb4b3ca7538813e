/**
 * The days' partitions of what is written once. They are made some days ahead, so that no insert ever waits for
 * one, and dropped as a whole. A day is that of the run id, in UTC.
 */
import type { Client } from 'pg';
import { type Database, databaseOn, inTransaction, type Statement } from './connection.ts';
import { CHECK_VIOLATION, LOCK_NOT_AVAILABLE, sqlState, UNDEFINED_TABLE } from './faults.ts';

export const PARTITIONED = [
  'afterword_deliveries',
  'afterword_body_parts',
  'afterword_attempts',
  'afterword_settled',
] as const;

export const DAY_MS = 86_400_000;
const DAYS_BEFORE = 1;
const DAYS_AHEAD = 3;
const LOCK_TIMEOUT = '1s';
const NAME = /^afterword_settled_(\d{4})(\d{2})(\d{2})$/;

/** Advisory locks of this program, in the second part of their key those of one schema. */
const LOCK_CLASS = 0x61667465;
export const LOCK = `${LOCK_CLASS}, hashtext(current_schema())`;
/** Those of an app whose runs are being claimed. */
export const RUN_LOCK_CLASS = LOCK_CLASS + 1;
/** Those of a key that somebody gave with an action. */
export const KEY_LOCK_CLASS = LOCK_CLASS + 2;

export interface Day {
  /** When it begins. */
  readonly start: number;
  /** The end of its partitions' names. */
  readonly suffix: string;
}

export function dayOf(ms: number): Day {
  const start = Math.floor(ms / DAY_MS) * DAY_MS;
  return { start, suffix: new Date(start).toISOString().slice(0, 10).replaceAll('-', '') };
}

/** The least UUID of that millisecond. */
export function firstId(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

const EXISTING: Statement = {
  text: `
    SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'afterword_settled'::regclass`,
};

const NOW: Statement = { text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now' };

export async function existingDays(database: Database): Promise<Day[]> {
  const { rows } = await database.query<{ name: string }>(EXISTING);
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = NAME.exec(name) ?? [];
    return day === undefined ? [] : [dayOf(Date.UTC(Number(year), Number(month) - 1, Number(day)))];
  });
}

/** Makes what is missing of yesterday and the days to come. */
export async function makePartitions(client: Client): Promise<void> {
  const { now } = (await databaseOn(client).query<{ now: number }>(NOW)).rows[0]!;
  const count = DAYS_BEFORE + 1 + DAYS_AHEAD;
  await makeDays(
    client,
    Array.from({ length: count }, (_, index) => dayOf(now + (index - DAYS_BEFORE) * DAY_MS)),
  );
}

/** Makes what is missing of these days. */
export async function makeDays(client: Client, days: readonly Day[]): Promise<void> {
  const existing = new Set((await existingDays(databaseOn(client))).map(({ suffix }) => suffix));
  for (const day of days) {
    if (existing.has(day.suffix)) continue;
    await makeDay(client, day).catch((error: unknown) => {
      // Some of that day are in the default partition already, where the rest can go as well.
      if (sqlState(error) !== CHECK_VIOLATION) throw error;
    });
  }
}

/** Attached when they are complete: that lets inserts go on meanwhile, which creating them in place does not. */
async function makeDay(client: Client, { start, suffix }: Day): Promise<void> {
  const range = `FROM ('${firstId(start)}') TO ('${firstId(start + DAY_MS)}')`;
  const tables = PARTITIONED.map(
    table => `
      CREATE TABLE ${table}_${suffix} (LIKE ${table} INCLUDING ALL);
      ALTER TABLE ${table} ATTACH PARTITION ${table}_${suffix} FOR VALUES ${range};`,
  );
  await inTransaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK}); SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    const made = await client.query(
      `SELECT to_regclass('${PARTITIONED.at(-1)}_${suffix}') IS NOT NULL AS made`,
    );
    if ((made.rows[0] as { made: boolean }).made) return; // by another node, a moment ago
    await client.query(tables.join(''));
  });
}

/** Nothing of a day is pending or may still become a delivery, and nothing of it settled at $1 or later. */
const OVER = (suffix: string) => `
  SELECT NOT EXISTS (SELECT FROM afterword_queue WHERE id >= $2::uuid AND id < $3::uuid)
    AND NOT EXISTS (SELECT FROM afterword_run_queue WHERE id >= $2::uuid AND id < $3::uuid)
    AND NOT EXISTS (SELECT FROM afterword_settled_${suffix} WHERE settled_at >= $1::float8) AS over`;

/** Others do the same: one of them was first, or the tables are in use. Both are well. */
const NOT_NOW: ReadonlySet<string | undefined> = new Set([UNDEFINED_TABLE, LOCK_NOT_AVAILABLE]);

/** Drops a day where it is over; tells how many deliveries went with it. */
export async function dropDay(client: Client, day: Day, before: number): Promise<number> {
  try {
    if (!(await isOver(client, day, before))) return 0;
    const count = await countSettled(client, day);
    return (await inTransaction(client, () => dropTables(client, day, before))) ? count : 0;
  } catch (error) {
    if (NOT_NOW.has(sqlState(error))) return 0;
    throw error;
  }
}

async function isOver(client: Client, { start, suffix }: Day, before: number): Promise<boolean> {
  const ids = [firstId(start), firstId(start + DAY_MS)];
  const { rows } = await client.query<{ over: boolean }>(OVER(suffix), [before, ...ids]);
  return rows[0]!.over;
}

async function countSettled(client: Client, { suffix }: Day): Promise<number> {
  const count = `SELECT count(*)::float8 AS count FROM afterword_settled_${suffix}`;
  return (await client.query<{ count: number }>(count)).rows[0]!.count;
}

async function dropTables(client: Client, day: Day, before: number): Promise<boolean> {
  // The parents first, and all of them: nothing may be on its way to what is then no longer there.
  await client.query(`
    SET LOCAL lock_timeout = '${LOCK_TIMEOUT}';
    LOCK TABLE ${PARTITIONED.join(', ')} IN ACCESS EXCLUSIVE MODE`);
  if (!(await isOver(client, day, before))) return false;
  await client.query(`DROP TABLE ${PARTITIONED.map(table => `${table}_${day.suffix}`).join(', ')}`);
  return true;
}
