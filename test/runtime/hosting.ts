/**
 * An app hosted on its own, without the service around it, whose processes are known by a mark.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Program } from '../../src/config/config.ts';
import { HostedApp, type Lease } from '../../src/runtime/hosted-app.ts';
import { temporaryDirectory } from '../store/samples.ts';
import { type LogLine, captureLog } from '../support/log.ts';
import { APP_ENVIRONMENT, processOf, type TestProcess } from '../support/service.ts';

export const HOSTED = join(import.meta.dirname, 'hosted');
export const NODE = { kind: 'node', entry: join(HOSTED, 'main.ts') } as const satisfies Program;
export const SERVER = [process.execPath, join(HOSTED, 'server.ts')];

export const shell = (script: string): Program => ({ kind: 'command', command: ['/bin/sh', '-c', script] });

export interface Hosting {
  readonly app: HostedApp;
  readonly lines: readonly LogLine[];
  /** In the environment of all its processes. */
  readonly mark: string;
  readonly socketDir: string;
  /** How many replicas have become ready so far. */
  readonly ready: () => number;
  /** A place for a call that somebody waits for. */
  readonly lease: () => Promise<Lease>;
}

/** It does not outlive the test. */
export function host(
  process: Partial<TestProcess> = {},
  { clock = systemClock, appTimeout = 60_000 }: { clock?: Clock; appTimeout?: number } = {},
): Hosting {
  const socketDir = temporaryDirectory();
  const { log, lines } = captureLog();
  const MARK = randomUUID();
  const env = { ...APP_ENVIRONMENT, MARK, ...process.env };
  const config = processOf({ program: { kind: 'command', command: SERVER }, ...process, env });
  const app = new HostedApp({ config, socketDir, appTimeout, clock, log });
  onTestFinished(() => app.stop());
  return {
    app,
    lines,
    mark: `MARK=${MARK}`,
    socketDir,
    ready: () => lines.filter(({ msg }) => msg === 'the app is ready').length,
    lease: async () => app.lease(() => true),
  };
}

/** What the process of a lease answers to a request of its own. */
export async function ask({ pool }: Lease, path: string): Promise<unknown> {
  const { body } = await pool.request({
    method: path.startsWith('/') ? 'GET' : 'POST',
    path: path.replace(/^\/?/, '/'),
  });
  return body.json();
}
