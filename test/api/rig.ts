/**
 * The API on a listener of its own, in front of a real store whose runs and deliveries a test can bring to where
 * it wants them. Below `/api/v1/` it answers as to a holder of the admin token.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { expect, onTestFinished } from 'vitest';
import { type ApiOptions, createApi } from '../../src/api/api.ts';
import type { Runs } from '../../src/api/run-routes.ts';
import { systemClock } from '../../src/clock.ts';
import { silentLogger } from '../../src/log.ts';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { createStoredRuns } from '../../src/runs/stored-runs.ts';
import { createWaits } from '../../src/runs/waits.ts';
import type { NewRun, RunEnd, RunOutcome, RunRef } from '../../src/store/runs.ts';
import type { AttemptResult, DeliveryRef, NewDelivery, Next, Store } from '../../src/store/store.ts';
import { attempt, newDelivery, newRun, temporaryDirectory } from '../store/samples.ts';
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
  /** A delivery that is this node's. */
  deliver(overrides?: Partial<NewDelivery>): Promise<NewDelivery & { readonly ref: DeliveryRef }>;
  /** One whose first attempt has ended, so or so. */
  attempted(
    next: Next,
    result?: Partial<AttemptResult>,
    delivery?: Partial<NewDelivery>,
  ): Promise<NewDelivery>;
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

/** Nobody asks it for anything. */
const NO_STORE = { available: true } as Store;

/** Nobody has any. */
const NO_RUNS: Runs = {
  find: async () => undefined,
  result: async () => undefined,
  list: async () => [],
  cancel: async () => false,
  wait: async () => undefined,
};

/** All but what a test is about. */
function optionsOf(log: ApiOptions['log']): Omit<ApiOptions, 'store' | 'runs'> {
  return {
    config: { projects: new Map(), apps: new Map() },
    version: '0.0.0-test',
    policy: createTargetPolicy({ allow: [], listeners: () => [], localAddresses: () => [] }),
    hosted: async () => [],
    onJob: () => {},
    clock: systemClock,
    log,
  };
}

/** Without a store: there are no runs but those that `runs` tells of. */
export function openApi(runs: Partial<Runs> = {}): Promise<ApiRig> {
  return serveApi({ store: NO_STORE, runs: { ...NO_RUNS, ...runs } });
}

export async function serveApi(
  given: Pick<ApiOptions, 'store' | 'runs'> & Partial<ApiOptions>,
): Promise<ApiRig> {
  const { log, lines } = captureLog();
  const stopping = new AbortController();
  const api = createApi({ ...optionsOf(log), ...given });
  const server = createServer({ requireHostHeader: false });
  for (const event of ['request', 'checkContinue']) {
    server.on(event, (req, res) => {
      const projectId = req.url!.startsWith('/api/') ? undefined : PROJECT;
      api(req, res, { projectId, runId: uuidv7(), signal: stopping.signal });
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
export async function openRig(overrides: Partial<Runs> = {}, given: Partial<ApiOptions> = {}): Promise<Rig> {
  const dir = temporaryDirectory();
  const spoolDir = join(dir, 'spool');
  const store = await openTestStore({ dir, spoolDir });
  const { runs } = store;
  const waits = createWaits({ runs, clock: systemClock, log: silentLogger });
  const stored = createStoredRuns({ runs, clock: systemClock, log: silentLogger, waits });
  const api = await serveApi({ store, runs: { ...stored, ...overrides }, ...given });

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
  const deliver: Rig['deliver'] = async overrides => {
    const delivery = newDelivery({ projectId: PROJECT, ...overrides });
    return { ...delivery, ref: await store.insert(delivery) };
  };
  return {
    ...api,
    store,
    spoolDir,
    begin,
    finish,
    deliver,
    async attempted(next, result, overrides) {
      const { ref, ...delivery } = await deliver({ begunAt: Date.now(), ...overrides });
      const answered = result?.error === undefined ? { status: 200 } : {};
      expect(await store.endAttempt(ref, attempt(1, { ...answered, ...result }), next)).toBe(true);
      return delivery;
    },
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
