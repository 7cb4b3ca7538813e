/**
 * A caller who leaves (contract, section 6.4): a run with a webhook goes on and is delivered whole, one
 * without ends where it is, and a request that was never whole is no run at all.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flood } from '../support/flood.ts';
import { stalled, until } from '../support/waiting.ts';
import { openRig, type Rig, type Opened, opened } from './rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await openRig();
});
afterAll(() => rig.stop());

function closed(req: IncomingMessage): Promise<void> {
  return new Promise(resolve => {
    req
      .resume()
      .on('error', () => {})
      .once('close', resolve);
  });
}

/** The run id that the app was given. */
const runIdOf = ({ req }: Opened): string => String(req.headers['x-request-id']);

describe('a caller who leaves while the app answers', () => {
  it.each([
    ['a small answer', 10],
    ['an answer beyond what memory holds', 3_000_000],
  ])('has the run go on and delivered whole, where there is a webhook (%s)', async (_what, size) => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path, hook: true }));
    const app = await call;
    app.res.writeHead(200, { 'Content-Type': 'text/plain' }).write('first ');
    await caller.until('first ');
    caller.close();
    app.res.end('x'.repeat(size));
    const { json, delivery } = await rig.delivered(runIdOf(app));
    expect(json).toMatchObject({ status_code: 200, result: `first ${'x'.repeat(size)}` });
    expect(delivery.statusCode).toBe(200);
  });

  it('has the run go on when it leaves before there is any answer', async () => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'cortex', path, hook: true, method: 'POST' }));
    const app = await call;
    caller.close();
    app.res.end('{"done":true}');
    const { json } = await rig.delivered(runIdOf(app));
    expect(json).toMatchObject({ status_code: 200, result: { done: true } });
  });

  it('does not hold the run up when it had stopped reading before it left', async () => {
    const size = 64 * 1024 * 1024;
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.socket.pause();
    caller.send(rig.head({ path, hook: true }));
    const app = await call;
    const { sent, done } = flood(app.res, size);
    expect(await stalled(sent)).toBeLessThan(size);
    caller.close();
    await done;
    app.res.end();
    const { json } = await rig.delivered(runIdOf(app));
    expect(json['result_omitted']).toEqual({ bytes: size, limit: 16 * 1024 * 1024 });
  });

  it('ends the run, and the app sees it, where there is no webhook', async () => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path }));
    const { req, res } = await call;
    res.write('first ');
    await caller.until('first ');
    caller.close();
    await once(res, 'close');
    expect(req.destroyed).toBe(true);
    expect(res.writableFinished).toBe(false);
    await until(() => rig.calls.at(-1)?.status === 499);
  });

  it('ends the run without a webhook also before there is any answer', async () => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path, method: 'POST', headers: ['Content-Length: 0'] }));
    const { res } = await call;
    caller.close();
    await once(res, 'close');
    expect(res.writableEnded).toBe(false);
  });

  it('ends pipelined calls that wait for their turn, too', async () => {
    const [first, second] = [opened(rig), opened(rig)];
    const caller = await rig.converse();
    caller.send(rig.head({ path: first.path }) + rig.head({ path: second.path }));
    const apps = [await first.call, await second.call];
    apps[1]!.res.write(Buffer.alloc(1_000_000));
    caller.close();
    await Promise.all(apps.map(({ res }) => once(res, 'close')));
    expect(apps.map(({ res }) => res.writableFinished)).toEqual([false, false]);
  });

  it('has a pipelined call with a webhook go on', async () => {
    const [first, second] = [opened(rig), opened(rig)];
    const caller = await rig.converse();
    caller.send(rig.head({ path: first.path }) + rig.head({ path: second.path, hook: true }));
    const [app, hooked] = [await first.call, await second.call];
    hooked.res.writeHead(200, { 'Content-Type': 'text/plain' }).write('x'.repeat(1_000_000));
    caller.close();
    await once(app.res, 'close');
    hooked.res.end('y');
    const { json } = await rig.delivered(runIdOf(hooked));
    expect(json['result']).toBe(`${'x'.repeat(1_000_000)}y`);
  });
});

describe('a caller who leaves while it sends', () => {
  it.each([
    ['of declared length', 'Content-Length: 1000000', 'x'.repeat(1000)],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\nabcde\r\n'],
    ['a small one', 'Content-Length: 10', '12345'],
  ])(
    'has made no run: the app sees the upload (%s) break off, nothing is delivered',
    async (_w, header, part) => {
      const before = rig.deliveries.accepted.length;
      const { path, call } = opened(rig);
      const caller = await rig.converse();
      caller.send(rig.head({ path, hook: true, method: 'POST', headers: [header] }));
      caller.send(part);
      const { req, res } = await call;
      const broken = closed(req);
      caller.close();
      await broken;
      expect(req.complete).toBe(false);
      expect(res.writableEnded).toBe(false);
      await until(() => rig.calls.at(-1)?.status === 499);
      expect(rig.deliveries.accepted).toHaveLength(before);
    },
  );

  it('has made no run though the app had begun to answer, and leaves nothing behind', async () => {
    const before = rig.deliveries.accepted.length;
    const kept = await rig.spooled();
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path, hook: true, method: 'POST', headers: ['Content-Length: 1000000'] }));
    caller.send('begun');
    const { req, res } = await call;
    const broken = closed(req);
    res.write('x'.repeat(500_000));
    await until(() => caller.text.length > 500_000);
    caller.close();
    await broken;
    await until(() => rig.calls.at(-1)?.status === 499);
    await until(async () => (await rig.spooled()).length === kept.length);
    expect(rig.spool.memory.used).toBe(0);
    expect(rig.deliveries.accepted).toHaveLength(before);
  });
});

describe('the gateway, when it stops', () => {
  it('lets a call end, takes no other, and then has no connection left', async () => {
    const own = await openRig();
    const { promise, resolve } = Promise.withResolvers<ServerResponse>();
    const path = own.app.play((_req, res) => resolve(res));
    const idle = await own.converse();
    const caller = await own.converse();
    caller.send(own.head({ path }));
    const res = await promise;
    const stopped = own.stop(10_000);
    await idle.end();
    res.end('fine');
    expect(await caller.end()).toMatch(/fine$/);
    await stopped;
    await expect(own.converse()).rejects.toThrow('ECONNREFUSED');
  });
});
