/**
 * The API where it really is, on the listener of the calls and on the admin listener, with the tokens of two
 * projects, in front of a real store that a test can break.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdmin } from '../../src/admin.ts';
import { createApi } from '../../src/api/api.ts';
import { type MountName, pathOf, type RouteName } from '../../src/api/mounts.ts';
import { systemClock } from '../../src/clock.ts';
import type { AppConfig, ProjectConfig } from '../../src/config/config.ts';
import { createDashboard } from '../../src/dashboard.ts';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { createSpool } from '../../src/exchange/spool.ts';
import { createAuthenticator } from '../../src/gateway/auth.ts';
import { createGateway } from '../../src/gateway/server.ts';
import { silentLogger as log } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { createStoredRuns } from '../../src/runs/stored-runs.ts';
import type { HostedState } from '../../src/runtime/app-state.ts';
import type { Ledger } from '../../src/store/ledger.ts';
import type { RunStore } from '../../src/store/runs.ts';
import type { StatsStore } from '../../src/store/stats.ts';
import type { Store } from '../../src/store/store.ts';
import { issueToken } from '../../src/token.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import { KEYRING } from '../store/sqlite/opening.ts';

export const OWN = 'p-own';
export const OTHER = 'p-other';
/** Its keys cannot be fetched. */
export const KEYLESS = 'p-keyless';
export const ADMIN_TOKEN = 'the token of the admin';

const clock = systemClock;

export interface Asked {
  readonly mount: MountName;
  readonly name: RouteName;
  readonly path: string;
  readonly method: string;
  /** In the path, on the listener of the calls. */
  readonly project?: string;
  /** In place of `{run_id}` and `{job_id}`. */
  readonly id?: string;
  readonly query?: string;
  readonly authorization: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export interface Listeners {
  readonly store: Store;
  readonly jobs: () => number;
  /** Whether anybody looks on. */
  readonly followed: () => boolean;
  readonly faults: {
    /** Whatever is asked of the store fails. */
    broken: boolean;
    /** Nothing can be written. */
    unavailable: boolean;
    /** In place of what the ledger would do. */
    readonly ledger: Partial<Writable<Ledger>>;
  };
  tokenOf(projectId: string): Promise<string>;
  ask(asked: Asked): Promise<Response>;
  close(): Promise<void>;
}

export async function openListeners(): Promise<Listeners> {
  const dir = await mkdtemp(join(tmpdir(), 'afterword-api-'));
  const spoolDir = join(dir, 'spool');
  const real = createSqliteStore({ dir, spoolDir, keyring: KEYRING, nodeId: randomUUID(), clock, log });
  await real.open();
  const faults: Listeners['faults'] = { broken: false, unavailable: false, ledger: {} };
  const store = breakable(real, faults);
  let jobs = 0;
  let followers = 0;
  faults.ledger.follow = async listener => {
    followers += 1;
    const unfollow = await real.ledger.follow(listener);
    return () => {
      followers -= 1;
      unfollow();
    };
  };
  const projects = new Map([OWN, OTHER, KEYLESS].map(id => [id, projectOf(id)]));
  const apps = new Map([OWN, OTHER].map(id => [id, new Map([['hello', appOf(id)]])]));
  const policy = createTargetPolicy({ allow: [], listeners: () => [], localAddresses: () => [] });
  const api = createApi({
    config: { projects, apps },
    version: '0.0.0-test',
    store,
    runs: createStoredRuns({ runs: store.runs, clock, log }),
    policy,
    hosted: async () => {
      if (faults.broken) throw new Error('no answer');
      return [OWN, OTHER].map(hostedOf);
    },
    onJob: () => void (jobs += 1),
    clock,
    log,
  });
  const spool = createSpool({ dir: spoolDir, log });
  const authenticator = createAuthenticator({ projects, clock, log });
  const gateway = createGateway({
    config: {
      projects,
      apps,
      appTimeout: 1_000,
      webhooks: {
        attemptTimeout: 1_000,
        maxBody: 1_000,
        commitWait: 1_000,
        concurrency: 1,
        perTarget: 1,
        allowTargets: [],
        retention: 1,
      },
      async: { timeout: 1, maxStarts: 1, maxRequest: 1, retention: 1 },
    },
    authenticator,
    policy,
    deliveries: { available: true, pending: () => 0, accept: async () => {} },
    runs: { accept: async () => ({ outcome: 'inserted' }) },
    api,
    host: {
      lease() {
        throw new Error('no app runs here');
      },
    },
    spool,
    clock,
    log,
    events: { call() {}, lateCommit() {} },
  });
  const metrics = createMetrics({
    size: () => ({ held: 0, waiting: 0, inFlight: 0 }),
    storeAvailable: () => true,
    runsHeld: () => 0,
  });
  const admin = createAdmin({
    adminToken: ADMIN_TOKEN,
    version: '0.0.0-test',
    authenticator,
    metrics,
    readiness: () => undefined,
    api,
    dashboard: createDashboard({ dir: join(dir, 'no dashboard'), log }),
    clock,
    log,
  });
  const at = { host: '127.0.0.1', port: 0 };
  const ports = { project: (await gateway.listen(at)).port, admin: (await admin.listen(at)).port };
  return {
    store: real,
    jobs: () => jobs,
    followed: () => followers > 0,
    faults,
    tokenOf,
    async close() {
      await Promise.all([gateway.stop({ graceMs: 0 }), admin.stop()]);
      await real.close();
      await rm(dir, { recursive: true, force: true });
    },
    ask(asked) {
      const { mount, method, authorization, headers, body, signal } = asked;
      return fetch(`http://127.0.0.1:${ports[mount]}${urlOf(asked)}`, {
        method,
        headers: { ...(authorization !== undefined && { authorization }), ...headers },
        ...(body !== undefined && { body }),
        ...(signal !== undefined && { signal }),
      });
    },
  };
}

function urlOf({ mount, name, path, project = OWN, id = '', query = '' }: Asked): string {
  const whole = pathOf(mount, name, { path });
  return whole.replace('{project_id}', project).replace(/\{(?:run|job)_id\}/, id) + query;
}

async function tokenOf(projectId: string): Promise<string> {
  const secret = secretOf(projectId);
  return `Bearer ${await issueToken({ secret, projectId, ttlSeconds: 600, clock })}`;
}

function secretOf(projectId: string): string {
  return `a secret of ${projectId}, long enough for HS256`;
}

function projectOf(id: string): ProjectConfig {
  const jwt = id === KEYLESS ? { jwksUrl: new URL('http://127.0.0.1:1/keys') } : { secret: secretOf(id) };
  return { id, jwt, standardWebhooks: true, requireSecret: false, maxPending: 10 };
}

function appOf(projectId: string): AppConfig {
  const process = {
    program: { kind: 'node', entry: '/nowhere/main.ts' },
    cwd: '/nowhere',
    env: {},
    replicas: 1,
    concurrency: 1,
    queue: 1,
    start: 'call',
  } as const;
  return {
    projectId,
    name: 'hello',
    runtime: 'cortex',
    place: { kind: 'process', process },
    forwardAuthorization: false,
  };
}

function hostedOf(projectId: string): HostedState {
  return {
    projectId,
    app: 'hello',
    phase: 'ready',
    replicas: [{ index: 0, phase: 'ready', pid: 1, restarts: 0, startedAt: 0, active: 1 }],
    waiting: 0,
    lines: [{ at: 0, text: `a line of ${projectId}` }],
  };
}

/** The store as it is, until it is to fail. */
function breakable(store: Store, faults: Listeners['faults']): Store {
  const guarded = <Part extends object>(part: Part, overrides: () => Partial<Part> = () => ({})): Part =>
    new Proxy(part, {
      get(target, name) {
        const value = (overrides() as Part)[name as keyof Part] ?? target[name as keyof Part];
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (faults.broken) throw new Error('the store is broken');
          return (value as (...args: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  return new Proxy(guarded(store), {
    get(target, name) {
      if (name === 'available') return !faults.unavailable;
      if (name === 'ledger') return guarded<Ledger>(store.ledger, () => faults.ledger);
      if (name === 'runs') return guarded<RunStore>(store.runs);
      if (name === 'stats') return guarded<StatsStore>(store.stats);
      return Reflect.get(target, name) as unknown;
    },
  });
}
