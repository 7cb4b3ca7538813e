/**
 * What goes wrong between gateway and app (contract, section 1.7): told to the caller as a problem before its
 * answer has begun and as a cut connection after, and to the receiver as `error` in place of `result`. What
 * is the caller's own fault makes no delivery.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Delivered, openRig, type Rig } from './rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await openRig({ appTimeout: 300 });
});
afterAll(() => rig.stop());

const runIdIn = (text: string): string | undefined => /X-Request-Id: (\S+)/i.exec(text)?.[1];

function expectError({ delivery, json }: Delivered, status: number, type: string): void {
  expect(json).toEqual({
    run_id: delivery.runId,
    project_id: 'p-test',
    app: delivery.app,
    status_code: status,
    error: { type, message: expect.stringMatching(/./) },
    run_time_ms: expect.any(Number),
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  });
  expect(delivery.statusCode).toBe(status);
}

describe.each(['raw', 'raw-cortex'] as const)('an app (%s)', app => {
  const method = 'POST';

  it('that nobody can reach is answered for with 502, and delivered', async () => {
    const nowhere = app === 'raw' ? 'nowhere' : 'nowhere-cortex';
    const answer = await rig.call({ app: nowhere, path: 'run', method, hook: true });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body.toString()).code).toBe('app_unreachable');
    expectError(await rig.delivered(answer.header('x-request-id')), 502, 'app_unreachable');
  });

  it('that closes before it answers is answered for with 502, and delivered', async () => {
    const path = rig.raw.play(socket => socket.end());
    const answer = await rig.call({ app, path, method, hook: true });
    expect(answer.status).toBe(502);
    expectError(await rig.delivered(answer.header('x-request-id')), 502, 'app_unreachable');
  });

  it('that does not answer in appTimeout is answered for with 504, and delivered', async () => {
    const path = rig.raw.play(() => {});
    const answer = await rig.call({ app, path, method, hook: true });
    expect(answer.status).toBe(504);
    expect(JSON.parse(answer.body.toString()).code).toBe('app_timeout');
    expectError(await rig.delivered(answer.header('x-request-id')), 504, 'app_timeout');
  });
});

const BROKEN_OFF = [
  ['of declared length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345'],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n'],
] as const;

describe.each(BROKEN_OFF)('an answer %s that breaks off', (_what, bytes) => {
  it.each([
    ['by the end of its connection', 'end', 'answer_cut_off'],
    ['by a reset', 'resetAndDestroy', 'answer_cut_off'],
    ['by a silence longer than appTimeout', 'ref', 'app_timeout'],
  ] as const)('%s is cut for the caller, never whole, and delivered as an error', async (_how, end, type) => {
    const path = rig.raw.play(socket => {
      socket.write(bytes, () => setTimeout(() => socket[end](), 10));
    });
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, hook: true }));
    const text = await caller.end();
    expect(text).toContain('12345');
    expect(text).not.toMatch(/\r\n0\r\n\r\n$|problem/);
    expectError(await rig.delivered(runIdIn(text)), 200, type);
  });

  it('is reset for a caller of HTTP/1.0, for whom an orderly end would be that of the answer', async () => {
    const path = rig.raw.play(socket => {
      socket.write(bytes, () => setTimeout(() => socket.destroy(), 10));
    });
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, version: '1.0' }));
    await caller.end();
    expect(caller.reset).toBe(true);
  });

  it('is a 502 to the caller of a function, since nothing has been sent', async () => {
    const path = rig.raw.play(socket => {
      socket.write(bytes, () => setTimeout(() => socket.end(), 10));
    });
    const answer = await rig.call({ app: 'raw-cortex', path, method: 'POST', hook: true });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body.toString()).code).toBe('answer_cut_off');
    expectError(await rig.delivered(answer.header('x-request-id')), 502, 'answer_cut_off');
  });
});

describe('a large answer that breaks off', () => {
  it.each(['raw', 'raw-cortex'] as const)('leaves nothing behind in the spool (%s)', async app => {
    const path = rig.raw.play(socket => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n');
      socket.write(`"${'x'.repeat(1_000_000)}`, () => setTimeout(() => socket.destroy(), 20));
    });
    const caller = await rig.converse();
    caller.send(rig.head({ app, path, method: 'POST', hook: true }));
    const text = await caller.end();
    expect(text.length).toBeGreaterThan(1_000_000);
    expectError(await rig.delivered(runIdIn(text)), 200, 'answer_cut_off');
    await expect.poll(() => rig.spooled()).toEqual([]);
    expect(rig.spool.memory.used).toBe(0);
  });
});

describe('a failure', () => {
  it('without a webhook is told to the caller alone', async () => {
    const before = rig.deliveries.accepted.length;
    expect((await rig.call({ app: 'nowhere', path: 'x' })).status).toBe(502);
    expect(rig.deliveries.accepted).toHaveLength(before);
  });

  it('of the caller itself makes no delivery', async () => {
    const before = rig.deliveries.accepted.length;
    const calls = [
      { path: 'x', headers: ['Host: two'] },
      { path: '../x' },
      { app: 'cortex', path: 'run', method: 'GET' },
      { app: 'cortex', path: 'run', method: 'POST', body: '[]' },
      { path: 'x?webhookEndpoint=http://10.0.0.1/' },
    ] as const;
    for (const call of calls) expect((await rig.call({ hook: true, ...call })).status).toBeLessThan(500);
    expect(rig.deliveries.accepted).toHaveLength(before);
  });

  it('of one app holds up no other', async () => {
    const stuck = rig.raw.play(() => {});
    const fine = rig.app.play((_req, res) => res.end('fine'));
    const waiting = Array.from({ length: 20 }, () => rig.call({ app: 'raw', path: stuck }));
    expect((await rig.call({ path: fine })).body.toString()).toBe('fine');
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(504);
  });
});
