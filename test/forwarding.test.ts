/**
 * The whole way, from a call to its receiver, through a service as it is run: what the source document
 * promises of a delivery, and what the options of a project add to it.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callRaw, type RawAnswer } from './support/caller.ts';
import { type Inbox, openInbox, type Received, signatureOf } from './support/inbox.ts';
import { startService, type TestService, type TestServiceOptions } from './support/service.ts';
import { type AppHandler, openStage, type Stage } from './support/stage.ts';
import { until } from './support/waiting.ts';

let app: Stage<AppHandler>;
let inbox: Inbox;
let service: TestService;

beforeAll(async () => {
  app = await openStage();
  inbox = await openInbox();
  service = await start();
});

afterAll(async () => {
  await service.stop();
  await inbox.close();
  await app.close();
});

function start(options: Partial<TestServiceOptions> = {}): Promise<TestService> {
  return startService({
    apps: { web: { runtime: 'custom', url: app.url }, fn: { runtime: 'cortex', url: app.url } },
    ...options,
  });
}

interface Call {
  readonly path: string;
  readonly target?: string;
  readonly headers?: readonly string[];
  readonly on?: TestService;
}

function call({ path, target, headers = [], on = service }: Call): Promise<RawAnswer> {
  const auth = `Authorization: Bearer ${on.token}`;
  return callRaw({
    port: on.port,
    method: 'POST',
    path: on.path(path, target),
    headers: [auth, 'Content-Type: application/json', ...headers],
    body: '{"name":"Ada"}',
  });
}

async function delivered(given: Omit<Call, 'target'>): Promise<{ answer: RawAnswer; delivery: Received }> {
  const answer = await call({ ...given, target: inbox.url });
  return { answer, delivery: await inbox.of(answer.header('x-request-id')!) };
}

describe('a delivery', () => {
  it.each(['web', 'fn'])('of a call to %s is a POST of JSON with the headers of the contract', async name => {
    const path = app.play(async (req, res) => {
      const { name: who } = JSON.parse(await text(req));
      res.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify({ hello: who }));
    });
    const { answer, delivery } = await delivered({
      path: `${name}/${path}`,
      headers: ['X-Webhook-Secret: open sesame'],
    });
    expect(answer.status).toBe(201);
    expect(delivery.headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': answer.header('x-request-id'),
      'x-service-webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'x-service-webhook-signature': signatureOf(delivery, 'open sesame'),
      'x-service-webhook-attempt': '1',
      'user-agent': expect.stringMatching(/^Afterword\//),
    });
    expect(delivery.headers).not.toHaveProperty('webhook-id');
    expect(JSON.parse(delivery.body.toString())).toEqual({
      run_id: answer.header('x-request-id'),
      project_id: 'p-test',
      app: name,
      status_code: 201,
      result: { hello: 'Ada' },
      run_time_ms: expect.any(Number),
      timestamp: expect.any(String),
    });
    // What the caller of a function got is byte for byte the delivery; that of an app got the app's answer.
    expect(delivery.body.equals(answer.body)).toBe(name === 'fn');
  });

  it('has no signature where there is no secret', async () => {
    const { delivery } = await delivered({ path: `web/${app.play((_req, res) => res.end('x'))}` });
    expect(delivery.headers).not.toHaveProperty('x-service-webhook-signature');
  });

  it('is keyed by the bytes of the secret as they were sent', async () => {
    const secret = 'clé 🔑';
    const path = app.play((_req, res) => res.end('x'));
    const { delivery } = await delivered({ path: `web/${path}`, headers: [`X-Webhook-Secret: ${secret}`] });
    expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, secret));
  });

  it('goes to the target with its query, and its user and password as a header', async () => {
    const path = app.play((_req, res) => res.end('x'));
    const target = inbox.url.replace('http://', 'http://me:p%40ss@').concat('?a=%20b&c');
    const answer = await call({ path: `web/${path}`, target });
    const delivery = await inbox.of(answer.header('x-request-id')!);
    expect(delivery.path).toBe('/hook?a=%20b&c');
    expect(delivery.headers.authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  });

  it('of an answer too large for memory is signed and whole, from the only file in the spool', async () => {
    const value = randomBytes(700_000).toString('hex');
    const path = app.play((_req, res) => {
      res.setHeader('Content-Type', 'application/json').end(JSON.stringify(value));
    });
    const { delivery } = await delivered({ path: `web/${path}`, headers: ['X-Webhook-Secret: s'] });
    expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, 's'));
    expect(JSON.parse(delivery.body.toString()).result).toBe(value);
    expect(await readdir(join(service.data, 'spool'))).toEqual([delivery.runId]);
  });

  it('carries error where the app could not be reached', async () => {
    const nowhere = await start({ apps: { gone: { runtime: 'custom', url: 'http://127.0.0.1:1' } } });
    const answer = await call({ path: 'gone/x', target: inbox.url, on: nowhere });
    expect(answer.status).toBe(502);
    const { body } = await inbox.of(answer.header('x-request-id')!);
    expect(JSON.parse(body.toString())).toMatchObject({
      status_code: 502,
      error: { type: 'app_unreachable' },
    });
    await nowhere.stop();
  });
});

describe('the answer to the caller', () => {
  it.each([
    ['refuses', 500],
    ['is not there', undefined],
  ])('does not depend on a receiver that %s', async (_what, status) => {
    const other = await openInbox(() => status ?? 200);
    const target = status === undefined ? 'http://127.0.0.1:1/hook' : other.url;
    const path = app.play((_req, res) => res.writeHead(202, { 'X-A': 'b' }).end('fine'));
    const plain = await call({ path: `web/${path}` });
    const hooked = await call({ path: `web/${path}`, target });
    const shown = ({ headers, body, statusLine }: RawAnswer): unknown => [
      statusLine,
      headers.filter(([name]) => !/^(x-request-id|date)$/i.test(name)),
      body.toString(),
    ];
    expect(shown(hooked)).toEqual(shown(plain));
    if (status !== undefined) await other.count(1);
    await other.close();
  });

  it('is there before the receiver has answered', async () => {
    const held = Promise.withResolvers<void>();
    const slow = await openStage();
    const hook = slow.play(async (_req, res) => {
      await held.promise;
      res.end();
    });
    const path = app.play((_req, res) => res.end('fine'));
    const answer = await call({ path: `web/${path}`, target: `${slow.url}/${hook}` });
    expect(answer.body.toString()).toBe('fine');
    held.resolve();
    await slow.close();
  });
});

describe('a project', () => {
  it('that requires secrets refuses a webhook without one before the app runs', async () => {
    const strict = await start({ project: { requireSecret: true } });
    let calls = 0;
    const path = app.play((_req, res) => {
      calls++;
      res.end('x');
    });
    const refused = await call({ path: `web/${path}`, target: inbox.url, on: strict });
    expect([refused.status, JSON.parse(refused.body.toString()).code]).toEqual([400, 'secret_required']);
    expect(calls).toBe(0);
    expect((await call({ path: `web/${path}`, on: strict })).status).toBe(200);
    const { answer } = await delivered({ path: `web/${path}`, on: strict, headers: ['X-Webhook-Secret: s'] });
    expect(answer.status).toBe(200);
    await strict.stop();
  });

  it('that has Standard Webhooks on gets their headers beside the others', async () => {
    const standard = await start({ project: { standardWebhooks: true } });
    const path = app.play((_req, res) => res.end('x'));
    const headers = ['X-Webhook-Secret: s'];
    const { delivery } = await delivered({ path: `web/${path}`, on: standard, headers });
    const {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    } = delivery.headers;
    expect([id, timestamp]).toEqual([delivery.runId, delivery.headers['x-service-webhook-timestamp']]);
    const hmac = createHmac('sha256', 's')
      .update(`${id as string}.${timestamp as string}.`)
      .update(delivery.body);
    expect(signature).toBe(`v1,${hmac.digest('base64')}`);
    expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, 's'));
    await standard.stop();
  });

  it('with as many deliveries pending as it may have is refused more', async () => {
    const dead = await openInbox(() => 404);
    const narrow = await start({ project: { maxPending: 1 } });
    const path = app.play((_req, res) => res.end('x'));
    await call({ path: `web/${path}`, target: dead.url, on: narrow });
    const refused = await call({ path: `web/${path}`, target: dead.url, on: narrow });
    expect([refused.status, JSON.parse(refused.body.toString()).code]).toEqual([429, 'too_many_pending']);
    expect((await call({ path: `web/${path}`, on: narrow })).status).toBe(200);
    await narrow.stop();
    await dead.close();
  });
});

describe('a store that cannot write', () => {
  it('turns calls with a webhook away before the app runs, shows in readyz, and recovers', async () => {
    const own = await start({ webhooks: { commitWait: 50 } });
    const ready = async (): Promise<number> => (await fetch(`${own.admin}/readyz`)).status;
    const lock = new DatabaseSync(join(own.data, 'afterword.db'), { timeout: 10_000 });
    let calls = 0;
    const path = app.play((_req, res) => {
      calls++;
      if (calls === 1) lock.exec('BEGIN IMMEDIATE'); // not before: the service may find it out by itself
      res.end('x');
    });
    expect(await ready()).toBe(200);
    // The call during which it begins: its answer is there after commitWait, its delivery is kept for later.
    const first = await call({ path: `web/${path}`, target: inbox.url, on: own });
    expect([first.status, calls]).toEqual([200, 1]);
    await until(async () => (await ready()) === 503);
    const refused = await call({ path: `web/${path}`, target: inbox.url, on: own });
    expect([refused.status, JSON.parse(refused.body.toString()).code]).toEqual([503, 'store_unavailable']);
    expect(calls).toBe(1);
    expect((await call({ path: `web/${path}`, on: own })).status).toBe(200);
    expect((await fetch(`${own.admin}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${own.admin}/metrics`)).text()).toContain('\nafterword_store_available 0\n');
    lock.exec('ROLLBACK');
    lock.close();
    await until(async () => (await ready()) === 200);
    await inbox.of(first.header('x-request-id')!);
    expect((await call({ path: `web/${path}`, target: inbox.url, on: own })).status).toBe(200);
    await own.stop();
  });
});
