/**
 * A gateway on a free port in front of two stages, with the deliveries and runs that it hands over kept here in
 * place of a store.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { AppConfig, ProjectConfig, Runtime } from '../../src/config/config.ts';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { createAuthenticator } from '../../src/gateway/auth.ts';
import type { CallEvent } from '../../src/gateway/call-report.ts';
import type { Api } from '../../src/gateway/intake.ts';
import { createGateway } from '../../src/gateway/server.ts';
import { createSpool, type Spool } from '../../src/exchange/spool.ts';
import { createLogger } from '../../src/log.ts';
import type { Accepted } from '../../src/delivery/dispatcher.ts';
import type { NewRun, RunInsertion } from '../../src/store/runs.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { type Conversation, converse } from '../support/conversation.ts';
import { closedPort } from '../support/receivers.ts';
import { JWT_SECRET, PROJECT, testToken } from '../support/service.ts';
import { type AppHandler, openRawStage, openStage, type RawHandler, type Stage } from '../support/stage.ts';
import { until } from '../support/waiting.ts';

export const TARGET = 'http://127.0.0.1:9/hook';

export interface RigOptions {
  readonly project?: Partial<ProjectConfig>;
  readonly maxBody?: number;
  readonly commitWait?: number;
  readonly appTimeout?: number;
  readonly maxRequest?: number;
  readonly api?: Api;
  readonly clock?: Clock;
  /** Awaited after each token was checked. */
  readonly authenticated?: () => Promise<void>;
}

export interface Call {
  /** One of the rig's apps; `custom` unless given. */
  readonly app?: keyof typeof APPS;
  /** What follows the app's name, without its slash: the name that a stage gave, and maybe more. */
  readonly path: string;
  readonly method?: string;
  readonly version?: '1.0' | '1.1';
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
  /** With a `webhookEndpoint`. */
  readonly hook?: boolean;
}

/** A delivery as the gateway handed it over, with its body read. */
export interface Delivered {
  readonly delivery: Accepted;
  readonly body: Buffer;
  readonly json: Record<string, unknown>;
}

export interface Rig {
  readonly port: number;
  readonly auth: string;
  readonly app: Stage<AppHandler>;
  readonly raw: Stage<RawHandler>;
  readonly spool: Spool;
  readonly calls: readonly CallEvent[];
  readonly lateCommits: () => number;
  readonly logs: () => string;
  readonly deliveries: {
    available: boolean;
    pending: number;
    /** Run ids, in order, from the moment that they were handed over. */
    readonly accepted: readonly string[];
    /** Called in place of a store; what it returns is awaited. */
    accept: () => Promise<void>;
  };
  readonly runs: {
    /** In order, from the moment that they were handed over. */
    readonly accepted: readonly NewRun[];
    /** Called in place of a store; its answer is the store's. */
    accept: (run: NewRun) => Promise<RunInsertion>;
  };
  target(call: Call): string;
  /** The head of a request, for a conversation. */
  head(call: Call): string;
  call(call: Call): Promise<RawAnswer>;
  converse(): Promise<Conversation>;
  /** How many callers the gateway has. */
  connections(): number;
  /** The delivery of a run, waiting for it if need be. */
  delivered(runId: string | undefined): Promise<Delivered>;
  /** Names of the files in the spool. */
  spooled(): Promise<string[]>;
  /** Calls under way have `graceMs` to end; `handOver`: as if another process took calls from now on. */
  stop(graceMs?: number, handOver?: boolean, noticeMs?: number): Promise<void>;
}

const APPS = {
  custom: { runtime: 'custom', stage: 'app' },
  cortex: { runtime: 'cortex', stage: 'app' },
  trusted: { runtime: 'custom', stage: 'app', forwardAuthorization: true },
  based: { runtime: 'custom', stage: 'app', base: '/base/path/' },
  raw: { runtime: 'custom', stage: 'raw' },
  'raw-cortex': { runtime: 'cortex', stage: 'raw' },
  nowhere: { runtime: 'custom', stage: 'none' },
  'nowhere-cortex': { runtime: 'cortex', stage: 'none' },
} as const satisfies Record<
  string,
  { runtime: Runtime; stage: 'app' | 'raw' | 'none'; forwardAuthorization?: boolean; base?: string }
>;

export async function openRig(options: RigOptions = {}): Promise<Rig> {
  const [app, raw] = [await openStage(), await openRawStage()];
  const dir = await mkdtemp(join(tmpdir(), 'afterword-'));
  let logs = '';
  const log = createLogger({ level: 'debug', destination: { write: line => (logs += line) } });
  const spool = createSpool({ dir, log });
  await spool.start();
  const accepted = new Map<string, Accepted>();
  const deliveries = {
    available: true,
    pending: 0,
    get accepted() {
      return [...accepted.keys()];
    },
    accept: async () => {},
  };
  const acceptedRuns: NewRun[] = [];
  const runs: Rig['runs'] = { accepted: acceptedRuns, accept: inserted };
  const calls: CallEvent[] = [];
  let lateCommits = 0;
  const listeners: Array<{ address: string; port: number }> = [];
  const projects = projectsOf(options);
  const authenticator = createAuthenticator({ projects, clock: systemClock, log });
  const gateway = createGateway({
    config: {
      projects,
      apps: new Map([
        [PROJECT, appsOn({ app: app.url, raw: raw.url, none: `http://127.0.0.1:${await closedPort()}` })],
      ]),
      appTimeout: options.appTimeout ?? 60_000,
      webhooks: {
        attemptTimeout: 1_000,
        maxBody: options.maxBody ?? 16 * 1024 * 1024,
        commitWait: options.commitWait ?? 60_000,
        concurrency: 1,
        perTarget: 1,
        allowTargets: [],
        retention: 1,
      },
      async: { timeout: 1, maxStarts: 1, maxRequest: options.maxRequest ?? 16 * 1024 * 1024, retention: 1 },
    },
    authenticator: {
      check(projectId, authorization) {
        const checking = authenticator.check(projectId, authorization);
        const { authenticated } = options;
        return authenticated === undefined ? checking : Promise.resolve(checking).then(authenticated);
      },
    },
    policy: createTargetPolicy({
      allow: ['127.0.0.0/8'],
      listeners: () => listeners,
      localAddresses: () => ['127.0.0.1'],
    }),
    deliveries: {
      get available() {
        return deliveries.available;
      },
      pending: () => deliveries.pending,
      async accept(delivery) {
        accepted.set(delivery.runId, delivery);
        await deliveries.accept();
      },
    },
    runs: {
      accept(run) {
        acceptedRuns.push(run);
        return runs.accept(run);
      },
    },
    ...(options.api !== undefined && { api: options.api }),
    host: {
      lease() {
        throw new Error('no app runs here');
      },
    },
    spool,
    clock: options.clock ?? systemClock,
    log,
    events: { call: event => calls.push(event), lateCommit: () => lateCommits++ },
  });
  const { address, port } = await gateway.listen({ host: '127.0.0.1', port: 0 });
  listeners.push({ address, port });
  const auth = `Authorization: Bearer ${await testToken()}`;

  function target({ app: name = 'custom', path, hook = false }: Call): string {
    const plain = `/v4/${PROJECT}/${name}/${path}`;
    if (!hook) return plain;
    return `${plain}${path.includes('?') ? '&' : '?'}webhookEndpoint=${encodeURIComponent(TARGET)}`;
  }

  return {
    port,
    auth,
    app,
    raw,
    spool,
    calls,
    lateCommits: () => lateCommits,
    logs: () => logs,
    deliveries,
    runs,
    target,
    head(call) {
      const { method = 'GET', version = '1.1', headers = [] } = call;
      const lines = [`${method} ${target(call)} HTTP/${version}`, 'Host: test', auth, ...headers];
      return `${lines.join('\r\n')}\r\n\r\n`;
    },
    call: ({ headers = [], ...call }) =>
      callRaw({ ...call, port, path: target({ ...call, headers }), headers: [auth, ...headers] }),
    converse: () => converse(port),
    connections: () => gateway.connections,
    async delivered(runId) {
      await until(() => accepted.has(runId!));
      const delivery = accepted.get(runId!)!;
      const body =
        'bytes' in delivery.body ? Buffer.from(delivery.body.bytes) : await readFile(delivery.body.file);
      return { delivery, body, json: JSON.parse(body.toString()) };
    },
    spooled: () => readdir(dir),
    async stop(graceMs = 0, handOver = false, noticeMs = 0) {
      await gateway.stop({ graceMs, handOver, noticeMs });
      await app.close();
      await raw.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The answer of a store that has no such key yet. */
export async function inserted(): Promise<RunInsertion> {
  return { outcome: 'inserted' };
}

/** All bytes of a run's request. */
export async function bodyOf({ body }: NewRun): Promise<Buffer> {
  if (body === undefined) return Buffer.alloc(0);
  return 'bytes' in body ? Buffer.from(body.bytes) : readFile(body.file);
}

function projectsOf({ project }: RigOptions): Map<string, ProjectConfig> {
  const defaults = { standardWebhooks: false, requireSecret: false, maxPending: 100 };
  const jwt = { secret: JWT_SECRET };
  return new Map([
    [PROJECT, { id: PROJECT, jwt, ...defaults, ...project }],
    ['p-other', { id: 'p-other', jwt, ...defaults }],
  ]);
}

function appsOn(urls: Record<'app' | 'raw' | 'none', string>): Map<string, AppConfig> {
  const entries = Object.entries(APPS).map(([name, app]): [string, AppConfig] => {
    const url = new URL('base' in app ? app.base : '/', urls[app.stage]);
    const forwardAuthorization = 'forwardAuthorization' in app;
    const place = { kind: 'url', url, concurrency: 8 } as const;
    return [name, { projectId: PROJECT, name, runtime: app.runtime, place, forwardAuthorization }];
  });
  return new Map(entries);
}

/** An answer that the test writes itself. */
export interface Opened {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

export function opened(rig: Rig): { path: string; call: Promise<Opened> } {
  const { promise, resolve } = Promise.withResolvers<Opened>();
  return { path: rig.app.play((req, res) => resolve({ req, res })), call: promise };
}
