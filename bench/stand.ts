/**
 * The processes of the bench: an app, the servers that are compared, a receiver and the load generator, each
 * one on its own. Afterword runs as its users run it, by its launcher and a configuration file.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/clock.ts';
import { issueToken } from '../src/token.ts';
import { type Child, type ChildOptions, startChild } from './child.ts';
import { APP, PROJECT } from './workload.ts';

/** What is compared. The first is the floor, the second the peer. */
export const SUBJECTS = [
  'node:http',
  'fast-proxy',
  'afterword',
  'afterword, logging calls',
  'afterword, with webhook',
] as const;
export type Subject = (typeof SUBJECTS)[number];

export const PEER: Subject = 'fast-proxy';
export const WITHOUT_WEBHOOK: Subject = 'afterword';
export const WITH_WEBHOOK: Subject = 'afterword, with webhook';

export interface Stand {
  /** Removed in the end; the servers keep their data in it. */
  readonly dir: string;
  readonly servers: Readonly<Record<Subject, Server>>;
  readonly receiver: Child;
  readonly load: Child;
  readonly token: string;
  /** Where the receiver takes deliveries. */
  readonly target: string;
  close(): Promise<void>;
}

export interface Server {
  /** Where it takes calls. */
  readonly port: number;
  cpuMicros(): Promise<number>;
  /** Resolves once nothing is left to do for the calls that it has answered. */
  settled(): Promise<void>;
}

const HERE = import.meta.dirname;
const LAUNCHER = join(HERE, '..', 'bin', 'afterword');
const JWT_SECRET = 'known to the bench alone, and long enough for HS256';

/** Whatever happens, what was started is ended again: by `close`, by `interrupted`, or here. */
export async function openStand(interrupted: AbortSignal): Promise<Stand> {
  const dir = await mkdtemp(join(tmpdir(), 'afterword-bench-'));
  const children: Child[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(children.map(child => child.stop()));
    await rm(dir, { recursive: true, force: true });
  };
  const start = async (name: string, options: Omit<ChildOptions, 'output'>): Promise<Child> => {
    interrupted.throwIfAborted();
    const child = startChild({ ...options, output: join(dir, `${name}.log`) });
    children.push(child);
    await child.listening;
    return child;
  };
  interrupted.addEventListener('abort', () => void close());
  const script = (name: string, listeners: number, ...args: string[]): Promise<Child> =>
    start(name, { entry: join(HERE, `${name}.ts`), args, listeners });
  const afterword = async (name: string, appPort: number, logLevel: string): Promise<Server> => {
    const config = await writeConfig(join(dir, name), appPort, logLevel);
    return afterwordServer(
      await start(name, { entry: LAUNCHER, args: ['serve', '--config', config], listeners: 2 }),
    );
  };

  try {
    const app = await script('app', 1);
    const [appPort] = app.ports;
    const [floor, peer, load, receiver, plain, logging, webhook] = await Promise.all([
      script('app', 1),
      script('peers', 1, `http://127.0.0.1:${appPort}`),
      script('load', 0),
      script('receiver', 1),
      afterword('plain', appPort!, 'warn'),
      afterword('logging', appPort!, 'info'),
      afterword('webhook', appPort!, 'warn'),
    ]);
    return {
      dir,
      servers: {
        'node:http': plainServer(floor),
        'fast-proxy': plainServer(peer),
        afterword: plain,
        'afterword, logging calls': logging,
        'afterword, with webhook': webhook,
      },
      receiver,
      load,
      token: await issueToken({
        secret: JWT_SECRET,
        projectId: PROJECT,
        ttlSeconds: 86_400,
        clock: systemClock,
      }),
      target: `http://127.0.0.1:${receiver.ports[0]}/hook`,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A directory of its own, with the defaults but for what a bench on one machine needs. */
async function writeConfig(dir: string, appPort: number, logLevel: string): Promise<string> {
  await mkdir(dir);
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    data: './data',
    logLevel,
    projects: { [PROJECT]: { jwt: { secret: JWT_SECRET }, maxPending: 1_000_000 } },
    apps: { [`${PROJECT}/${APP}`]: { runtime: 'custom', url: `http://127.0.0.1:${appPort}` } },
    webhooks: { allowTargets: ['127.0.0.1'] },
  };
  const file = join(dir, 'afterword.yaml');
  await writeFile(file, JSON.stringify(config)); // YAML takes JSON
  return file;
}

function plainServer(child: Child): Server {
  return { port: child.ports[0]!, cpuMicros: () => child.ask<number>('cpu'), settled: async () => {} };
}

/** It opens its admin listener first. */
function afterwordServer(child: Child): Server {
  const [admin, calls] = child.ports;
  return {
    port: calls!,
    cpuMicros: () => child.ask<number>('cpu'),
    async settled() {
      const held = async (): Promise<string | undefined> => {
        const metrics = await fetch(`http://127.0.0.1:${admin}/metrics`);
        return /^afterword_deliveries_held (\d+)$/m.exec(await metrics.text())?.[1];
      };
      while ((await held()) !== '0') await sleep(20);
    },
  };
}
