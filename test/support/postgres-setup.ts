/**
 * The PostgreSQL server of a run of the tests: a new one, or the one that AFTERWORD_TEST_DATABASE_URL names. On
 * it, the database that those of the tests are copies of: to make the tables takes several times as long.
 */
import type { TestProject } from 'vitest/node';
import { systemClock } from '../../src/clock.ts';
import { openDatabase } from '../../src/store/postgres/opening.ts';
import { createKeyring } from '../../src/store/seal.ts';
import { createDatabaseOn, type Database } from './postgres-database.ts';
import { startServer } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a user who may create databases. */
    databaseUrl: string;
    /** The name of one that has the tables, and nothing in them. */
    databaseTemplate: string;
  }
}

/** What it writes ahead is memory, too. */
const IN_MEMORY = { max_wal_size: '256MB' };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['AFTERWORD_TEST_DATABASE_URL'];
  const server = given === undefined ? await startServer({ inMemory: true, settings: IN_MEMORY }) : undefined;
  const url = given ?? server!.url;
  const template = await createTemplate(url);
  project.provide('databaseUrl', url);
  project.provide('databaseTemplate', template.name);
  return async () => {
    await template.drop();
    await server?.close();
  };
}

async function createTemplate(admin: string): Promise<Database> {
  const database = await createDatabaseOn(admin);
  const { hostname, port, username, password } = new URL(admin);
  const login = { user: decodeURIComponent(username), password: decodeURIComponent(password) };
  const connection = { host: hostname, port: Number(port), database: database.name, ...login };
  const keyring = createKeyring([new Uint8Array(32)]);
  await openDatabase({ connection, keyring, clock: systemClock });
  return database;
}
