/** The shared store passes the common suite; what is PostgreSQL's own is tested under postgres/. */
import { createDatabase, type Database } from '../support/postgres.ts';
import { type Place, storeConformance } from './conformance.ts';
import { openTestStore } from './postgres/opening.ts';

const databases = new Map<string, Promise<Database>>();

/** The database of a place is made when the place is first opened. */
function databaseOf({ dir }: Place): Promise<Database> {
  const database = databases.get(dir) ?? createDatabase();
  databases.set(dir, database);
  return database;
}

storeConformance('PostgreSQL', async place => {
  const { url } = await databaseOf(place);
  return openTestStore({ url, spoolDir: place.spoolDir });
});
