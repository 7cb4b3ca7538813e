/** When the server is gone, hangs, or takes no writes: operations wait, the store says so, and nothing is lost. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Client } from 'pg';
import { captureLog } from '../../support/log.ts';
import type { Database } from '../../support/postgres.ts';
import { type PostgresServer, startServer } from '../../support/postgres-server.ts';
import { until } from '../../support/waiting.ts';
import { attempt, newDelivery, newRun } from '../samples.ts';
import { connectionOf, openTestStore, SHORT_LEASE } from './opening.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startServer({ settings: { max_connections: '20' } });
});
afterAll(() => server.close());

async function createDatabase(): Promise<Database> {
  const database = await server.createDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** Awaited later: what fails meanwhile has somebody who hears of it. */
const settling = <T>(promises: readonly Promise<T>[]) => Promise.allSettled(promises);

describe('a server that crashes', () => {
  it('is waited for: everything is written when it is back', async () => {
    const database = await createDatabase();
    const { log, lines } = captureLog();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE, log });
    const kept = newDelivery();
    const ref = await store.insert({ ...kept, begunAt: Date.now() });
    await server.stop('immediate');

    const deliveries = Array.from({ length: 50 }, () => newDelivery());
    const inserts = settling(deliveries.map(delivery => store.insert(delivery)));
    const ended = settling([store.endAttempt(ref, attempt(1), { state: 'delivered' })]);
    const run = settling([store.runs.insert(newRun())]);
    const counted = settling([store.backlog()]);
    await until(() => !store.available);
    await until(() => store.tenure === undefined);

    await server.start();
    expect((await inserts).every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await ended).toMatchObject([{ value: true }]);
    expect(await run).toMatchObject([{ value: { outcome: 'inserted' } }]);
    expect((await counted).map(({ status }) => status)).toEqual(['fulfilled']);
    await until(() => store.available && store.tenure !== undefined);
    expect(await store.find(kept.runId)).toMatchObject({ state: 'delivered' });
    expect((await store.backlog()).pending.get('p-demo')).toBe(51);
    expect(lines.map(({ event }) => event)).toEqual(['store_unavailable', 'store_available']);
  });

  it('is noticed by a store that has nothing to write', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE });
    expect(store.available).toBe(true);
    await server.stop('immediate');
    await until(() => !store.available);
    await server.start();
    await until(() => store.available);
  });

  it('does not keep a store from closing, which says what it could not write', async () => {
    const database = await createDatabase();
    const { log, lines } = captureLog();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE, log });
    await server.stop('immediate');
    const inserts = settling([store.insert(newDelivery()), store.insert(newDelivery())]);
    await until(() => !store.available);
    await store.close();
    expect((await inserts).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const unwritten = lines.filter(({ event }) => event === 'store_closed_unwritten');
    expect(unwritten.reduce((sum, line) => sum + Number(line['operations']), 0)).toBe(2);
    await server.start();
  });
});

describe('a server that hangs', () => {
  it('is noticed, and forgotten when it goes on', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE });
    const delivery = newDelivery();
    server.pause();
    const insert = settling([store.insert(delivery)]);
    await until(() => !store.available);
    expect(store.tenure).toBeUndefined();
    server.resume();
    expect(await insert).toMatchObject([{ status: 'fulfilled' }]);
    await until(() => store.available);
    expect(await store.find(delivery.runId)).toMatchObject({ state: 'pending' });
  });

  it('does not keep a store from closing', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE });
    server.pause();
    const insert = settling([store.insert(newDelivery())]);
    await until(() => !store.available);
    await store.close();
    expect(await insert).toMatchObject([{ status: 'rejected' }]);
    server.resume();
  });
});

describe('a server that takes no writes', () => {
  it('in a read-only database', async () => {
    const database = await createDatabase();
    const readOnly = `ALTER DATABASE ${connectionOf(database.url).database} SET default_transaction_read_only`;
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE });
    const elsewhere = new Client(server.url);
    await elsewhere.connect();
    onTestFinished(() => elsewhere.end());
    const reconnect = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'afterword'`;

    await elsewhere.query(`${readOnly} = on`);
    await elsewhere.query(reconnect);
    const insert = settling([store.insert(newDelivery())]);
    await until(() => !store.available);
    expect((await store.backlog()).pending.size).toBe(0); // it can be read

    await elsewhere.query(`${readOnly} = off`);
    await elsewhere.query(reconnect);
    expect(await insert).toMatchObject([{ status: 'fulfilled' }]);
    await until(() => store.available);
  });

  it('since it is out of connections, which a start waits for as well', async () => {
    const database = await createDatabase();
    const store = await openTestStore({ url: database.url, lease: SHORT_LEASE });
    const hoarders = await hoardConnections();
    const insert = settling([store.insert(newDelivery())]);
    await until(() => !store.available);
    const opened = openTestStore({ url: database.url });
    await Promise.all(hoarders.map(client => client.end()));
    expect(await insert).toMatchObject([{ status: 'fulfilled' }]);
    await until(() => store.available);
    await opened;
  });
});

/** All that the server has to give, those of the store included. */
async function hoardConnections(): Promise<Client[]> {
  const clients: Client[] = [];
  const hoard = async () => {
    for (;;) {
      const client = new Client(server.url);
      client.on('error', () => {});
      await client.connect();
      clients.push(client);
    }
  };
  await hoard().catch(() => {});
  await clients[0]!.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'afterword'`,
  );
  await hoard().catch(() => {});
  return clients;
}
