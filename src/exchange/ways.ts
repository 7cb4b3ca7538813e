/**
 * The ways to the apps: one pool of connections for each app served elsewhere, so that a slow one holds up
 * no other, and a place in a process for each call of an app that runs here.
 */
import { Pool } from 'undici';
import type { AppConfig } from '../config/config.ts';
import type { Lease, Lessor } from '../runtime/host.ts';

export interface Way {
  /** What the app is called in `Host`. */
  readonly host: string;
  /** Comes before every path. */
  readonly base: string;
  /** Leave to send one call, at once, or later while it is `wanted`. Throws or rejects with a Problem. */
  lease(wanted: () => boolean): Lease | Promise<Lease>;
}

export interface Ways {
  to(app: AppConfig): Way;
  close(): Promise<void>;
}

export interface WaysOptions {
  /** Bounds the wait for an answer's head, and then each silence within its body. */
  readonly appTimeout: number;
  readonly host: Lessor;
}

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 64 * 1024;
/**
 * A connection that its server closes just as a call goes out fails that call. Common servers close idle
 * ones after 2 s without saying so; those that say (`Keep-Alive: timeout=`) are taken at their word.
 */
const IDLE_MS = 1_000;
const ANNOUNCED_IDLE_MS = 4_000;

export function createWays({ appTimeout, host }: WaysOptions): Ways {
  const ways = new Map<AppConfig, Way>();
  const pools: Pool[] = [];

  function wayToUrl(url: URL): Way {
    const pool = new Pool(url.origin, {
      allowH2: false,
      pipelining: 1,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      headersTimeout: appTimeout,
      bodyTimeout: appTimeout,
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: ANNOUNCED_IDLE_MS,
      keepAliveTimeoutThreshold: 1_000,
    });
    pools.push(pool);
    const lease: Lease = { pool, done() {}, timedOut() {} };
    return { host: url.host, base: url.pathname.replace(/\/$/, ''), lease: () => lease };
  }

  function wayTo(app: AppConfig): Way {
    if (app.place.kind === 'url') return wayToUrl(app.place.url);
    return { host: 'localhost', base: '', lease: wanted => host.lease(app, wanted) };
  }

  return {
    to(app) {
      let way = ways.get(app);
      if (way === undefined) {
        way = wayTo(app);
        ways.set(app, way);
      }
      return way;
    },
    async close() {
      await Promise.all(pools.map(pool => pool.destroy()));
    },
  };
}

/** A path and query of a call, as the app gets them. */
export function pathAt({ base }: Way, rest: string, query: string | undefined): string {
  return query === undefined ? base + rest : `${base}${rest}?${query}`;
}
