/**
 * All apps whose processes run here, by their configuration.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { AppConfig, Config, ProcessConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { HostedState } from './app-state.ts';
import { HostedApp, type HostedLease, type Lease } from './hosted-app.ts';

export type { Lease };

/** Who gives calls their places. */
export interface Lessor {
  /** A place for a call of this app, at once, or later while it is `wanted`. Throws or rejects with a Problem. */
  lease(app: AppConfig, wanted: () => boolean): Lease | Promise<Lease>;
}

export interface Host extends Lessor {
  /** Starts what is to be up from the beginning; does not wait until it is ready. */
  start(): Promise<void>;
  lease(app: AppConfig, wanted: () => boolean): HostedLease | Promise<HostedLease>;
  /** How each app that runs here stands. */
  states(): readonly HostedState[];
  /** New processes for an app whose files have changed. */
  reload(app: AppConfig): void;
  /** Ends all processes. */
  stop(): Promise<void>;
}

export interface HostOptions {
  readonly config: Pick<Config, 'apps' | 'appTimeout' | 'appEnvironment'>;
  /** True: an app is started by its first call, whatever its configuration says. */
  readonly onCall: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createHost({ config, onCall, clock, log }: HostOptions): Host {
  const { appTimeout, appEnvironment } = config;
  const hosted = new Map<AppConfig, HostedApp>();
  let socketDir: string | undefined;
  return {
    async start() {
      for (const { app, spec } of processesOf(config)) {
        socketDir ??= await mkdtemp(join(tmpdir(), 'afterword-')); // open to its owner alone
        const env = { ...appEnvironment, ...spec.env };
        const own = log.child({ project_id: app.projectId, app: app.name });
        const one = new HostedApp({ config: { ...spec, env }, socketDir, appTimeout, clock, log: own });
        hosted.set(app, one);
        if (spec.start === 'boot' && !onCall) one.start();
      }
    },
    lease: (app, wanted) => hosted.get(app)!.lease(wanted),
    states: () => [...hosted].map(([{ projectId, name: app }, one]) => ({ projectId, app, ...one.state() })),
    reload: app => hosted.get(app)?.reload(),
    async stop() {
      await Promise.all([...hosted.values()].map(app => app.stop()));
      if (socketDir !== undefined) await rm(socketDir, { recursive: true, force: true });
    },
  };
}

function processesOf({ apps }: Pick<Config, 'apps'>): Array<{ app: AppConfig; spec: ProcessConfig }> {
  return [...apps.values()].flatMap(ofProject =>
    [...ofProject.values()].flatMap(app =>
      app.place.kind === 'process' ? [{ app, spec: app.place.process }] : [],
    ),
  );
}
