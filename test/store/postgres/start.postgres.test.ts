/** What a start does to a database, and what it says when it cannot use it. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/errors.ts';
import type { ConnectionOptions } from '../../../src/store/postgres/connection.ts';
import { MIGRATIONS } from '../../../src/store/postgres/migrations.ts';
import { createKeyring } from '../../../src/store/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { createEmptyDatabase, type Database, startServer } from '../../support/postgres.ts';
import { closedPort } from '../../support/receivers.ts';
import { newDelivery, newRun } from '../samples.ts';
import { connectionOf, createTestStore, openTestStore, type StoreSetup } from './opening.ts';

async function refusal(setup: StoreSetup): Promise<string> {
  const error = await createTestStore(setup)
    .open()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StartError);
  return (error as StartError).message;
}

/** The refusal of the same database under other circumstances. */
function refusalOf({ url }: Database, connection: Partial<ConnectionOptions>): Promise<string> {
  return refusal({ url, connection: { ...connectionOf(url), ...connection } });
}

/** A user with few rights, in this database alone. */
async function createUser(database: Database): Promise<{ user: string; password: string }> {
  const user = database.name.replace('test', 'user');
  await database.query(`CREATE ROLE ${user} LOGIN PASSWORD 'guessed'`);
  return { user, password: 'guessed' };
}

async function dropUser(database: Database, user: string): Promise<void> {
  await database.query(`DROP OWNED BY ${user}`);
  await database.query(`DROP ROLE ${user}`);
}

describe('the schema', () => {
  it('is made once, by however many nodes start at the same moment', async () => {
    const database = await createEmptyDatabase();
    const stores = await Promise.all(Array.from({ length: 8 }, () => openTestStore(database)));
    expect(await database.query('SELECT version, compatible_from FROM afterword_schema')).toEqual([
      { version: MIGRATIONS.length, compatible_from: MIGRATIONS.at(-1)!.compatibleFrom },
    ]);
    expect(await database.query('SELECT FROM afterword_nodes')).toHaveLength(8);
    await stores[0]!.insert(newDelivery({ owned: false }));
    expect(await stores[7]!.claim(1)).toHaveLength(1);
  });

  it('may be newer than the program, where it says that this is well', async () => {
    const database = await createEmptyDatabase();
    await (await openTestStore(database)).close();
    await database.query('UPDATE afterword_schema SET version = 99');
    const store = await openTestStore(database);
    expect(await store.find(String(await store.insert(newDelivery())))).toBeDefined();
  });

  it('is refused where it says that it is not', async () => {
    const database = await createEmptyDatabase();
    await (await openTestStore(database)).close();
    await database.query('UPDATE afterword_schema SET version = 99, compatible_from = 99');
    expect(await refusal(database)).toContain('a newer version of Afterword (schema 99');
  });

  it('lies in the schema that the user has', async () => {
    const database = await createEmptyDatabase();
    const { user, password } = await createUser(database);
    await database.query(`CREATE SCHEMA ${user} AUTHORIZATION ${user}`);
    const { url } = database;
    const store = await openTestStore({ url, connection: { ...connectionOf(url), user, password } });
    await store.insert(newDelivery());
    expect(await database.query(`SELECT FROM ${user}.afterword_queue`)).toHaveLength(1);
    await store.close();
    await dropUser(database, user);
  });
});

describe('a start is refused', () => {
  it('where nothing listens', async () => {
    const database = await createEmptyDatabase();
    const port = await closedPort();
    expect(await refusalOf(database, { port })).toBe(
      `cannot connect to the database 127.0.0.1:${port}/${database.name}: nothing listens there`,
    );
  });

  it('where there is no such host, or no socket', async () => {
    const database = await createEmptyDatabase();
    expect(await refusalOf(database, { host: 'no-such-host.invalid' })).toMatch(
      /no-such-host\.invalid.*(no such host|cannot be resolved)/,
    );
    expect(await refusalOf(database, { host: '/no/such/folder' })).toContain('there is no such socket');
  });

  it('with a wrong password, or none, and never tells it', async () => {
    const database = await createEmptyDatabase();
    const wrong = await refusalOf(database, { password: 'hunter2' });
    expect(wrong).toContain('refused the password of user afterword');
    expect(wrong).not.toContain('hunter2');
    const { password: _, ...without } = connectionOf(database.url);
    expect(await refusal({ url: database.url, connection: without })).toContain('it asks for a password');
  });

  it('where there is no such database', async () => {
    const database = await createEmptyDatabase();
    const message = await refusalOf(database, { database: 'no_such_database' });
    expect(message).toContain('Make it with CREATE DATABASE "no_such_database"');
  });

  it('without the right to make tables', async () => {
    const database = await createEmptyDatabase();
    await database.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
    const login = await createUser(database);
    expect(await refusalOf(database, login)).toContain(`does not let user ${login.user} make its tables`);
    await dropUser(database, login.user);
  });

  it('where the database is read-only', async () => {
    const database = await createEmptyDatabase();
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    expect(await refusal(database)).toContain('is read-only');
  });

  it('where TLS is asked for and not to be had', async () => {
    const database = await createEmptyDatabase();
    expect(await refusalOf(database, { ssl: { rejectUnauthorized: false } })).toContain(
      'does not support TLS',
    );
  });

  it.each(['off', 'local'])('where synchronous_commit is %s', async value => {
    const database = await createEmptyDatabase();
    await database.query(`ALTER DATABASE ${database.name} SET synchronous_commit = ${value}`);
    const message = await refusal(database);
    expect(message).toContain('cannot promise durability');
    expect(message).toContain(`synchronous_commit is ${value}`);
  });

  it('where the server does not wait for its disk', async () => {
    const server = await startServer({ settings: { fsync: 'off', full_page_writes: 'off' } });
    onTestFinished(() => server.close());
    const message = await refusal(server);
    expect(message).toContain('fsync is off, full_page_writes is off');
    expect(message).toContain('Set them to on');
  });

  it.each<[string, (store: Store) => Promise<unknown>]>([
    [
      'pending deliveries',
      store => store.insert(newDelivery({ confidential: { secret: Buffer.from('secret') } })),
    ],
    ['runs', store => store.runs.insert(newRun())],
  ])('with %s whose key is not known', async (what, insert) => {
    const database = await createEmptyDatabase();
    const store = await openTestStore(database);
    await insert(store);
    await store.close();
    const other = createKeyring([new Uint8Array(32).fill(9)]);
    expect(await refusal({ url: database.url, keyring: other })).toMatch(
      new RegExp(`^1 ${what} are sealed with the encryption key [0-9a-f]{8}, which is not known here`),
    );
  });
});

describe('a store that did not open', () => {
  it('can be closed, and takes nothing', async () => {
    const database = await createEmptyDatabase();
    const store = createTestStore({
      url: database.url,
      connection: { ...connectionOf(database.url), database: 'no_such_database' },
    });
    await expect(store.insert(newDelivery())).rejects.toThrow('not open');
    await expect(store.open()).rejects.toThrow(StartError);
    expect(store.available).toBe(false);
    await store.close();
  });
});
