import { createHmac } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { AttemptRequest } from '../../src/delivery/attempt.ts';
import { judgeOutcome } from '../../src/delivery/outcome.ts';
import { attemptOn, attemptOnce, openSender, policyAllowing } from '../support/attempts.ts';
import { ManualClock } from '../support/clock.ts';
import { closedPort, expectUntouched, type Received, startReceiver } from '../support/receivers.ts';

describe('what is kept of an answer', () => {
  const authorization = `Basic ${Buffer.from('user:canary-password').toString('base64')}`;
  const confidential = { secret: Buffer.from('canary-secret'), authorization };

  it.each([
    ['thanks', 'thanks'],
    [`you sent ${authorization}`, undefined],
    ['welcome, canary-password', undefined],
    ['signed with canary-secret', undefined],
  ])('of %j is %j', async (said, kept) => {
    await using receiver = await startReceiver((_, response) => response.end(said));
    const { status, excerpt } = await attemptOnce(receiver, { confidential });
    expect(status).toBe(200);
    expect(excerpt && Buffer.from(excerpt).toString()).toBe(kept);
  });

  it.each([
    ['thanks', 'X-Said: thanks'],
    [authorization, undefined],
    ['canary-password', undefined],
    ['canary-secret', undefined],
  ])('of a header with %j is %j', async (said, kept) => {
    await using receiver = await startReceiver((_, response) => {
      response.writeHead(200, ['X-Said', said, 'Content-Length', '2']).end('ok');
    });
    const { headers, excerpt } = await attemptOnce(receiver, { confidential });
    expect(headers).toBe(kept && `${kept}\nContent-Length: 2`);
    expect(Buffer.from(excerpt!).toString()).toBe('ok');
  });
});

describe('the request', () => {
  const clock: Clock = { ...systemClock, now: () => 1_700_000_000_999 };
  const secret = Buffer.from([0x73, 0xc3, 0xa9, 0xff]);
  const bytes = Buffer.from('{"run_id":"run-1","result":"größe"}');
  const hmac = () => createHmac('sha256', secret).update('run-1.1700000000.').update(bytes);

  async function received(more: Partial<AttemptRequest>): Promise<Received> {
    await using receiver = await startReceiver();
    await using sender = openSender({ clock });
    await sender.send(attemptOn(`${receiver.url}/a/%20b?c=d%2Fe&f#g`, { body: { bytes }, ...more }));
    return receiver.requests[0]!;
  }

  it('is a POST to the target, query and all, of the body as it is', async () => {
    const request = await received({});
    expect([request.method, request.url]).toEqual(['POST', '/a/%20b?c=d%2Fe&f']);
    expect(request.body).toEqual(bytes);
  });

  it('carries these headers and no others', async () => {
    const { rawHeaders, headers } = await received({
      number: 2,
      confidential: { secret, authorization: 'Basic dTpw' },
    });
    expect(new Set(rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase()))).toEqual(
      new Set(Object.keys(headers)),
    );
    expect(headers).toEqual({
      host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(bytes.length),
      'user-agent': 'Afterword/test',
      authorization: 'Basic dTpw',
      'x-request-id': 'run-1',
      'x-service-webhook-timestamp': '1700000000',
      'x-service-webhook-attempt': '2',
      'x-service-webhook-signature': `v1,${hmac().digest('hex')}`,
    });
  });

  it('has no signature where there is no secret', async () => {
    const { headers } = await received({ standardWebhooks: true });
    expect(Object.keys(headers).filter(name => name.includes('signature'))).toEqual([]);
    expect(headers).toMatchObject({ 'webhook-id': 'run-1', 'webhook-timestamp': '1700000000' });
    expect(headers).not.toHaveProperty('authorization');
  });

  it('carries the Standard Webhooks headers besides, where asked for', async () => {
    const { headers } = await received({ standardWebhooks: true, confidential: { secret } });
    expect(headers).toMatchObject({
      'webhook-id': 'run-1',
      'webhook-timestamp': '1700000000',
      'webhook-signature': `v1,${hmac().digest('base64')}`,
      'x-service-webhook-signature': `v1,${hmac().digest('hex')}`,
    });
  });

  it('is not sent where a header cannot be', async () => {
    await using receiver = await startReceiver();
    const outcome = await attemptOnce(receiver, { confidential: { authorization: 'Basic a\r\nX-Evil: 1' } });
    expect(outcome).toMatchObject({ error: 'request_failed' });
    expect(receiver.connections).toBe(0);
  });

  it.each(['not a url', 'ftp://127.0.0.1/', 'http://'])('is not sent to %j', async target => {
    await using sender = openSender();
    expect(await sender.send(attemptOn(target))).toMatchObject({ error: 'request_failed' });
  });
});

describe('the outcome', () => {
  it.each([
    [200, 'delivered'],
    [202, 'delivered'],
    [204, 'delivered'],
    [302, 'retry'],
    [304, 'retry'],
    [400, 'rejected'],
    [404, 'retry'],
    [410, 'rejected'],
    [429, 'rejected'],
    [500, 'rejected'],
    [503, 'rejected'],
  ] as const)('of an answer with %i is %s', async (status, verdict) => {
    await using receiver = await startReceiver(status);
    const outcome = await attemptOnce(receiver);
    const { headers: _, ...rest } = outcome;
    expect(rest).toEqual({ status, startedAt: expect.any(Number), timings: expect.any(Object) });
    expect(judgeOutcome(outcome)).toBe(verdict);
  });

  it('of a refused connection is to retry', async () => {
    await using sender = openSender();
    const outcome = await sender.send(attemptOn(`http://127.0.0.1:${await closedPort()}/`));
    expect(outcome).toMatchObject({ error: 'connection_refused' });
    expect(judgeOutcome(outcome)).toBe('retry');
  });

  it('of an unknown name is to retry', async () => {
    const lookup = () => Promise.reject(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }));
    await using sender = openSender({ lookup });
    const outcome = await sender.send(attemptOn('http://receiver.example/'));
    expect(outcome).toMatchObject({ error: 'dns_not_found' });
    expect(judgeOutcome(outcome)).toBe('retry');
  });

  it('of a forbidden target is blocked', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender({ policy: policyAllowing() });
    const outcome = await sender.send(attemptOn(receiver.url));
    expect(outcome).toMatchObject({ error: 'blocked_target' });
    expect(judgeOutcome(outcome)).toBe('blocked');
  });

  it('of a look-up that hangs is a timeout', async () => {
    const clock = new ManualClock();
    const lookup = vi.fn(() => new Promise<never>(() => {}));
    await using sender = openSender({ clock, lookup, timeout: 1_000 });
    const sending = sender.send(attemptOn('http://receiver.example/'));
    await vi.waitFor(() => expect(lookup).toHaveBeenCalled(), { timeout: 10_000, interval: 5 });
    clock.advance(1_000);
    const outcome = await sending;
    expect(outcome).toMatchObject({ error: 'timeout', timings: { totalMs: 1_000 } });
    expect(judgeOutcome(outcome)).toBe('retry');
    expect(clock.waiting).toBe(0);
  });

  it('tells the times of each step, and of connecting only to the attempt that caused it', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender({ lookup: async () => ['127.0.0.1'] });
    const target = `http://receiver.example:${receiver.port}/`;
    const duration = expect.any(Number);
    const before = Date.now();
    const first = await sender.send(attemptOn(target));
    const second = await sender.send(attemptOn(target));
    expect(first.startedAt).toBeGreaterThanOrEqual(before);
    expect(first.timings).toEqual({
      dnsMs: duration,
      connectMs: duration,
      firstByteMs: duration,
      totalMs: duration,
    });
    expect(second.timings).toEqual({ firstByteMs: duration, totalMs: duration });
    const { totalMs, ...steps } = first.timings;
    expect(totalMs).toBeGreaterThanOrEqual(Object.values(steps).reduce((sum, step) => sum + step, 0));
  });
});

describe('a target', () => {
  it.each([
    (port: number) => `http://127.0.0.1:${port}/`,
    (port: number) => `http://2130706433:${port}/`,
    (port: number) => `http://0x7f.1:${port}/`,
    (port: number) => `http://0:${port}/`,
    (port: number) => `http://[::ffff:127.0.0.1]:${port}/`,
    (port: number) => `http://[::ffff:7f00:1]:${port}/`,
  ])('on loopback is refused undialled: %s', async targetOn => {
    await using canary = await startReceiver();
    await using sender = openSender({ policy: policyAllowing() });
    expect(await sender.send(attemptOn(targetOn(canary.port)))).toMatchObject({ error: 'blocked_target' });
    await expectUntouched(canary);
  });

  it('whose name turns to loopback between attempts is refused undialled', async () => {
    await using canary = await startReceiver();
    await using receiver = await startReceiver(
      (_received, response) => response.writeHead(404, { connection: 'close' }).end(),
      { host: '127.0.0.2', port: canary.port },
    );
    const lookup = vi.fn().mockResolvedValueOnce(['127.0.0.2']).mockResolvedValue(['127.0.0.1']);
    await using sender = openSender({ policy: policyAllowing('127.0.0.2'), lookup });
    const attempt = attemptOn(`http://rebinding.example:${canary.port}/`);
    expect(await sender.send(attempt)).toMatchObject({ status: 404 });
    expect(await sender.send(attempt)).toMatchObject({ error: 'blocked_target' });
    expect(receiver.requests.length).toBe(1);
    await expectUntouched(canary);
  });

  it('is reached directly, whatever proxy the environment names', async () => {
    await using proxy = await startReceiver(502);
    await using receiver = await startReceiver();
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
      vi.stubEnv(name, proxy.url);
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    const outcome = await attemptOnce(receiver);
    vi.unstubAllEnvs();
    expect(outcome.status).toBe(200);
    await expectUntouched(proxy);
  });
});
