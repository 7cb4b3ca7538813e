/**
 * The processes of the bench of asynchronous calls: for each store two services, one with an empty queue and one
 * with a deep one, an app for both, and the load generator.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import { issueToken } from '../../src/token.ts';
import { type PostgresServer, startServer } from '../../test/support/postgres-server.ts';
import { type Child, type ChildOptions, startChild } from '../child.ts';
import { PROJECT } from '../workload.ts';
import { asyncRequestOf, CONCURRENCIES, HELD, HELD_AT_ONCE, quickApp } from './calls.ts';
import type { AsyncLoad } from './load.ts';

export const STORES = ['sqlite', 'postgres'] as const;
export type StoreName = (typeof STORES)[number];

/** A service whose queue has a certain depth. */
export interface Site {
  readonly port: number;
  cpuMicros(): Promise<number>;
  /** Resolves once nothing is carried out but what is held. */
  settled(): Promise<void>;
}

export interface Sites {
  readonly store: StoreName;
  readonly empty: Site;
  readonly deep: Site;
}

export interface Stand {
  readonly sites: readonly Sites[];
  readonly app: Child;
  readonly load: Child;
  readonly token: string;
  close(): Promise<void>;
}

export interface StandOptions {
  readonly stores: readonly StoreName[];
  /** Runs in the deep queue. */
  readonly depth: number;
  readonly interrupted: AbortSignal;
  readonly progress: (line: string) => void;
}

const LAUNCHER = join(import.meta.dirname, '..', '..', 'bin', 'afterword');
const JWT_SECRET = 'known to the bench alone, and long enough for HS256';
const ENCRYPTION_KEY = Buffer.alloc(32, 'not a secret').toString('base64');
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' };
const FILLING = { connections: 32, limitMs: 600_000 };

/** Whatever happens, what was started is ended again: by `close`, by `interrupted`, or here. */
export async function openStand(options: StandOptions): Promise<Stand> {
  const dir = await mkdtemp(join(tmpdir(), 'afterword-bench-'));
  const ground = createGround(dir, options.interrupted);
  options.interrupted.addEventListener('abort', () => void ground.close());
  try {
    const [app, load] = await Promise.all([ground.script('app', 1), ground.script('load', 0)]);
    const projectId = PROJECT;
    const token = await issueToken({ secret: JWT_SECRET, projectId, ttlSeconds: 86_400, clock: systemClock });
    const sites: Sites[] = [];
    for (const store of options.stores) {
      const { empty, deep } = await openSites(ground, store, app.ports[0]!);
      options.progress(`${store}: ${options.depth} runs are queued`);
      const filling: AsyncLoad = {
        ...FILLING,
        port: deep.ports[1]!,
        request: asyncRequestOf(HELD, token),
        calls: options.depth,
      };
      await load.ask('load', filling);
      const held = Math.min(options.depth, HELD_AT_ONCE);
      sites.push({ store, empty: siteOf(empty, 0), deep: siteOf(deep, held) });
    }
    return { sites, app, load, token, close: () => ground.close() };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** What starts processes, and ends all that it has started. */
interface Ground {
  script(name: string, listeners: number): Promise<Child>;
  serve(name: string, config: object): Promise<Child>;
  startPostgres(): Promise<PostgresServer>;
  close(): Promise<void>;
}

function createGround(dir: string, interrupted: AbortSignal): Ground {
  const closers = [() => rm(dir, { recursive: true, force: true })];
  const start = async (name: string, options: Omit<ChildOptions, 'output'>): Promise<Child> => {
    interrupted.throwIfAborted();
    const child = startChild({ ...options, output: join(dir, `${name}.log`) });
    closers.push(() => child.stop());
    await child.listening;
    return child;
  };
  return {
    script: (name, listeners) => start(name, { entry: join(import.meta.dirname, `${name}.ts`), listeners }),
    async serve(name, config) {
      await mkdir(join(dir, name));
      const file = join(dir, name, 'afterword.yaml');
      await writeFile(file, JSON.stringify(config)); // YAML takes JSON
      return start(name, { entry: LAUNCHER, args: ['serve', '--config', file], listeners: 2 });
    },
    async startPostgres() {
      const server = await startServer({ settings: SETTINGS });
      closers.push(() => server.close());
      return server;
    },
    async close() {
      for (const close of closers.splice(0).reverse()) await close();
    },
  };
}

type Pair = Readonly<Record<'empty' | 'deep', Child>>;

async function openSites(ground: Ground, store: StoreName, appPort: number): Promise<Pair> {
  const config = configFor(appPort);
  const server = store === 'postgres' ? await ground.startPostgres() : undefined;
  const open = async (name: 'empty' | 'deep'): Promise<Child> => {
    const database = await server?.createDatabase();
    const shared = database && { database: database.url, encryptionKey: ENCRYPTION_KEY };
    return ground.serve(`${store}-${name}`, { ...config, ...shared });
  };
  const [empty, deep] = await Promise.all([open('empty'), open('deep')]);
  return { empty, deep };
}

/** With the defaults but for what a bench on one machine needs. */
function configFor(appPort: number): object {
  const at = (path: string, concurrency: number) => ({
    runtime: 'custom',
    url: `http://127.0.0.1:${appPort}/${path}`,
    concurrency,
  });
  const quick = CONCURRENCIES.map(each => [`${PROJECT}/${quickApp(each)}`, at('quick', each)] as const);
  return {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    data: './data',
    logLevel: 'warn',
    projects: { [PROJECT]: { jwt: { secret: JWT_SECRET }, maxPending: 1_000_000 } },
    apps: { [`${PROJECT}/${HELD}`]: at(HELD, HELD_AT_ONCE), ...Object.fromEntries(quick) },
  };
}

/** It opens its admin listener first. */
function siteOf(child: Child, held: number): Site {
  const [admin, calls] = child.ports;
  const inProgress = async (): Promise<number> => {
    const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
    return Number(/^afterword_runs_in_progress (\d+)$/m.exec(metrics)?.[1]);
  };
  return {
    port: calls!,
    cpuMicros: () => child.ask<number>('cpu'),
    async settled() {
      while ((await inProgress()) !== held) await sleep(20);
    },
  };
}
