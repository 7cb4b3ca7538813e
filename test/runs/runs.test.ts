/**
 * Runs carried out: what the app gets, what is kept, and what becomes of a run when its app, its node or its
 * caller's mind changes.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { beforeAll, afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { REQUEST_SUFFIX } from '../../src/store/runs.ts';
import type { Store } from '../../src/store/store.ts';
import { runIdAt } from '../store/samples.ts';
import { ManualClock } from '../support/clock.ts';
import { closedPort } from '../support/receivers.ts';
import { openStage, type AppHandler, type Stage } from '../support/stage.ts';
import { until } from '../support/waiting.ts';
import { openRig, PROJECT, urlApp } from './rig.ts';

const TARGET = 'https://receiver.example/hook';
const WEBHOOK = { target: TARGET, confidential: {} };

let stage: Stage<AppHandler>;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const ok: AppHandler = (_req, res) =>
  res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"n":1}');

/** Calls that the app has got and not answered. */
function holding(): { handler: AppHandler; open: Array<{ req: IncomingMessage; res: ServerResponse }> } {
  const open: Array<{ req: IncomingMessage; res: ServerResponse }> = [];
  return { open, handler: (req, res) => open.push({ req, res }) };
}

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'afterword-runs-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A port at which nobody listens, until the test does. */
async function downApp(): Promise<{ url: string; up: () => Promise<void> }> {
  const port = await closedPort();
  return {
    url: `http://127.0.0.1:${port}`,
    async up() {
      const server = createServer((_req, res) => res.end('up')).listen(port, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => void server.close());
    },
  };
}

describe('a run', () => {
  it('is sent as it was taken in, and its answer is kept', async () => {
    const got: Array<{ req: IncomingMessage; body: string }> = [];
    const path = stage.play(async (req, res) => {
      let body = '';
      for await (const chunk of req) body += String(chunk);
      got.push({ req, body });
      await ok(req, res);
    });
    const rig = await openRig([urlApp('web', `${stage.url}/base`)]);
    rig.runs.start();
    const { runId } = await rig.add('web', {
      method: 'PUT',
      path: `/${path}`,
      query: 'a=%20b&&c',
      headers: ['X-Own', 'one', 'x-own', 'two', 'Content-Length', '5'],
      body: { bytes: Buffer.from('hello') },
    });
    const record = await rig.ended(runId);
    expect(record).toMatchObject({ state: 'succeeded', starts: 1, statusCode: 200, cancelling: false });
    expect(record.startedAt).toBeGreaterThanOrEqual(record.createdAt);
    expect(record.endedAt).toBeGreaterThanOrEqual(record.startedAt!);
    expect(got).toHaveLength(1);
    const [{ req, body }] = got as [(typeof got)[0]];
    expect([req.method, req.url, body]).toEqual(['PUT', `/base/${path}?a=%20b&&c`, 'hello']);
    expect(req.headers.host).toBe(new URL(stage.url).host);
    expect(req.rawHeaders.slice(4, 8)).toEqual(['X-Own', 'one', 'x-own', 'two']);
    expect(req.headers['content-length']).toBe('5');
    expect(await rig.resultOf(runId)).toMatchObject({ run_id: runId, status_code: 200, result: { n: 1 } });
    expect(rig.delivered).toEqual([]);
  });

  it('sends a request that lies in a file', async () => {
    const sizes: number[] = [];
    const path = stage.play(async (req, res) => {
      let size = 0;
      for await (const chunk of req) size += (chunk as Buffer).length;
      sizes.push(size);
      res.end();
    });
    const rig = await openRig([urlApp('web', stage.url)]);
    const runId = uuidv7();
    const file = join(rig.dir, 'spool', runId + REQUEST_SUFFIX);
    await writeFile(file, Buffer.alloc(300_000));
    rig.runs.start();
    await rig.add('web', { runId, path: `/${path}`, body: { file, size: 300_000 } });
    await rig.ended(runId);
    expect(sizes).toEqual([300_000]);
  });

  it('with a webhook makes its delivery along with its end', async () => {
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${stage.play(ok)}`, webhook: WEBHOOK });
    expect(await rig.ended(runId)).toMatchObject({
      state: 'succeeded',
      target: TARGET,
      delivery: { state: 'pending', attempts: 0 },
    });
    expect(rig.delivered).toMatchObject([{ runId, target: TARGET, statusCode: 200 }]);
    expect(await rig.resultOf(runId)).toMatchObject({ result: { n: 1 } });
  });

  it('has failed when the app answers with an error', async () => {
    const path = stage.play((_req, res) => res.writeHead(503).end('no'));
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${path}` });
    expect(await rig.ended(runId)).toMatchObject({ state: 'failed', statusCode: 503 });
    expect(await rig.resultOf(runId)).toMatchObject({ result: 'no' });
  });

  it('has failed when the app breaks off its answer', async () => {
    const path = stage.play((_req, res) => {
      res.writeHead(200, { 'Content-Length': '100' });
      res.write('half');
      setImmediate(() => res.destroy());
    });
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${path}` });
    expect(await rig.ended(runId)).toMatchObject({ state: 'failed', error: 'answer_cut_off', starts: 1 });
  });

  it('whose request cannot be sent ends as failed, at once', async () => {
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: '/', headers: ['bad name', 'x'] });
    expect(await rig.ended(runId)).toMatchObject({ state: 'failed', error: 'bad_request' });
  });
});

describe('an app that is down', () => {
  it('is waited for', async () => {
    const app = await downApp();
    const rig = await openRig([urlApp('web', app.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web');
    await until(async () => (await rig.store.runs.find(PROJECT, runId))!.state === 'running');
    await app.up();
    expect(await rig.ended(runId)).toMatchObject({ state: 'succeeded', starts: 1 });
  });

  it('fails its runs when their time is up, and says why', async () => {
    const app = await downApp();
    const clock = new ManualClock(Date.now());
    const rig = await openRig([urlApp('web', app.url)], { clock, async: { timeout: 400 } });
    rig.runs.start();
    const { runId } = await rig.add('web', { webhook: WEBHOOK });
    await until(() => clock.nextIn === 100); // it was tried, and waits to be tried again
    clock.advance(400);
    expect(await rig.ended(runId)).toMatchObject({
      state: 'failed',
      error: 'app_unreachable',
      statusCode: 502,
    });
    expect(rig.delivered).toHaveLength(1);
  });

  it('is no reason to run again what it may have seen', async () => {
    let calls = 0;
    const path = stage.play((_req, res) => {
      calls += 1;
      res.destroy();
    });
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${path}` });
    expect(await rig.ended(runId)).toMatchObject({ state: 'failed', error: 'app_unreachable' });
    expect(calls).toBe(1);
  });
});

it('a run that takes too long fails, and its app sees the connection close', async () => {
  const { handler, open } = holding();
  const clock = new ManualClock(Date.now());
  const rig = await openRig([urlApp('web', stage.url)], { clock, async: { timeout: 300 } });
  rig.runs.start();
  const { runId } = await rig.add('web', { path: `/${stage.play(handler)}` });
  await until(() => open.length === 1);
  const closed = once(open[0]!.res, 'close');
  clock.advance(300);
  expect(await rig.ended(runId)).toMatchObject({ state: 'failed', error: 'app_timeout', statusCode: 504 });
  await closed;
});

describe('cancelling', () => {
  it('keeps a queued run from ever reaching its app', async () => {
    const { handler, open } = holding();
    const path = `/${stage.play(handler)}`;
    const rig = await openRig([urlApp('web', stage.url, 1)]);
    rig.runs.start();
    const first = await rig.add('web', { path });
    const second = await rig.add('web', { path, webhook: WEBHOOK });
    await until(() => open.length === 1);
    expect(await rig.runs.cancel(PROJECT, second.runId)).toBe(true);
    expect(await rig.store.runs.find(PROJECT, second.runId)).toMatchObject({ state: 'cancelled' });
    expect(await rig.ended(second.runId)).toMatchObject({
      state: 'cancelled',
      error: 'cancelled',
      statusCode: 499,
      starts: 0,
    });
    expect(rig.delivered).toHaveLength(1);
    open[0]!.res.end();
    await rig.ended(first.runId);
    expect(open).toHaveLength(1);
  });

  it('closes the connection of one that runs', async () => {
    const { handler, open } = holding();
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${stage.play(handler)}`, webhook: WEBHOOK });
    await until(() => open.length === 1);
    const closed = once(open[0]!.res, 'close');
    expect(await rig.runs.cancel(PROJECT, runId)).toBe(true);
    expect(await rig.ended(runId)).toMatchObject({ state: 'cancelled', starts: 1 });
    await closed;
    const [delivery] = rig.delivered;
    expect(JSON.parse(Buffer.from((delivery!.body as { bytes: Uint8Array }).bytes).toString())).toMatchObject(
      {
        status_code: 499,
        error: { type: 'cancelled' },
      },
    );
  });

  it('ends one that waits for its app', async () => {
    const app = await downApp();
    const rig = await openRig([urlApp('web', app.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web');
    await until(async () => (await rig.store.runs.find(PROJECT, runId))!.state === 'running');
    await rig.runs.cancel(PROJECT, runId);
    expect(await rig.ended(runId)).toMatchObject({ state: 'cancelled', starts: 1 });
  });

  it('does nothing to a run that has ended, and knows none of another project', async () => {
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${stage.play(ok)}` });
    await rig.ended(runId);
    expect(await rig.runs.cancel(PROJECT, runId)).toBe(false);
    expect(await rig.runs.cancel('p-other', runId)).toBe(false);
    expect(await rig.ended(runId)).toMatchObject({ state: 'succeeded' });
  });
});

describe('a node that dies', () => {
  it('has its runs started again, as often as is permitted, and then ended as interrupted', async () => {
    const { handler, open } = holding();
    const path = `/${stage.play(handler)}`;
    const dir = await folder();
    const apps = [urlApp('web', stage.url)];
    const first = await openRig(apps, { dir });
    first.runs.start();
    const { runId } = await first.add('web', { path, webhook: WEBHOOK });
    await until(() => open.length === 1);
    await first.halt();

    const second = await openRig(apps, { dir });
    expect(await second.store.runs.find(PROJECT, runId)).toMatchObject({ state: 'queued', starts: 1 });
    second.runs.start();
    await until(() => open.length === 2);
    await second.halt();

    const third = await openRig(apps, { dir });
    third.runs.start();
    expect(await third.ended(runId)).toMatchObject({ state: 'failed', error: 'interrupted', starts: 2 });
    expect(third.delivered).toMatchObject([{ runId, statusCode: 502 }]);
    expect(open).toHaveLength(2);
    await third.halt();
  });
});

describe('a stop', () => {
  it('lets runs end, claims no more, and gives up what has not ended', async () => {
    const { handler, open } = holding();
    const path = `/${stage.play(handler)}`;
    const clock = new ManualClock(Date.now());
    const rig = await openRig([urlApp('web', stage.url, 2)], { clock });
    rig.runs.start();
    const [one, two, three] = [
      await rig.add('web', { path, query: 'one' }),
      await rig.add('web', { path, query: 'two' }),
      await rig.add('web', { path, query: 'three' }),
    ];
    await until(() => open.length === 2);
    // They may have come in any order.
    const callOf = (query: string): ServerResponse =>
      open.find(({ req }) => req.url!.endsWith(`?${query}`))!.res;
    const closed = once(callOf('two'), 'close');
    const stopped = rig.runs.stop({ graceMs: 200 });
    callOf('one').end('done');
    await rig.ended(one.runId);
    clock.advance(200);
    await stopped;
    await closed;
    await rig.store.release();
    const states = await Promise.all([one, two, three].map(run => rig.store.runs.find(PROJECT, run.runId)));
    expect(states.map(run => [run!.state, run!.starts])).toEqual([
      ['succeeded', 1],
      ['queued', 1],
      ['queued', 0],
    ]);
    expect(open).toHaveLength(2);
  });

  it('does not count the start of a run whose app was never reached', async () => {
    const app = await downApp();
    const rig = await openRig([urlApp('web', app.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web');
    await until(async () => (await rig.store.runs.find(PROJECT, runId))!.starts === 1);
    await rig.runs.stop({ graceMs: 0 });
    expect(await rig.store.runs.find(PROJECT, runId)).toMatchObject({ state: 'queued', starts: 0 });
  });
});

it('no more than `concurrency` run at once, in the order in which they came, and other apps go on', async () => {
  let most = 0;
  let now = 0;
  const held: Array<() => void> = [];
  const path = stage.play((_req, res) => {
    most = Math.max(most, ++now);
    held.push(() => {
      now -= 1;
      res.end();
    });
    // None is answered before there were as many as there may be.
    if (most >= 4) held.splice(0).forEach(answer => setImmediate(answer));
  });
  const { handler, open } = holding();
  const rig = await openRig([urlApp('web', stage.url, 4), urlApp('slow', stage.url, 1)]);
  const slow = await rig.add('slow', { path: `/${stage.play(handler)}` });
  const ids: string[] = [];
  for (let i = 0; i < 100; i++) ids.push((await rig.add('web', { path: `/${path}` })).runId);
  rig.runs.start();
  const ended = await Promise.all(ids.map(id => rig.ended(id)));
  expect(most).toBe(4);
  const begun = ended.map(run => run.startedAt!);
  expect(begun).toEqual(begun.toSorted((a, b) => a - b));
  await until(() => open.length === 1);
  open[0]!.res.end();
  await rig.ended(slow.runId);
});

it('nothing is sent once this node cannot be sure that the run is its own', async () => {
  const { handler, open } = holding();
  let tenure: number | undefined = 1;
  const lapsing = (store: Store): Store => ({
    ...store,
    get available() {
      return store.available;
    },
    get tenure() {
      return tenure;
    },
    runs: {
      ...store.runs,
      async body(ref) {
        if (tenure === 1) tenure = undefined;
        return store.runs.body(ref);
      },
    },
  });
  const rig = await openRig([urlApp('web', stage.url)], { wrap: lapsing });
  rig.runs.start();
  const path = `/${stage.play(handler)}`;
  const { runId } = await rig.add('web', { path });
  await until(() => tenure === undefined);
  await until(async () => (await rig.store.runs.find(PROJECT, runId))!.state === 'queued');
  expect(await rig.store.runs.find(PROJECT, runId)).toMatchObject({ starts: 0 });
  expect(open).toHaveLength(0);

  tenure = 2;
  await rig.add('web', { path });
  await until(() => open.length === 2);
  expect(await rig.store.runs.find(PROJECT, runId)).toMatchObject({ state: 'running', starts: 1 });
});

it('a run whose app is in no configuration any more fails when its time is up', async () => {
  const rig = await openRig([urlApp('web', stage.url)], { async: { timeout: 60_000 } });
  const createdAt = Date.now() - 61_000;
  const old = await rig.add('gone', { runId: runIdAt(createdAt), createdAt });
  const young = await rig.add('gone');
  rig.runs.start();
  expect(await rig.ended(old.runId)).toMatchObject({ state: 'failed', error: 'app_not_found' });
  expect(await rig.store.runs.find(PROJECT, young.runId)).toMatchObject({ state: 'queued' });
});

describe('waiting for a run', () => {
  const signal = new AbortController().signal;

  it('resolves when it ends', async () => {
    const { handler, open } = holding();
    const rig = await openRig([urlApp('web', stage.url)]);
    rig.runs.start();
    const { runId } = await rig.add('web', { path: `/${stage.play(handler)}` });
    await until(() => open.length === 1);
    const waiting = rig.runs.wait(PROJECT, runId, { ms: 60_000, signal });
    open[0]!.res.end();
    expect(await waiting).toMatchObject({ state: 'succeeded' });
    expect(await rig.runs.wait(PROJECT, runId, { ms: 60_000, signal })).toMatchObject({ state: 'succeeded' });
  });

  it('gives what there is when the time is up, and nothing of a run that is not there', async () => {
    const rig = await openRig([urlApp('web', stage.url)]);
    const { runId } = await rig.add('web');
    expect(await rig.runs.wait(PROJECT, runId, { ms: 10, signal })).toMatchObject({ state: 'queued' });
    expect(await rig.runs.wait(PROJECT, uuidv7(), { ms: 60_000, signal })).toBeUndefined();
    expect(await rig.runs.wait('p-other', runId, { ms: 60_000, signal })).toBeUndefined();
  });
});

describe('whoever counts', () => {
  it('is told of a start, with how long it was waited for, and of an end', async () => {
    const name = stage.play(ok);
    const rig = await openRig([urlApp('a', `${stage.url}/${name}`)]);
    const { runId } = await rig.add('a', { createdAt: Date.now() - 5_000 });
    rig.runs.start();
    await rig.ended(runId);
    await until(() => rig.events.length === 2);
    expect(rig.events).toEqual([{ waitedMs: expect.closeTo(5_000, -4) as number }, { state: 'succeeded' }]);
  });

  it('is told of a run that the store refused', async () => {
    const rig = await openRig([urlApp('a', stage.url)]);
    vi.spyOn(rig.store.runs, 'insert').mockRejectedValueOnce(new Error('refused'));
    await expect(rig.add('a')).rejects.toThrow('refused');
    expect(rig.events).toEqual([{ operation: 'insert_run' }]);
  });
});
