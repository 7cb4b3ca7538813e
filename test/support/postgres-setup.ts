/**
 * The PostgreSQL server of a run of the tests: a new one, or the one that AFTERWORD_TEST_DATABASE_URL names.
 */
import type { TestProject } from 'vitest/node';
import { startServer } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a user who may create databases. */
    databaseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env['AFTERWORD_TEST_DATABASE_URL'];
  if (given !== undefined) {
    project.provide('databaseUrl', given);
    return undefined;
  }
  const server = await startServer();
  project.provide('databaseUrl', server.url);
  return () => server.close();
}
