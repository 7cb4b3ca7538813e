/**
 * A whole service in this process, on free ports and a temporary directory, with one project and a token.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import type {
  AppConfig,
  AppPlace,
  AsyncConfig,
  Config,
  ProcessConfig,
  ProjectConfig,
  TracingConfig,
  WebhooksConfig,
} from '../../src/config/config.ts';
import { type Logger, silentLogger } from '../../src/log.ts';
import { createService } from '../../src/service.ts';
import { issueToken } from '../../src/token.ts';

export const PROJECT = 'p-test';
export const JWT_SECRET = 'not-a-secret-but-long-enough-for-hs256';

/** An app's process, with a default for everything but its program. */
export type TestProcess = Pick<ProcessConfig, 'program'> & Partial<ProcessConfig>;

export type TestAppConfig = {
  readonly runtime: 'cortex' | 'custom';
  readonly forwardAuthorization?: boolean;
} & ({ readonly url: string; readonly concurrency?: number } | { readonly process: TestProcess });

export interface TestServiceOptions {
  /** Apps of PROJECT by name. */
  readonly apps: Readonly<Record<string, TestAppConfig>>;
  readonly project?: Partial<ProjectConfig>;
  readonly webhooks?: Partial<WebhooksConfig>;
  readonly async?: Partial<AsyncConfig>;
  readonly appTimeout?: number;
  readonly adminToken?: string;
  readonly log?: Logger;
  readonly tracing?: TracingConfig;
  /** Kept between starts when given; otherwise made and removed. */
  readonly data?: string;
}

export interface TestService {
  /** `http://127.0.0.1:port`. */
  readonly base: string;
  readonly port: number;
  readonly admin: string;
  readonly token: string;
  readonly data: string;
  /** `/v4/p-test/<path>`, with `webhookEndpoint` added where a target is given. */
  path(path: string, target?: string): string;
  /** New processes for a hosted app. */
  reload(app: string): void;
  stop(): Promise<void>;
}

export async function startService(options: TestServiceOptions): Promise<TestService> {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'afterword-')));
  const config = testConfig(options, data);
  const service = createService({
    config,
    version: '0.0.0-test',
    log: options.log ?? silentLogger,
  });
  const { listen, admin } = await service.start();
  return {
    base: `http://127.0.0.1:${listen!.port}`,
    port: listen!.port,
    admin: `http://127.0.0.1:${admin.port}`,
    token: await testToken(),
    data,
    path(path, target) {
      const plain = `/v4/${PROJECT}/${path}`;
      if (target === undefined) return plain;
      return `${plain}${plain.includes('?') ? '&' : '?'}webhookEndpoint=${encodeURIComponent(target)}`;
    },
    reload: app => service.reload(config.apps.get(PROJECT)!.get(app)!),
    async stop() {
      await service.stop();
      if (options.data === undefined) await rm(data, { recursive: true, force: true });
    },
  };
}

export function testToken(projectId = PROJECT): Promise<string> {
  return issueToken({ secret: JWT_SECRET, projectId, ttlSeconds: 3600, clock: systemClock });
}

function testConfig(options: TestServiceOptions, data: string): Config {
  const apps = new Map<string, AppConfig>();
  for (const [name, app] of Object.entries(options.apps)) {
    const { runtime, forwardAuthorization = false } = app;
    apps.set(name, { projectId: PROJECT, name, runtime, place: placeOf(app), forwardAuthorization });
  }
  const project: ProjectConfig = {
    id: PROJECT,
    jwt: { secret: JWT_SECRET },
    standardWebhooks: false,
    requireSecret: false,
    maxPending: 100_000,
    ...options.project,
  };
  return {
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    ...(options.adminToken !== undefined && { adminToken: options.adminToken }),
    data,
    role: 'all',
    workers: 1,
    encryptionKeys: [],
    logLevel: 'silent',
    projects: new Map([[PROJECT, project]]),
    apps: new Map([[PROJECT, apps]]),
    webhooks: {
      attemptTimeout: 15_000,
      maxBody: 16 * 1024 * 1024,
      commitWait: 1_000,
      concurrency: 256,
      perTarget: 32,
      allowTargets: ['127.0.0.0/8'],
      retention: 30 * 24 * 3_600_000,
      ...options.webhooks,
    },
    async: {
      timeout: 15 * 60_000,
      maxStarts: 2,
      maxRequest: 16 * 1024 * 1024,
      retention: 24 * 3_600_000,
      ...options.async,
    },
    appTimeout: options.appTimeout ?? 15 * 60_000,
    appEnvironment: APP_ENVIRONMENT,
    ...(options.tracing !== undefined && { tracing: options.tracing }),
  };
}

/** What every hosted app of a test gets. Python writes nothing beside the functions of a suite. */
export const APP_ENVIRONMENT = { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' };

function placeOf(app: TestAppConfig): AppPlace {
  return 'url' in app
    ? { kind: 'url', url: new URL(app.url), concurrency: app.concurrency ?? 8 }
    : { kind: 'process', process: processOf(app.process) };
}

export function processOf(given: TestProcess): ProcessConfig {
  const { program } = given;
  const cwd = program.kind === 'command' ? tmpdir() : dirname(program.entry);
  return { cwd, env: {}, replicas: 1, concurrency: 8, queue: 100, start: 'boot', ...given };
}
