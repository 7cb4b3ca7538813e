/**
 * The API on a listener of its own, in front of a real store whose runs a test can bring to where it wants them.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { expect, onTestFinished } from 'vitest';
import { createApi } from '../../src/api/api.ts';
import type { Runs } from '../../src/api/run-routes.ts';
import { systemClock } from '../../src/clock.ts';
import { silentLogger } from '../../src/log.ts';
import { createWaits } from '../../src/runs/waits.ts';
import type { NewRun, RunEnd, RunOutcome, RunRef } from '../../src/store/runs.ts';
import type { Store } from '../../src/store/store.ts';
import { newRun, temporaryDirectory } from '../store/samples.ts';
import { openTestStore } from '../store/sqlite/opening.ts';
import { captureLog, type LogLine } from '../support/log.ts';

export const PROJECT = 'p-demo';

/** The API on a listener. */
export interface ApiRig {
  readonly port: number;
  readonly lines: readonly LogLine[];
  /** As the service does when it stops. */
  stop(): void;
  get(path: string, init?: RequestInit): Promise<Answer>;
}

/** The API in front of a store. */
export interface Rig extends ApiRig {
  readonly store: Store;
  readonly spoolDir: string;
  insert(overrides?: Partial<NewRun>): Promise<NewRun>;
  begin(run: NewRun): Promise<RunRef>;
  /** A run from its beginning to its end. */
  end(run: NewRun, outcome: RunOutcome, end?: Partial<RunEnd>): Promise<void>;
  /** The end of one that was begun. */
  finish(run: NewRun, ref: RunRef, outcome: RunOutcome, end?: Partial<RunEnd>): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}

export const T = 1_800_000_000_000;

export function envelopeOf({ runId, projectId, app }: NewRun, rest: string): string {
  return `{"run_id":"${runId}","project_id":"${projectId}","app":"${app}",${rest}}`;
}

/** Nobody has any. */
const NO_RUNS: Runs = {
  find: async () => undefined,
  result: async () => undefined,
  list: async () => [],
  cancel: async () => false,
  wait: async () => undefined,
};

/** Without a store: there are no runs but those that `runs` tells of. */
export async function openApi(runs: Partial<Runs> = {}): Promise<ApiRig> {
  const { log, lines } = captureLog();
  const stopping = new AbortController();
  const api = createApi({ log, runs: { ...NO_RUNS, ...runs } });
  const server = createServer({ requireHostHeader: false });
  for (const event of ['request', 'checkContinue']) {
    server.on(event, (req, res) => {
      api(req, res, { projectId: PROJECT, runId: uuidv7(), signal: stopping.signal });
    });
  }
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    lines,
    stop: () => stopping.abort(),
    async get(path, init) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
      const text = await response.text();
      const { status, headers } = response;
      return { status, headers, text, json: text === '' ? undefined : JSON.parse(text) };
    },
  };
}

/** `overrides` take the place of what the store would do. */
export async function openRig(overrides: Partial<Runs> = {}): Promise<Rig> {
  const dir = temporaryDirectory();
  const spoolDir = join(dir, 'spool');
  const store = await openTestStore({ dir, spoolDir });
  const { runs } = store;
  const waits = createWaits({ runs, clock: systemClock, log: silentLogger });
  const api = await openApi({
    find: (projectId, runId) => runs.find(projectId, runId),
    result: (projectId, runId) => runs.result(projectId, runId),
    list: (filter, page) => runs.list(filter, page),
    cancel: (projectId, runId) => runs.cancel(projectId, runId),
    async wait(projectId, runId, until) {
      const run = await runs.find(projectId, runId);
      if (run === undefined || run.endedAt !== undefined) return run;
      await waits.wait(runId, until);
      return runs.find(projectId, runId);
    },
    ...overrides,
  });

  const begin = async ({ projectId, app, runId }: NewRun): Promise<RunRef> => {
    const claimed = await runs.claim([{ projectId, app, limit: 1_000, each: false }]);
    const { ref } = claimed.find(each => each.runId === runId)!;
    expect(await runs.begin(ref, T + 1_000)).toBe('begun');
    return ref;
  };
  const finish: Rig['finish'] = async (run, ref, outcome, end) => {
    const ending = { state: 'succeeded', endedAt: T + 2_000, statusCode: 200, ...end } as const;
    expect(await runs.end(ref, ending, outcome)).toBeDefined();
    waits.ended(run.runId);
  };
  return {
    ...api,
    store,
    spoolDir,
    begin,
    finish,
    async insert(overrides) {
      const run = newRun({ projectId: PROJECT, createdAt: T, ...overrides });
      expect(await runs.insert(run)).toEqual({ outcome: 'inserted' });
      return run;
    },
    end: async (run, outcome, end) => finish(run, await begin(run), outcome, end),
  };
}

export function pathOf(runId: string, rest = ''): string {
  return `/v4/${PROJECT}/_runs/${runId}${rest}`;
}
