/**
 * What the dashboard is looked at with: a service on an embedded store, an app whose answers can be held back, and
 * receivers that answer as they are told.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { openApp, type TestApp } from '../support/app.ts';
import { hostile, type Receiver, startHostile, startReceiver } from '../support/receivers.ts';
import { startService, type TestService, type TestServiceOptions } from '../support/service.ts';

export const SECRET = 's3cret-of-the-call';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface Scene {
  readonly service: TestService;
  /** Of the dashboard. */
  readonly origin: string;
  /** Makes a call whose answer is delivered there, and tells its run. */
  call(target: string, options?: CallOptions): Promise<string>;
  /** A receiver that lives as long as the scene. */
  receiver(status?: number | StatusOf): Promise<MoodyReceiver>;
}

export interface CallOptions {
  /** Calls of `held` are answered when the scene is over, one of them at a time. */
  readonly app?: 'hello' | 'held';
  readonly async?: boolean;
}

/** What is answered to the first request, the second, and so on, when the time has come. */
export type StatusOf = (number: number) => number | Promise<number>;

export interface MoodyReceiver extends Pick<Receiver, 'url' | 'requests'> {
  /** As a filter names it. */
  readonly host: string;
  /** What it answers from now on. */
  status: number | StatusOf;
}

export interface SceneOptions extends Pick<TestServiceOptions, 'adminToken'> {
  /** Puts something into the data directory before the service starts. What is pending there waits for ever. */
  readonly fill?: (data: string, deaf: string) => void;
}

/** To be called where hooks are: one scene for the tests of a file. */
export function useScene({ fill, adminToken }: SceneOptions = {}): Scene {
  const receivers: Receiver[] = [];
  const closing: (() => Promise<void>)[] = [];
  let service: TestService;
  beforeAll(async () => {
    const data = await mkdtemp(join(tmpdir(), 'afterword-scene-'));
    closing.push(() => rm(data, { recursive: true, force: true }));
    const deaf = await startHostile(hostile.neverAnswers);
    receivers.push(deaf);
    fill?.(data, deaf.url);
    const [app, release] = await openHoldingApp();
    closing.push(() => app.close());
    const apps = {
      hello: { runtime: 'cortex', url: app.url },
      held: { runtime: 'cortex', url: `${app.url}/held`, concurrency: 1 },
    } as const;
    service = await startService({
      apps,
      data,
      webhooks: { attemptTimeout: HOUR_MS },
      async: { retention: 30 * DAY_MS },
      ...(adminToken !== undefined && { adminToken }),
    });
    closing.push(() => service.stop(), release);
  });
  afterAll(async () => {
    await Promise.all(receivers.map(each => each.close()));
    for (const close of closing.reverse()) await close();
  });

  return {
    get service() {
      return service;
    },
    get origin() {
      return service.admin;
    },
    call: (target, call = {}) => callFor(service, target, call),
    async receiver(status = 200) {
      const { receiver, moody } = await startMoody(status);
      receivers.push(receiver);
      return moody;
    },
  };
}

async function openHoldingApp(): Promise<[TestApp, () => Promise<void>]> {
  const held = Promise.withResolvers<void>();
  const answer = async (path: string): Promise<string> => {
    if (path.startsWith('/held')) await held.promise;
    return '{"greeting":"Hello, Ada!","exactly":12345678901234567890}';
  };
  const app = await openApp((req, res) => {
    res.setHeader('Content-Type', 'application/json');
    void answer(req.url!).then(text => res.end(text));
  });
  return [app, async () => held.resolve()];
}

async function callFor(service: TestService, target: string, options: CallOptions): Promise<string> {
  const { app = 'hello', async = false } = options;
  const answer = await fetch(service.base + service.path(`${app}/run${async ? '?async=true' : ''}`, target), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.token}`,
      'content-type': 'application/json',
      'x-webhook-secret': SECRET,
    },
    body: '{"name":"Ada"}',
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`a call was answered with ${answer.status}`);
  return answer.headers.get('x-request-id')!;
}

async function startMoody(status: MoodyReceiver['status']) {
  const mood = { status };
  const statusOf = async (number: number): Promise<number> =>
    typeof mood.status === 'number' ? mood.status : mood.status(number);
  const receiver = await startReceiver((_, response) => {
    void statusOf(requests.length).then(status => {
      response.writeHead(status, { 'Content-Type': 'application/json', Server: 'moody' });
      response.end(`{"said":${status}}`);
    });
  });
  const { url, requests } = receiver;
  const moody: MoodyReceiver = Object.assign(mood, { url: `${url}/hook`, requests, host: new URL(url).host });
  return { receiver, moody };
}
