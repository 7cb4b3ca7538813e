/**
 * Runs on a real store of their own, against apps that the test plays: without the gateway, so that a test has
 * the claims, the tenure and the end in its hands.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { AppConfig, AsyncConfig } from '../../src/config/config.ts';
import { createSpool } from '../../src/exchange/spool.ts';
import { createWays } from '../../src/exchange/ways.ts';
import { silentLogger } from '../../src/log.ts';
import { createRuns, type Runs } from '../../src/runs/runs.ts';
import type { Lessor } from '../../src/runtime/host.ts';
import { loadKeyring } from '../../src/store/keys.ts';
import type { NewRun, RunRecord } from '../../src/store/runs.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import type { NewDelivery, Store } from '../../src/store/store.ts';
import { until } from '../support/waiting.ts';

export const PROJECT = 'p-test';

export interface RigOptions {
  readonly async?: Partial<AsyncConfig>;
  readonly clock?: Clock;
  readonly host?: Lessor;
  /** Of another node before. */
  readonly dir?: string;
  /** What is put before the store. */
  readonly wrap?: (store: Store) => Store;
}

export interface Rig {
  readonly dir: string;
  readonly store: Store;
  readonly runs: Runs;
  /** Deliveries that were made. */
  readonly delivered: readonly NewDelivery[];
  /** What was told to whoever counts. */
  readonly events: readonly object[];
  /** A run for an app, accepted. */
  add(app: string, overrides?: Partial<NewRun>): Promise<NewRun>;
  ended(runId: string): Promise<RunRecord>;
  resultOf(runId: string): Promise<Record<string, unknown>>;
  /** As a crash would: nothing is given back. */
  halt(): Promise<void>;
}

export function urlApp(name: string, url: string, concurrency = 8): AppConfig {
  const place = { kind: 'url', url: new URL(url), concurrency } as const;
  return { projectId: PROJECT, name, runtime: 'custom', place, forwardAuthorization: false };
}

const NO_HOST: Lessor = {
  lease() {
    throw new Error('no app runs here');
  },
};

export async function openRig(apps: readonly AppConfig[], options: RigOptions = {}): Promise<Rig> {
  const { clock = systemClock, host = NO_HOST, wrap = store => store } = options;
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'afterword-runs-')));
  const spoolDir = join(dir, 'spool');
  const log = silentLogger;
  const store = wrap(
    createSqliteStore({ dir, spoolDir, keyring: loadKeyring({ dir }), nodeId: uuidv7(), clock, log }),
  );
  await store.open();
  await store.recover();
  const spool = createSpool({ dir: spoolDir, log });
  await spool.start();
  const ways = createWays({ appTimeout: 60_000, host });
  const delivered: NewDelivery[] = [];
  const events: object[] = [];
  const runs = createRuns({
    config: {
      apps: new Map([[PROJECT, new Map(apps.map(app => [app.name, app]))]]),
      async: { timeout: 60_000, maxStarts: 2, maxRequest: 1024 * 1024, retention: 60_000, ...options.async },
    },
    store,
    pending: { mark: 0, change() {} },
    async deliver(delivery, insert) {
      const unowned = { ...delivery, owned: false };
      if ((await insert(unowned)) !== undefined) delivered.push(unowned);
    },
    ways,
    exchange: { spool, clock, log, maxBody: 1024 * 1024 },
    executes: true,
    clock,
    log,
    events: {
      runBegun: waitedMs => events.push({ waitedMs }),
      runEnded: ({ state }) => events.push({ state }),
      storeFailed: operation => events.push({ operation }),
    },
  });
  let halted: Promise<void> | undefined;
  const halt = async (): Promise<void> => {
    await store.close();
    await runs.stop({ graceMs: 0 });
    await ways.close();
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  };
  onTestFinished(() => (halted ??= halt()));

  return {
    dir,
    store,
    runs,
    delivered,
    events,
    async add(app, overrides = {}) {
      const run: NewRun = {
        runId: uuidv7(),
        projectId: PROJECT,
        app,
        createdAt: Date.now(),
        method: 'POST',
        path: '/',
        headers: ['Content-Type', 'application/json'],
        ...overrides,
      };
      await runs.accept(run);
      return run;
    },
    async ended(runId) {
      let found: RunRecord | undefined;
      await until(async () => (found = await store.runs.find(PROJECT, runId))?.endedAt !== undefined);
      return found!;
    },
    async resultOf(runId) {
      const body = await store.runs.result(PROJECT, runId);
      if (body === undefined || !('bytes' in body)) throw new Error('no result in memory');
      return JSON.parse(Buffer.from(body.bytes).toString()) as Record<string, unknown>;
    },
    halt: () => (halted ??= halt()),
  };
}
