/**
 * An app for asynchronous calls, under both runtimes: it takes as long as its callers ask, and keeps account of
 * what reaches it, how often, and how much of it is open at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openApp, readText } from '../support/app.ts';
import type { Settings } from '../support/process.ts';

export const RUNTIMES = ['custom', 'cortex'] as const;
export type Runtime = (typeof RUNTIMES)[number];

/** What a call asks for. */
export interface Order {
  readonly call: number;
  /** How long it takes. */
  readonly ms: number;
  /** Of the answer, about. */
  readonly size: number;
  readonly fill: string;
}

/** What it is answered with. */
export interface Done {
  readonly call: number;
  /** Bytes of the request. */
  readonly received: number;
  readonly fill: string;
}

export interface RunsApp {
  readonly apps: NonNullable<Settings['apps']>;
  /** By run id, how often it came. */
  readonly arrivals: ReadonlyMap<string, number>;
  /** The most that was open at once, of each runtime. A call whose connection is gone is not open. */
  readonly peaks: Readonly<Record<Runtime, number>>;
}

export async function openRunsApp(concurrency: number): Promise<RunsApp> {
  const arrivals = new Map<string, number>();
  const open = { custom: 0, cortex: 0 };
  const peaks = { custom: 0, cortex: 0 };

  async function work(req: IncomingMessage, res: ServerResponse, runtime: Runtime): Promise<void> {
    const runId = String(req.headers['x-request-id']);
    arrivals.set(runId, (arrivals.get(runId) ?? 0) + 1);
    open[runtime] += 1;
    peaks[runtime] = Math.max(peaks[runtime], open[runtime]);
    // Before the answer is out: as soon as it is, the next one may come.
    const leave = onceOnly(() => (open[runtime] -= 1));
    res.on('close', leave);
    const text = await readText(req);
    const { call, ms, size } = JSON.parse(text) as Order;
    await setTimeout(ms);
    leave();
    const done: Done = { call, received: text.length, fill: 'x'.repeat(size) };
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(done));
  }

  const app = await openApp((req, res) => {
    const runtime = RUNTIMES.find(each => req.url!.startsWith(`/${each}/`))!;
    work(req, res, runtime).catch(() => res.destroy()); // the service was killed while it asked
  });
  onTestFinished(() => app.close());
  const at = (runtime: Runtime) => ({ runtime, url: `${app.url}/${runtime}`, concurrency });
  return { apps: { custom: at('custom'), cortex: at('cortex') }, arrivals, peaks };
}

function onceOnly(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
}
