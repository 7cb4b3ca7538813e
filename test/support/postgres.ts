/**
 * PostgreSQL for tests: a database of its own for each, on the one server of the run, or a whole server.
 */
import { inject, onTestFinished } from 'vitest';
import { createDatabaseOn, type Database } from './postgres-database.ts';

export type { Database } from './postgres-database.ts';
export { type PostgresServer, type StopMode, startServer } from './postgres-server.ts';

/** Dropped when the test finishes that asks for it. */
export async function createDatabase(): Promise<Database> {
  const database = await createDatabaseOn(inject('databaseUrl'));
  onTestFinished(() => database.drop());
  return database;
}
