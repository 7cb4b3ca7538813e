/**
 * PostgreSQL for tests: a database of its own for each, on the one server of the run, or a whole server.
 */
import { inject, onTestFinished } from 'vitest';
import { createDatabaseOn, type Database } from './postgres-database.ts';

export type { Database } from './postgres-database.ts';
export { type PostgresServer, type StopMode, startServer } from './postgres-server.ts';

/** As a node leaves it that has made its tables. Dropped when the test finishes that asks for it. */
export function createDatabase(): Promise<Database> {
  return createFrom(inject('databaseTemplate'));
}

/** For tests in which the tables are made, or are not. */
export function createEmptyDatabase(): Promise<Database> {
  return createFrom(undefined);
}

async function createFrom(template: string | undefined): Promise<Database> {
  const database = await createDatabaseOn(inject('databaseUrl'), template);
  onTestFinished(() => database.drop());
  return database;
}
