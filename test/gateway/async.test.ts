/**
 * Asynchronous calls as they are taken in (contract, section 7): what is stored of them, what their callers get
 * and when, and which are refused. No app sees anything of them here.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { NewRun, RunInsertion } from '../../src/store/runs.ts';
import type { RawAnswer } from '../support/caller.ts';
import { PROJECT } from '../support/service.ts';
import { until } from '../support/waiting.ts';
import { type Call, inserted, openRig, type Rig, TARGET } from './rig.ts';

const FIRST_RUN = '01890000-0000-7000-8000-000000000001';

let rig: Rig;
/** How many requests any app has seen. */
let seen = 0;
/** Where the apps answer, should they ever be asked. */
let name: string;

beforeAll(async () => {
  rig = await openRig({ project: { maxPending: 3 } });
  name = rig.app.play((_req, res) => {
    seen++;
    res.end('{}');
  });
});
afterAll(() => rig.stop());
afterEach(() => {
  rig.runs.accept = inserted;
  rig.deliveries.available = true;
  rig.deliveries.pending = 0;
  if (seen > 0) throw new Error('an app was called');
});

function call(options: Partial<Call> = {}): Promise<RawAnswer> {
  return rig.call({ path: `${name}?async=true`, method: 'POST', ...options });
}

/** The run that a call made, which must be the only one. */
async function runOf(options: Partial<Call>): Promise<NewRun> {
  const before = rig.runs.accepted.length;
  expect((await call(options)).status).toBe(202);
  expect(rig.runs.accepted).toHaveLength(before + 1);
  return rig.runs.accepted.at(-1)!;
}

async function refused(options: Partial<Call>): Promise<{ status: number; code: string; detail: string }> {
  const before = rig.runs.accepted.length;
  const answer = await call(options);
  expect(answer.header('content-type')).toBe('application/problem+json');
  expect(rig.runs.accepted).toHaveLength(before);
  const { code, detail } = JSON.parse(answer.body.toString());
  return { status: answer.status, code, detail };
}

describe('an asynchronous call', () => {
  it('is answered with 202 and its run id, in the body, as X-Request-Id and as Location', async () => {
    const answer = await call();
    const { runId } = rig.runs.accepted.at(-1)!;
    expect(answer.statusLine).toBe('HTTP/1.1 202 Accepted');
    expect(answer.body.toString()).toBe(`{"run_id":"${runId}"}`);
    expect(answer.headers).toEqual(
      expect.arrayContaining([
        ['Content-Type', 'application/json'],
        ['Content-Length', String(answer.body.length)],
        ['X-Request-Id', runId],
        ['Location', `/v4/${PROJECT}/_runs/${runId}`],
      ]),
    );
    expect(answer.header('idempotency-replayed')).toBeUndefined();
  });

  it.each(['GET', 'PUT', 'DELETE', 'PROPFIND'])('may have the method %s, to a custom app', async method => {
    expect(await runOf({ method })).toMatchObject({ method });
    expect(await runOf({ method, body: 'abc' })).toMatchObject({
      method,
      body: { bytes: Buffer.from('abc') },
    });
  });

  it('by HEAD gets an answer without a body', async () => {
    const answer = await call({ method: 'HEAD' });
    expect([answer.status, answer.body.length]).toEqual([202, 0]);
    expect(rig.runs.accepted.at(-1)).toMatchObject({ method: 'HEAD' });
  });

  it('is stored with all that its app will get', async () => {
    const now = Date.now();
    const run = await runOf({ app: 'based', path: `${name}/a//%41?x=%2f&async=true&y=+`, method: 'PATCH' });
    expect(run).toEqual({
      runId: run.runId,
      projectId: PROJECT,
      app: 'based',
      createdAt: expect.closeTo(now, -4),
      method: 'PATCH',
      path: `/${name}/a//%41`,
      query: 'x=%2f&y=+',
      headers: expect.any(Array),
    });
  });

  it('has no query where nothing else was in it', async () => {
    expect(await runOf({})).not.toHaveProperty('query');
    expect(await runOf({ path: `${name}?async=true&` })).toMatchObject({ query: '' });
  });

  it('has the headers of a call, as on the wire, and no Host', async () => {
    const headers = ['X-One: a', 'x-ONE: é', 'Connection: x-two', 'X-Two: gone', 'Content-Type: text/x'];
    const run = await runOf({ headers: [...headers, 'X-Request-Id: forged'], body: 'abc' });
    const passed = ['X-One', 'a', 'x-ONE', '\xc3\xa9', 'Content-Type', 'text/x', 'Content-Length', '3'];
    const added = ['X-Request-Id', run.runId, 'X-Forwarded-For', '127.0.0.1', 'X-Forwarded-Host', 'test'];
    expect(run.headers).toEqual([...passed, ...added, 'X-Forwarded-Proto', 'http']);
  });

  it('of a function has its path, and the headers of JSON parameters', async () => {
    const run = await runOf({ app: 'cortex', body: '{"a": 1e400}', headers: ['Content-Type: text/x'] });
    expect(run).toMatchObject({ path: `/${name}`, body: { bytes: Buffer.from('{"a": 1e400}') } });
    expect(run.headers.slice(0, 4)).toEqual([
      'Content-Type',
      'application/json',
      'Accept-Encoding',
      'identity',
    ]);
    expect(run.headers).not.toContain('Content-Length');
  });

  it.each([
    ['custom', false],
    ['trusted', true],
  ] as const)(
    'keeps neither the secret nor, unless the app is to have it, the token (%s)',
    async (app, kept) => {
      const run = await runOf({ app, headers: ['X-Webhook-Secret: hush'] });
      const names = run.headers.filter((_part, at) => at % 2 === 0).map(part => part.toLowerCase());
      expect(names).not.toContain('x-webhook-secret');
      expect(names.includes('authorization')).toBe(kept);
      expect(run).not.toHaveProperty('webhook');
    },
  );

  it('has its webhook, with what is confidential of it', async () => {
    const target = TARGET.replace('//', '//user:pass@');
    const path = `${name}?webhookEndpoint=${encodeURIComponent(target)}&async=true`;
    const run = await runOf({ path, headers: ['X-Webhook-Secret: hush'] });
    expect(run).not.toHaveProperty('query');
    expect(run.webhook).toEqual({
      target: TARGET,
      confidential: {
        secret: new Uint8Array(Buffer.from('hush')),
        authorization: `Basic ${Buffer.from('user:pass').toString('base64')}`,
      },
    });
    expect(rig.deliveries.accepted).toEqual([]);
  });

  it('is logged and counted as a call, with its status', async () => {
    const { runId } = await runOf({ hook: true });
    await until(() => rig.logs().includes(`"run_id":"${runId}"`));
    const line = rig
      .logs()
      .split('\n')
      .find(text => text.includes(runId))!;
    expect(JSON.parse(line)).toMatchObject({
      project_id: PROJECT,
      app: 'custom',
      method: 'POST',
      path: `/${name}`,
      status: 202,
      webhook: true,
      async: true,
      msg: 'call',
    });
    expect(rig.calls.at(-1)).toMatchObject({ status: 202, runtime: 'custom', webhook: true });
  });
});

describe('the 202', () => {
  it('is not sent before the run is stored, however long that takes', async () => {
    const stored = Promise.withResolvers<RunInsertion>();
    rig.runs.accept = () => stored.promise;
    const before = rig.runs.accepted.length;
    const caller = await rig.converse();
    caller.send(rig.head({ path: `${name}?async=true`, hook: true }));
    await until(() => rig.runs.accepted.length > before);
    // Another call, taken in and answered meanwhile, shows that it was not just slow.
    await rig.call({ path: 'none', app: 'nowhere' });
    expect(caller.text).toBe('');
    stored.resolve({ outcome: 'inserted' });
    await caller.until(rig.runs.accepted.at(-1)!.runId);
    caller.close();
    expect(rig.lateCommits()).toBe(0);
  });

  it('does not come where the run cannot be stored: 503', async () => {
    rig.runs.accept = () => Promise.reject(new Error('the disk is gone'));
    const answer = await call({ body: Buffer.alloc(200_000) });
    expect(answer.status).toBe(503);
    expect(answer.header('retry-after')).toBe('1');
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'store_unavailable' });
    expect(rig.logs()).toContain('the disk is gone');
    await until(async () => (await rig.spooled()).length === 0);
  });
});

describe('an Idempotency-Key', () => {
  const KEY = ['Idempotency-Key: key-1'];

  it('is stored with a fingerprint of the call, and is the same for the same call', async () => {
    const body = Buffer.alloc(200_000, 'x');
    const [one, two, other] = [
      await runOf({ headers: KEY, body }),
      await runOf({ headers: KEY, body }),
      await runOf({ headers: KEY, body: Buffer.alloc(200_000, 'y') }),
    ];
    expect(one.idempotency?.key).toBe('key-1');
    expect(one.idempotency?.fingerprint).toHaveLength(32);
    expect(two.idempotency).toEqual(one.idempotency);
    expect(other.idempotency).not.toEqual(one.idempotency);
    expect(one.headers).toContain('Idempotency-Key');
  });

  it('gives the first run to whoever comes again', async () => {
    rig.runs.accept = async () => ({ outcome: 'repeated', runId: FIRST_RUN });
    const answer = await call({ headers: KEY });
    expect([answer.status, answer.body.toString()]).toEqual([202, `{"run_id":"${FIRST_RUN}"}`]);
    expect(answer.header('x-request-id')).toBe(FIRST_RUN);
    expect(answer.header('location')).toBe(`/v4/${PROJECT}/_runs/${FIRST_RUN}`);
    expect(answer.header('idempotency-replayed')).toBe('true');
  });

  it('of another call is refused', async () => {
    rig.runs.accept = async () => ({ outcome: 'conflict', runId: FIRST_RUN });
    const answer = await call({ headers: KEY });
    expect(answer.status).toBe(422);
    expect(answer.bytes.toString()).not.toContain(FIRST_RUN);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'idempotency_key_reused' });
  });

  it.each([
    [['Idempotency-Key: a', 'Idempotency-Key: b']],
    [['Idempotency-Key:']],
    [['Idempotency-Key: a b']],
  ])('that is none is refused: %j', async headers => {
    expect(await refused({ headers })).toMatchObject({ status: 400, code: 'invalid_idempotency_key' });
  });
});

describe('an asynchronous call is refused', () => {
  it.each<[string, Partial<Call>, number, string]>([
    ['to an app that is not there', { app: 'no-such-app' as 'custom' }, 404, 'app_not_found'],
    ['to a function that cannot be', { app: 'cortex', path: 'a/b?async=true' }, 404, 'not_found'],
    ['to a function by GET', { app: 'cortex', method: 'GET' }, 405, 'method_not_allowed'],
    ['with parameters that are no object', { app: 'cortex', body: '[1]' }, 400, 'invalid_parameters'],
    ['with parameters that are cut off', { app: 'cortex', body: '{"a":' }, 400, 'invalid_parameters'],
    ['asked for twice', { path: 'x?async=true&async=true' }, 400, 'invalid_query'],
    ['with a bad target', { path: 'x?async=true&webhookEndpoint=x' }, 400, 'invalid_webhook_endpoint'],
    ['with a bad secret', { headers: ['X-Webhook-Secret:'] }, 400, 'invalid_webhook_secret'],
  ])('%s', async (_what, options, status, code) => {
    expect(await refused(options)).toMatchObject({ status, code });
  });

  it('where the store takes nothing (503), or no more (429), before its body is asked for', async () => {
    const expecting = ['Expect: 100-continue', 'Content-Length: 4'];
    rig.deliveries.pending = 3;
    expect(await refused({ headers: expecting })).toMatchObject({ status: 429, code: 'too_many_pending' });
    rig.deliveries.available = false;
    expect(await refused({ headers: expecting })).toMatchObject({ status: 503, code: 'store_unavailable' });
  });

  it('as a WebSocket', async () => {
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    for (const query of ['async=true', 'async=true&async=true', 'webhookEndpoint=&%61sync=true']) {
      const caller = await rig.converse();
      caller.send(rig.head({ app: 'raw', path: `x?${query}`, headers: upgrade }));
      expect(await caller.end()).toMatch(
        /^HTTP\/1\.1 400 .*A WebSocket cannot be asynchronous.*bad_request/s,
      );
    }
  });
});

describe('async with another value', () => {
  it.each(['async=false', 'async=1', 'async', 'async=true%20', 'async=false&async'])(
    "is the app's own: %s",
    async query => {
      const path = rig.app.play((req, res) => res.end(req.url));
      expect((await rig.call({ path: `${path}?${query}` })).body.toString()).toBe(`/${path}?${query}`);
    },
  );

  it("is the app's own on a WebSocket", async () => {
    const path = rig.raw.play((socket, head) => {
      socket.end(
        `HTTP/1.1 426 Upgrade Required\r\nX-Target: ${head.split(' ')[1]}\r\nContent-Length: 0\r\n\r\n`,
      );
    });
    const caller = await rig.converse();
    const headers = ['Connection: Upgrade', 'Upgrade: websocket'];
    caller.send(rig.head({ app: 'raw', path: `${path}?async=1`, headers }));
    expect(await caller.end()).toContain(`X-Target: /${path}?async=1\r\n`);
  });
});
