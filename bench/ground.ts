/**
 * Where the processes of a bench are started, and ended again whatever happens: by `close`, or when the bench is
 * interrupted. Afterword runs as its users run it, by its launcher and a configuration file.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/clock.ts';
import { issueToken } from '../src/token.ts';
import { type Child, type ChildOptions, startChild } from './child.ts';
import { APP, PROJECT } from './workload.ts';

export interface AfterwordOptions {
  /** Where its app is. */
  readonly appPort: number;
  readonly logLevel?: 'warn' | 'info';
  readonly env?: Readonly<Record<string, string>>;
}

export interface Ground {
  /** Removed in the end. */
  readonly dir: string;
  /** Starts a script of this folder, by its name. */
  script(name: string, listeners: number, ...args: string[]): Promise<Child>;
  /** It opens its admin listener first, then that for calls. Its data is in a directory of its name. */
  afterword(name: string, options: AfterwordOptions): Promise<Child>;
  /** For calls of what `afterword` has started. */
  token(): Promise<string>;
  close(): Promise<void>;
}

const HERE = import.meta.dirname;
const LAUNCHER = join(HERE, '..', 'bin', 'afterword');
const JWT_SECRET = 'known to the bench alone, and long enough for HS256';

export async function openGround(interrupted: AbortSignal): Promise<Ground> {
  const dir = await mkdtemp(join(tmpdir(), 'afterword-bench-'));
  const children: Child[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(children.map(child => child.stop()));
    await rm(dir, { recursive: true, force: true });
  };
  interrupted.addEventListener('abort', () => void close());
  const start = async (name: string, options: Omit<ChildOptions, 'output'>): Promise<Child> => {
    interrupted.throwIfAborted();
    const child = startChild({ ...options, output: join(dir, `${name.replaceAll('/', '-')}.log`) });
    children.push(child);
    await child.listening;
    return child;
  };
  return {
    dir,
    script: (name, listeners, ...args) => start(name, { entry: join(HERE, `${name}.ts`), args, listeners }),
    async afterword(name, { env = {}, ...options }) {
      const config = await writeConfig(join(dir, name), options);
      return start(name, { entry: LAUNCHER, args: ['serve', '--config', config], listeners: 2, env });
    },
    token: () =>
      issueToken({ secret: JWT_SECRET, projectId: PROJECT, ttlSeconds: 86_400, clock: systemClock }),
    close,
  };
}

/** A directory of its own, with the defaults but for what a bench on one machine needs. */
async function writeConfig(
  dir: string,
  { appPort, logLevel = 'warn' }: Omit<AfterwordOptions, 'env'>,
): Promise<string> {
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
