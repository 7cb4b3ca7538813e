/**
 * What the bench of the stores measures on: for each store one database that is empty and one that holds the
 * deliveries of the last days, and the nodes that work on them, each a process of its own.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from '../child.ts';
import { SMALL } from './deliveries.ts';
import type { Ground } from './ground.ts';
import type { StoreName } from './place.ts';
import { openPostgres } from './postgres.ts';
import { createSqliteGround } from './sqlite.ts';

/** A database and the nodes that have it open. */
export interface Site extends Ground {
  readonly nodes: readonly Child[];
}

export interface Sites {
  readonly store: StoreName;
  readonly empty: Site;
  readonly filled: Site;
}

export interface Stand {
  readonly sites: readonly Sites[];
  close(): Promise<void>;
}

export interface StandOptions {
  readonly only: readonly StoreName[];
  /** Deliveries in the filled databases. */
  readonly rows: number;
  /** The PostgreSQL server to measure on; one is started where absent. */
  readonly database?: string;
  readonly interrupted: AbortSignal;
  readonly progress: (line: string) => void;
}

/** The embedded store is one process's own. */
export const NODES = { sqlite: 1, postgres: 2 } as const satisfies Record<StoreName, number>;

type CreateGround = (dir: string) => Promise<Ground>;

const NODE = join(import.meta.dirname, 'node.ts');
const DAY = 86_400_000;
/** Over the last three days and up to an hour ago, so that none is taken for one of a turn. */
const PAST_DAYS = 3;
const PAST_END = DAY / 24;

/** Whatever happens, what was started is ended again: by `close`, by `interrupted`, or here. */
export async function openStand(options: StandOptions): Promise<Stand> {
  const { only, rows, interrupted, progress } = options;
  const dir = await mkdtemp(join(tmpdir(), 'afterword-bench-'));
  /** What has been started, in order; each knows how to end. */
  const started = [() => rm(dir, { recursive: true, force: true })];
  const endAll = async (): Promise<void> => {
    for (let end = started.pop(); end !== undefined; end = started.pop()) await end();
  };
  let closing = Promise.resolve();
  const close = (): Promise<void> => (closing = closing.then(endAll)); // one after the other, in reverse
  interrupted.addEventListener('abort', () => void close());

  async function openSite(ground: Ground): Promise<Site> {
    const nodes: Child[] = [];
    for (let i = 0; i < NODES[ground.place.store]; i++) {
      interrupted.throwIfAborted();
      const node = startChild({ entry: NODE, listeners: 0, output: join(dir, 'nodes.log') });
      started.push(() => node.stop());
      await node.ask('open', ground.place);
      nodes.push(node);
    }
    return { ...ground, nodes };
  }

  async function openSites(store: StoreName, createGround: CreateGround): Promise<Sites> {
    const create = async (name: string): Promise<Ground> => {
      const place = join(dir, `${store}-${name}`);
      await mkdir(place);
      const ground = await createGround(place);
      started.push(() => ground.remove());
      return ground;
    };
    const empty = await create('empty');
    const filled = await create('filled');
    progress(`${store}: filling with ${rows} deliveries`);
    const now = Date.now();
    await filled.addPast({
      deliveries: rows,
      from: now - PAST_DAYS * DAY,
      until: now - PAST_END,
      size: SMALL,
    });
    return { store, empty: await openSite(empty), filled: await openSite(filled) };
  }

  const creators: Readonly<Record<StoreName, () => Promise<CreateGround>>> = {
    sqlite: async () => createSqliteGround,
    async postgres() {
      const server = await openPostgres(options.database);
      started.push(() => server.close());
      return place => server.createGround(place);
    },
  };

  try {
    const sites: Sites[] = [];
    for (const store of only) sites.push(await openSites(store, await creators[store]()));
    return { sites, close };
  } catch (error) {
    await close();
    throw error;
  }
}
