/**
 * A service of its own with a paced app, whose queue has the depth that a test wants: one of the sides that are
 * compared while both do the same work.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { expect, onTestFinished, vi } from 'vitest';
import { readText } from '../support/app.ts';
import { configure, serve, type ServiceProcess } from '../support/process.ts';
import { JWT_SECRET, PROJECT, testToken } from '../support/service.ts';
import { until } from '../support/waiting.ts';
import { openPacedApp, type PacedApp } from './paced-app.ts';

const DONE = { timeout: 10 * 60_000, interval: 20 };
/** Calls at once while a queue is filled. */
const LANES = 4;
/** How long a paced call takes at most, while the depth of the queue is kept. */
const PACE_MS = 20;

export interface QueueSide {
  readonly service: ServiceProcess;
  readonly app: PacedApp;
  /** Calls that were accepted and not yet answered by the app. */
  readonly depth: () => number;
  /** Memory of the service, in bytes. */
  readonly rss: () => number;
  /** Adds this many runs of the paced app, with requests of about this size; at most so many wait at a time. */
  fill(count: number, bytes: number, most?: number): Promise<void>;
  /**
   * Has the paced app work meanwhile. For every run that it ends another is called for, so that the depth of the
   * queue stays as it is. Gives what each of these callers waited for its 202, in milliseconds.
   */
  keepBusy(during: (latencies: readonly number[]) => Promise<void>): Promise<readonly number[]>;
  /** Works off all that there is, as fast as it goes. */
  workOff(): Promise<void>;
  /** From the call to the end of a run of the other app, in milliseconds. */
  timeOther(): Promise<number>;
}

export async function openSide(concurrency: number): Promise<QueueSide> {
  const app = await openPacedApp(concurrency);
  const projects = { [PROJECT]: { jwt: { secret: JWT_SECRET }, maxPending: 1_000_000 } };
  const service = serve(configure({ apps: app.apps, more: { projects } }));
  const { port } = await service.ready;
  const authorization = `Bearer ${await testToken()}`;
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  let called = 0;

  function send(method: 'GET' | 'POST', path: string, body = ''): Promise<string> {
    return new Promise((resolve, reject) => {
      const headers = { authorization, 'content-length': body.length };
      const options = { port, host: '127.0.0.1', method, path: `/v4/${PROJECT}/${path}`, headers, agent };
      request(options, answer => {
        if (![200, 202].includes(answer.statusCode!)) reject(new Error(`status ${answer.statusCode}`));
        readText(answer).then(resolve, reject);
      })
        .on('error', reject)
        .end(body);
    });
  }

  const depth = (): number => called - app.done;

  /** What the caller waits for its 202. */
  async function call(bytes = 0): Promise<number> {
    const body = JSON.stringify({ number: called++, fill: 'x'.repeat(bytes) });
    const began = performance.now();
    await send('POST', 'paced/run?async=true', body);
    return performance.now() - began;
  }

  return {
    service,
    app,
    depth,
    rss: () => residentOf(service.pid),
    async fill(count, bytes, most = Number.POSITIVE_INFINITY) {
      let left = count;
      const lane = async (): Promise<void> => {
        while (left-- > 0) {
          await until(() => depth() < most);
          await call(bytes);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
    },
    async keepBusy(during) {
      const latencies: number[] = [];
      const calls: Promise<unknown>[] = [];
      app.run(PACE_MS, () => calls.push(call().then(ms => latencies.push(ms))));
      await during(latencies);
      app.hold();
      await Promise.all(calls);
      return latencies;
    },
    async workOff() {
      app.run(0);
      await vi.waitFor(() => expect(app.done).toBe(called), DONE);
      app.hold();
    },
    async timeOther() {
      const began = performance.now();
      const { run_id: runId } = JSON.parse(await send('POST', 'other/run?async=true')) as { run_id: string };
      const run = JSON.parse(await send('GET', `_runs/${runId}?wait=30s`)) as { state: string };
      expect(run.state).toBe('succeeded');
      return performance.now() - began;
    },
  };
}

function residentOf(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!;
  return Number(kibibytes) * 1024;
}
