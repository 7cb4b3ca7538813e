/**
 * The service as a process of its own, started by this checkout's launcher: to be signalled, killed and
 * started again on the same data directory.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished, vi } from 'vitest';
import { loadKeyring } from '../../src/store/keys.ts';
import type { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../store/samples.ts';
import { openTestStore } from '../store/sqlite/opening.ts';
import { JWT_SECRET, PROJECT } from './service.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/afterword', import.meta.url));

export interface Settings {
  /** Apps of PROJECT by name, with the keys of the configuration. */
  readonly apps?: Readonly<
    Record<string, { readonly runtime: 'cortex' | 'custom' } & Readonly<Record<string, unknown>>>
  >;
  readonly webhooks?: Readonly<Record<string, unknown>>;
  /** Keys of the configuration beside or in place of the usual ones. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** A configuration file, and the data directory that it names. */
export interface Place {
  readonly file: string;
  readonly data: string;
}

/** Free ports, loopback open as a target, one project that takes the tokens of `testToken`. */
export function configure({ apps = {}, webhooks = {}, more = {} }: Settings = {}): Place {
  const dir = temporaryDirectory();
  const data = join(dir, 'data');
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    data,
    projects: { [PROJECT]: { jwt: { secret: JWT_SECRET } } },
    apps: Object.fromEntries(Object.entries(apps).map(([name, app]) => [`${PROJECT}/${name}`, app])),
    webhooks: { allowTargets: ['127.0.0.0/8'], ...webhooks },
    ...more,
  };
  const file = join(dir, 'afterword.yaml');
  writeFileSync(file, JSON.stringify(config, undefined, 2)); // JSON is YAML
  return { file, data: String(config.data) };
}

export interface Addresses {
  /** NaN where it takes no calls. */
  readonly port: number;
  readonly adminPort: number;
  /** `http://127.0.0.1:port`, of calls and of the admin listener. */
  readonly base: string;
  readonly admin: string;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServiceProcess {
  readonly pid: number;
  /** All of standard error so far. */
  readonly stderr: string;
  /** Resolves once it takes calls; rejects when the process ends before. */
  readonly listening: Promise<Addresses>;
  /** Resolves once `/readyz` says so; rejects when the process ends before. */
  readonly ready: Promise<Addresses>;
  readonly ended: Promise<Ending>;
  signal(name: NodeJS.Signals): void;
  /** As the kernel would, and waits for the end. */
  kill(): Promise<Ending>;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<Ending>;
}

/** Starts `afterword serve`. It does not outlive the test. */
export function serve(
  { file }: Pick<Place, 'file'>,
  env: Readonly<Record<string, string>> = {},
): ServiceProcess {
  const child = spawn(process.execPath, [LAUNCHER, 'serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], ...env },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = once(child, 'close').then(([code, signal]): Ending => ({ code, signal }));
  const end = (name: NodeJS.Signals) => {
    child.kill(name);
    return ended;
  };
  onTestFinished(async () => void (await end('SIGKILL')));

  async function listen(): Promise<Addresses> {
    for (;;) {
      const addresses = readyLine(stderr);
      if (addresses !== undefined) return addresses;
      const more = once(child.stderr, 'data').then(() => true);
      const goesOn = await Promise.race([more, ended.then(() => false)]);
      if (!goesOn) throw new Error(`the service ended before it was ready:\n${stderr}`);
    }
  }

  async function becomeReady(): Promise<Addresses> {
    const addresses = await listening;
    await vi.waitUntil(() => isReady(addresses), { timeout: 30_000, interval: 20 });
    return addresses;
  }

  const listening = listen();
  const ready = becomeReady();
  for (const each of [listening, ready]) each.catch(() => {}); // of interest only to those who wait for it

  return {
    pid: child.pid!,
    get stderr() {
      return stderr;
    },
    listening,
    ready,
    ended,
    signal: name => void child.kill(name),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}

function readyLine(stderr: string): Addresses | undefined {
  const line = stderr.split('\n').find(each => each.endsWith('"msg":"ready"}'));
  if (line === undefined) return undefined;
  const { listen, admin } = JSON.parse(line) as { listen?: string; admin: string };
  const portOf = (address: string | undefined): number => Number(address?.split(':').at(-1));
  return {
    port: portOf(listen),
    adminPort: portOf(admin),
    base: `http://${listen}`,
    admin: `http://${admin}`,
  };
}

async function isReady({ admin }: Addresses): Promise<boolean> {
  return (await fetch(`${admin}/readyz`)).ok;
}

/** What the admin listener tells of one gauge or counter without labels. */
export async function readMetric({ admin }: Addresses, name: string): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const [, value] = new RegExp(`^afterword_${name} (\\S+)$`, 'm').exec(text) ?? [];
  return Number(value);
}

/** The records that a service has left, once its process has ended. */
export async function openStoreOf({ data }: Place): Promise<Store> {
  return openTestStore({ dir: data, spoolDir: join(data, 'spool'), keyring: loadKeyring({ dir: data }) });
}
