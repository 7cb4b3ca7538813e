/**
 * A database of a test's own on a running PostgreSQL server: an empty one, or a copy of another.
 */
import { randomBytes } from 'node:crypto';
import { Client, Pool, type QueryResultRow } from 'pg';

export interface Database {
  readonly name: string;
  readonly url: string;
  /** The rows of one statement. */
  query<Row extends QueryResultRow>(sql: string, params?: readonly unknown[]): Promise<Row[]>;
  drop(): Promise<void>;
}

/** `admin` is the URL of a user who may create databases; nobody may be connected to the template. */
export async function createDatabaseOn(admin: string, template = 'template1'): Promise<Database> {
  const name = `afterword_test_${randomBytes(6).toString('hex')}`;
  await runOnce(admin, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  const pool = new Pool({ connectionString: url.href, max: 1 });
  pool.on('error', () => {}); // the server went away while nobody asked
  return {
    name,
    url: url.href,
    async query<Row extends QueryResultRow>(sql: string, params: readonly unknown[] = []) {
      const { rows } = await pool.query<Row>(sql, [...params]);
      return rows;
    },
    async drop() {
      await pool.end();
      await runOnce(admin, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function runOnce(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
