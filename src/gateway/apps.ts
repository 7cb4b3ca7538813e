/**
 * The ways to the apps: one pool of connections for each, so that a slow app holds up no other.
 */
import { Pool } from 'undici';
import type { AppConfig } from '../config/config.ts';

export interface AppPools {
  of(app: AppConfig): Pool;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 64 * 1024;
/**
 * A connection that its server closes just as a call goes out fails that call. Common servers close idle
 * ones after 2 s without saying so; those that say (`Keep-Alive: timeout=`) are taken at their word.
 */
const IDLE_MS = 1_000;
const ANNOUNCED_IDLE_MS = 4_000;

/** `appTimeout` bounds the wait for an answer's head, and then each silence within its body. */
export function createAppPools({ appTimeout }: { appTimeout: number }): AppPools {
  const pools = new Map<AppConfig, Pool>();
  return {
    of(app) {
      let pool = pools.get(app);
      if (pool === undefined) {
        pool = new Pool(app.url.origin, {
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
        pools.set(app, pool);
      }
      return pool;
    },
    async close() {
      await Promise.all([...pools.values()].map(pool => pool.destroy()));
      pools.clear();
    },
  };
}
