/**
 * How the store reaches the server: a pool for its statements, and single connections for what must not wait
 * for them or needs one to itself. Nothing depends on the state of a session, so that a pooler may stand
 * between.
 */
import {
  Client,
  type ClientBase,
  type ClientConfig,
  Pool,
  type PoolClient,
  type QueryResult,
  type QueryResultRow,
} from 'pg';
import { createLimit } from './limit.ts';

export interface ConnectionOptions {
  /** A name, an address, or the absolute path of the folder that has the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  /** Absent: not encrypted. */
  readonly ssl?: Exclude<ClientConfig['ssl'], boolean | undefined>;
}

/** Named ones are prepared once for a connection; the others are planned anew each time, for their values. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

export interface Database {
  query<Row extends QueryResultRow>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<QueryResult<Row>>;
}

export interface DatabasePool extends Database {
  /**
   * All of `work`, or nothing of it, in a transaction that `begin` begins. Some of the connections are for other
   * statements alone.
   */
  transaction<T>(begin: string, work: (database: Database) => Promise<T>): Promise<T>;
  /** Ends all connections; what is under way fails. */
  end(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** A connection that is silent for so long is taken for dead. */
const QUERY_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 60_000;
const GOODBYE_MS = 500;
/** Of the connections: what people ask for must not keep deliveries waiting. */
const IN_TRANSACTIONS = 1 / 4;

export function createPool(connection: ConnectionOptions, max: number): DatabasePool {
  const pool = new Pool({ ...clientConfig(connection), max, idleTimeoutMillis: IDLE_TIMEOUT_MS });
  const clients = new Set<PoolClient>();
  const limit = createLimit(Math.max(1, Math.floor(max * IN_TRANSACTIONS)));
  pool.on('error', () => {}); // of an idle connection: the pool has dropped it already
  pool.on('connect', client => {
    clients.add(client);
    client.on('error', () => {}); // in a transaction: its next statement fails
  });
  pool.on('remove', client => clients.delete(client));
  return {
    query: ({ name, text }, values = []) => pool.query({ ...(name && { name }), text, values: [...values] }),
    transaction: (begin, work) => limit(() => transact(pool, begin, work)),
    async end() {
      const ended = pool.end();
      await Promise.all([...clients].map(disconnect));
      await ended;
    },
  };
}

async function transact<T>(pool: Pool, begin: string, work: (database: Database) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let whole = false;
  try {
    await client.query(begin);
    const result = await work(databaseOn(client));
    await client.query('COMMIT');
    whole = true;
    return result;
  } finally {
    client.release(!whole); // with its connection, the transaction ends too
  }
}

export interface SingleOptions {
  readonly connection: ConnectionOptions;
  readonly timeoutMs: number;
}

/** A connection that is not yet open. */
export function createClient({ connection, timeoutMs }: SingleOptions): Client {
  const client = new Client({
    ...clientConfig(connection),
    connectionTimeoutMillis: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    query_timeout: timeoutMs,
  });
  client.on('error', () => {}); // a query that fails, or the event `end`, tells as well
  return client;
}

/** A connection as what statements are given to. */
export function databaseOn(client: ClientBase): Database {
  return {
    query: ({ name, text }, values = []) =>
      client.query({ ...(name && { name }), text, values: [...values] }),
  };
}

/** Gives `work` a connection to itself, for what takes several statements or a long time. */
export async function withClient<T>(
  options: SingleOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = createClient(options);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await disconnect(client);
  }
}

/** Says goodbye, but does not wait long for a server that does not answer. */
export async function disconnect(client: Client): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), GOODBYE_MS);
  await client.end();
  clearTimeout(timer);
}

/** All of `work`, or nothing of it. */
export async function inTransaction<T>(client: Client, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN');
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {}); // where there is no connection any more
    throw error;
  }
}

function clientConfig({ password, ssl, ...where }: ConnectionOptions): ClientConfig {
  return {
    ...where,
    // Given as a function, or pg would look for one in the environment and in the user's files.
    password: () => password ?? '',
    ssl: ssl ?? false,
    application_name: 'afterword',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  };
}
