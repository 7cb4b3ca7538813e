/**
 * What the service itself answers (contract, section 1): the order of the checks, the shape of a problem,
 * X-Request-Id on every answer, and the calls that are refused for the sake of their webhook.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { callRaw, parseAnswer, type RawAnswer, type RawRequest } from '../support/caller.ts';
import { testToken } from '../support/service.ts';
import { openRig, type Rig, TARGET } from './rig.ts';

const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let rig: Rig;
/** Requests that the app has seen since the test began. */
let seen: string[];
let name: string;

beforeAll(async () => {
  rig = await openRig({ project: { maxPending: 3 } });
  name = rig.app.play((req, res) => {
    seen.push(req.url!);
    res.setHeader('X-Request-Id', 'of the app').end(JSON.stringify(req.rawHeaders));
  });
});
afterAll(() => rig.stop());
beforeEach(() => {
  seen = [];
});

function raw(request: Partial<RawRequest>): Promise<RawAnswer> {
  return callRaw({ port: rig.port, path: rig.target({ path: name }), ...request });
}

async function text(request: string): Promise<RawAnswer> {
  const caller = await rig.converse();
  caller.send(request);
  await caller.end();
  return parseAnswer(caller.bytes);
}

interface Shown {
  readonly status: number;
  readonly code: unknown;
}

/** A problem in its whole shape; anything else fails. */
function problem(answer: RawAnswer): Shown {
  expect(answer.header('content-type')).toBe('application/problem+json');
  expect(answer.header('x-request-id')).toMatch(UUID7);
  const body = JSON.parse(answer.body.toString());
  expect(body).toEqual({
    type: 'about:blank',
    title: expect.stringMatching(/./),
    status: answer.status,
    detail: expect.stringMatching(/./),
    code: expect.stringMatching(/^[a-z_]+$/),
    run_id: answer.header('x-request-id'),
  });
  return { status: answer.status, code: body.code };
}

describe('the order of the checks', () => {
  it('comes to the token before it says whether an app exists (401 before 404)', async () => {
    const answer = await raw({ path: '/v4/p-test/no-such-app/x' });
    expect(problem(answer)).toEqual({ status: 401, code: 'unauthorized' });
    expect(answer.header('www-authenticate')).toMatch(/^Bearer/);
  });

  it('answers for an unknown project as for a bad token', async () => {
    const headers = [`Authorization: Bearer ${await testToken('p-none')}`];
    expect(problem(await raw({ path: '/v4/p-none/custom/x', headers }))).toEqual({
      status: 401,
      code: 'unauthorized',
    });
  });

  it("refuses another project's token with 403, even where the app does not exist", async () => {
    const headers = [`Authorization: Bearer ${await testToken('p-other')}`];
    const answer = await raw({ path: '/v4/p-test/no-such-app/x', headers });
    expect(problem(answer)).toEqual({ status: 403, code: 'wrong_project' });
  });

  it('says 404 for an unknown app after the token has been checked', async () => {
    const answer = await raw({ path: '/v4/p-test/no-such-app/x', headers: [rig.auth] });
    expect(problem(answer)).toEqual({ status: 404, code: 'app_not_found' });
  });

  it('checks the token before the webhookEndpoint', async () => {
    const answer = await raw({ path: `${rig.target({ path: name })}?webhookEndpoint=` });
    expect(problem(answer).status).toBe(401);
  });

  it.each(['/', '/v3/p-test/custom/x', '/v4/', '/v4/p-test', '/favicon.ico'])(
    '404s %s, which is no path of the service',
    async path => {
      expect(problem(await raw({ path }))).toEqual({ status: 404, code: 'not_found' });
    },
  );

  it('never lets a refused call reach the app, and makes no delivery of it', async () => {
    const hooked = { path: rig.target({ path: name, hook: true }) };
    await raw(hooked);
    await raw({ ...hooked, headers: ['Authorization: Bearer nonsense'] });
    await raw({ ...hooked, headers: [rig.auth, rig.auth] });
    expect(seen).toEqual([]);
    expect(rig.deliveries.accepted).toEqual([]);
  });

  it('keeps the connection after a refusal', async () => {
    const caller = await rig.converse();
    caller.send('GET /nowhere HTTP/1.1\r\nHost: t\r\n\r\n');
    await caller.until('"run_id"');
    caller.send(rig.head({ path: name }));
    expect(await caller.until('HTTP/1.1 200 OK')).toMatch(/^HTTP\/1\.1 404 /);
    caller.close();
  });
});

describe('X-Request-Id', () => {
  it('is a UUIDv7 made here, on the answer of the app in place of its own', async () => {
    const answer = await rig.call({ path: name });
    const ids = answer.headers.filter(([key]) => key.toLowerCase() === 'x-request-id');
    expect(ids).toEqual([['X-Request-Id', expect.stringMatching(UUID7)]]);
  });

  it('does not trust one from the caller, and gives the app the same as the caller', async () => {
    const answer = await rig.call({ path: name, headers: ['X-Request-Id: mine', 'x-request-id: mine too'] });
    const headers: string[] = JSON.parse(answer.body.toString());
    const got = headers.flatMap((key, i) => (key.toLowerCase() === 'x-request-id' ? [headers[i + 1]] : []));
    expect(got).toEqual([answer.header('x-request-id')]);
  });

  it('equals run_id of the delivery', async () => {
    const answer = await rig.call({ path: name, hook: true });
    const { delivery, json } = await rig.delivered(answer.header('x-request-id'));
    expect([delivery.runId, json['run_id']]).toEqual(Array(2).fill(answer.header('x-request-id')));
  });

  it.each([
    ['a request that is no HTTP', 'NONSENSE\r\n\r\n', 400, 'bad_request'],
    ['an unknown method', 'FROB / HTTP/1.1\r\nHost: t\r\n\r\n', 400, 'bad_request'],
    ['an unknown version', 'GET / HTTP/3.7\r\nHost: t\r\n\r\n', 400, 'bad_request'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad_request'],
    ['a bad header line', 'GET / HTTP/1.1\r\nHost: t\r\nbad header\r\n\r\n', 400, 'bad_request'],
    ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'bad_request'],
    [
      'headers beyond 32 KiB',
      `GET / HTTP/1.1\r\nHost: t\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    [
      'an expectation other than 100-continue',
      'GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nExpect: tea\r\n\r\n',
      417,
      'expectation_failed',
    ],
  ])('is on the answer to %s too, which is a problem', async (_what, request, status, code) => {
    expect(problem(await text(request))).toEqual({ status, code });
  });

  it('is another at every call', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push((await raw({ path: '/' })).header('x-request-id')!);
    expect(new Set(ids).size).toBe(20);
    expect(ids).toEqual(ids.toSorted());
  });
});

describe('webhookEndpoint', () => {
  const W = `webhookEndpoint=${encodeURIComponent(TARGET)}`;

  it.each([
    [`?${W}`, ''],
    [`?a=1&${W}&b=%20+&&c`, '?a=1&b=%20+&&c'],
    [`?a=%zz&a&=&${W}`, '?a=%zz&a&=&'.slice(0, -1)],
    ['?webhookendpoint=x&a[]=1', '?webhookendpoint=x&a[]=1'],
    ['?', '?'],
  ])('%s is cut out of what the app sees, and no other byte is', async (query, left) => {
    const answer = await rig.call({ path: `${name}${query}` });
    expect(answer.status).toBe(200);
    expect(seen).toEqual([`/${name}${left}`]);
    expect(rig.deliveries.accepted.includes(answer.header('x-request-id')!)).toBe(query.includes(W));
  });

  it('is the target of the delivery, decoded', async () => {
    const answer = await rig.call({ path: name, hook: true });
    expect((await rig.delivered(answer.header('x-request-id'))).delivery.target).toBe(TARGET);
  });

  it.each([
    ['empty', 'webhookEndpoint=', 'invalid_webhook_endpoint'],
    ['without a value', 'webhookEndpoint', 'invalid_webhook_endpoint'],
    ['given twice', `${W}&${W}`, 'invalid_webhook_endpoint'],
    ['no URL', 'webhookEndpoint=hello', 'invalid_webhook_endpoint'],
    ['of another scheme', 'webhookEndpoint=ftp%3A%2F%2Fx.example%2F', 'invalid_webhook_endpoint'],
    ['malformed', 'webhookEndpoint=http%3A%2F%2F%zz', 'invalid_webhook_endpoint'],
    ['a private address', 'webhookEndpoint=http%3A%2F%2F10.0.0.1%2F', 'forbidden_target'],
    ['the address of cloud metadata', 'webhookEndpoint=http://169.254.169.254/latest', 'forbidden_target'],
    [
      'a mapped private address',
      'webhookEndpoint=http%3A%2F%2F%5B%3A%3Affff%3A10.0.0.1%5D%2F',
      'forbidden_target',
    ],
  ])('%s is refused with 400 before the app is called', async (_what, query, code) => {
    expect(problem(await rig.call({ path: `${name}?${query}` }))).toEqual({ status: 400, code });
    expect(seen).toEqual([]);
  });

  it("refuses the service's own listener, though loopback is open", async () => {
    const own = encodeURIComponent(`http://127.0.0.1:${rig.port}/v4/p-test/custom/x`);
    const answer = await rig.call({ path: `${name}?webhookEndpoint=${own}` });
    expect(problem(answer)).toEqual({ status: 400, code: 'forbidden_target' });
    expect(seen).toEqual([]);
  });

  it('does not repeat the value in the problem or the log', async () => {
    const answer = await rig.call({ path: `${name}?webhookEndpoint=http://user:hunter2@10.0.0.1/hush` });
    expect(answer.status).toBe(400);
    expect(answer.body.toString() + rig.logs()).not.toMatch(/hunter2|hush/);
  });
});

describe('X-Webhook-Secret', () => {
  it('is kept byte for byte as the key of the delivery', async () => {
    const answer = await rig.call({ path: name, hook: true, headers: ['X-Webhook-Secret: s p \xe9 ~'] });
    const { delivery } = await rig.delivered(answer.header('x-request-id'));
    expect(Buffer.from(delivery.confidential.secret!).toString('utf8')).toBe('s p \xe9 ~');
  });

  it.each([
    ['repeated', ['X-Webhook-Secret: a', 'X-Webhook-Secret: a']],
    ['empty', ['X-Webhook-Secret:']],
    ['longer than 1,024 bytes', [`X-Webhook-Secret: ${randomBytes(513).toString('hex')}`]],
  ])('is refused with 400 when %s', async (_what, headers) => {
    const answer = await rig.call({ path: name, hook: true, headers });
    expect(problem(answer)).toEqual({ status: 400, code: 'invalid_webhook_secret' });
    expect(seen).toEqual([]);
  });
});

describe('a webhook that could not be kept', () => {
  it('is refused with 503 before the app runs while the store is down; other calls go on', async () => {
    rig.deliveries.available = false;
    try {
      const answer = await rig.call({ path: name, hook: true });
      expect(problem(answer)).toEqual({ status: 503, code: 'store_unavailable' });
      expect(answer.header('retry-after')).toBe('1');
      expect(seen).toEqual([]);
      expect((await rig.call({ path: name })).status).toBe(200);
    } finally {
      rig.deliveries.available = true;
    }
    expect((await rig.call({ path: name, hook: true })).status).toBe(200);
  });

  it('is refused with 429 when the project has maxPending deliveries', async () => {
    rig.deliveries.pending = 3;
    try {
      const answer = await rig.call({ path: name, hook: true });
      expect(problem(answer)).toEqual({ status: 429, code: 'too_many_pending' });
      expect(seen).toEqual([]);
      expect((await rig.call({ path: name })).status).toBe(200);
      rig.deliveries.pending = 2;
      expect((await rig.call({ path: name, hook: true })).status).toBe(200);
    } finally {
      rig.deliveries.pending = 0;
    }
  });
});

describe('what is told of a call', () => {
  it('is one line with its path but neither query, token nor secret', async () => {
    const path = `${name}/deep?token=in-the-query`;
    const answer = await rig.call({ path, hook: true, headers: ['X-Webhook-Secret: in-the-header'] });
    const lines = rig
      .logs()
      .split('\n')
      .filter(line => line.includes(answer.header('x-request-id')!))
      .map(line => JSON.parse(line));
    expect(lines).toMatchObject([
      { msg: 'call', method: 'GET', path: `/${name}/deep`, status: 200, project_id: 'p-test', webhook: true },
    ]);
    expect(rig.logs()).not.toMatch(/in-the-query|in-the-header|Bearer/);
  });

  it('counts a call by runtime, status and webhook', async () => {
    const before = rig.calls.length;
    await rig.call({ path: name });
    await rig.call({ app: 'cortex', path: name, method: 'POST', hook: true });
    await raw({});
    expect(rig.calls.slice(before)).toMatchObject([
      { runtime: 'custom', status: 200, webhook: false },
      { runtime: 'cortex', status: 200, webhook: true },
      { runtime: 'none', status: 401, code: 'unauthorized', webhook: false },
    ]);
  });
});
