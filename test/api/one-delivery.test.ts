/**
 * One delivery over HTTP: all that is known of it, what is sent, a new round by hand, and its end.
 */
import { describe, expect, it } from 'vitest';
import { DeliveryDetail } from '../../src/api/delivery-contract.ts';
import { explain } from '../../src/delivery/explanations.ts';
import { ATTEMPT_ERRORS } from '../../src/delivery/outcome.ts';
import { attempt } from '../store/samples.ts';
import { openRig, PROJECT, type Rig } from './rig.ts';

const FAILED = { state: 'failed', reason: 'exhausted' } as const;
const pathTo = (runId: string, rest = ''): string => `/v4/${PROJECT}/_deliveries/${runId}${rest}`;

async function detailOf(rig: Rig, runId: string, rest = '') {
  const { status, json } = await rig.get(pathTo(runId, rest));
  expect([status, json]).toMatchObject([200, {}]);
  const detail = DeliveryDetail.strict().parse(json);
  expect(detail).toEqual(json);
  return detail;
}

function post(rig: Rig, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return rig.get(path, { method: 'POST', headers, ...(body !== undefined && { body: text }) });
}

describe('one delivery', () => {
  it('is told with its attempts, how long each took, and what its error means', async () => {
    const rig = await openRig();
    const timings = { queueMs: 1, dnsMs: 2, connectMs: 3, tlsMs: 4, firstByteMs: 5.5, totalMs: 20 };
    const startedAt = Date.now();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { runId } = await rig.attempted(
      FAILED,
      { error: 'tls_invalid', timings, startedAt },
      { traceparent },
    );
    const detail = await detailOf(rig, runId);
    expect(detail).toMatchObject({
      run_id: runId,
      state: 'failed',
      reason: 'exhausted',
      attempt_count: 1,
      last_error: 'tls_invalid',
      trace_id: '0af7651916cd43dd8448eb211c80319c',
    });
    expect(detail.attempts).toEqual([
      {
        round: 1,
        number: 1,
        trigger: 'automatic',
        started_at: new Date(startedAt).toISOString(),
        timings: { queue: 1, dns: 2, connect: 3, tls: 4, first_byte: 5.5, total: 20 },
        error: { code: 'tls_invalid', ...explain('tls_invalid') },
      },
    ]);
    expect(detail).not.toHaveProperty('run');
  });

  it.each([
    ['text', Buffer.from('no such user é'), { excerpt: 'no such user é' }],
    ['text cut within a character', Buffer.from('é€').subarray(0, -1), { excerpt: 'é' }],
    ['bytes', Buffer.from([0xff, 0xfe, 0, 1]), { excerpt: '//4AAQ==', excerpt_encoding: 'base64' }],
  ])('shows %s that the receiver answered', async (_, excerpt, shown) => {
    const rig = await openRig();
    const { runId } = await rig.attempted(FAILED, { status: 500, excerpt });
    const [told] = (await detailOf(rig, runId)).attempts;
    const { excerpt: text, excerpt_encoding } = told!;
    expect({ excerpt: text, excerpt_encoding }).toEqual(shown);
  });

  it('shows the headers of what the receiver answered, repeated ones as well', async () => {
    const rig = await openRig();
    const headers = 'Server: a\nretry-after: 7\nServer: b: c';
    const { runId } = await rig.attempted(FAILED, { status: 500, headers });
    const [told] = (await detailOf(rig, runId)).attempts;
    expect(told!.headers).toEqual([
      ['Server', 'a'],
      ['retry-after', '7'],
      ['Server', 'b: c'],
    ]);
  });

  it('is told with its run, where the call was asynchronous', async () => {
    const rig = await openRig();
    const target = 'https://receiver.example/hook';
    const run = await rig.insert({ webhook: { target, confidential: {} } });
    const { ref: _, ...delivery } = { ref: 0, runId: run.runId, projectId: PROJECT, app: 'hello', target };
    const body = { bytes: Buffer.from('{}') };
    const made = {
      ...delivery,
      statusCode: 200,
      createdAt: Date.now(),
      confidential: {},
      body,
      owned: false,
    };
    await rig.end(run, { delivery: made });
    const detail = await detailOf(rig, run.runId);
    expect(detail.run).toMatchObject({ state: 'succeeded', starts: 1 });
    expect(detail.run).not.toHaveProperty('delivery');
  });

  it('shows what is sent, as it is stored, and no secret', async () => {
    const rig = await openRig();
    const bytes = Buffer.from('{"result": 12345678901234567890, "b":1.10 }');
    const confidential = { secret: Buffer.from('s3cret-of-the-call'), authorization: 'Basic dXNlcjpwYXNz' };
    const { runId } = await rig.attempted(FAILED, { status: 500 }, { body: { bytes }, confidential });
    const { text, headers } = await rig.get(pathTo(runId));
    expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(text.endsWith(`"body":${bytes.toString()}}}`)).toBe(true);
    const { request } = await detailOf(rig, runId);
    expect(request).toMatchObject({
      method: 'POST',
      url: 'https://receiver.example/hook?a=1',
      headers: { 'X-Request-Id': runId, 'X-Service-Webhook-Attempt': '1' },
    });
    const { body: _, ...head } = request!;
    expect((await detailOf(rig, runId, '?exclude=body')).request).toEqual(head);
    expect(text).not.toMatch(/s3cret|dXNlcjpwYXNz|Authorization|Signature/);
  });
});

it.each(ATTEMPT_ERRORS)('the error %s is explained in two sentences', code => {
  const { meaning, advice } = explain(code);
  for (const sentence of [meaning, advice]) expect(sentence).toMatch(/^[A-Z][^.]*(?:\.\w[^.]*)*\.$/);
  expect(explain('of another version')).toEqual(explain('other'));
});

describe('redelivery', () => {
  it('begins a new round, and says so', async () => {
    const rig = await openRig();
    const { runId } = await rig.attempted(FAILED, { status: 500 });
    const { status, json } = await post(rig, pathTo(runId, '/redeliver'));
    expect([status, json]).toMatchObject([
      202,
      { run_id: runId, state: 'pending', round: 2, attempt_count: 1 },
    ]);
    const [claimed] = await rig.store.claim(10);
    expect(claimed).toMatchObject({ runId, round: 2, attempts: 0, trigger: 'manual' });
    expect(await post(rig, pathTo(runId, '/redeliver'))).toMatchObject({
      status: 409,
      json: { code: 'delivery_pending' },
    });
  });

  it('to another target keeps the secret, and not the credentials of the old one', async () => {
    const rig = await openRig();
    const confidential = { secret: Buffer.from('secret'), authorization: 'Basic b2xk' };
    const { runId, target } = await rig.attempted(FAILED, { status: 500 }, { confidential });
    const other = 'https://new:p%40ss@elsewhere.example/in?x=1#part';
    const { json } = await post(rig, pathTo(runId, '/redeliver'), { target: other });
    expect(json).toMatchObject({ target: 'https://elsewhere.example/in?x=1', own_target: target });
    const [claimed] = await rig.store.claim(10);
    expect(claimed).toMatchObject({
      target: 'https://elsewhere.example/in?x=1',
      confidential: { authorization: `Basic ${Buffer.from('new:p@ss').toString('base64')}` },
    });
    expect(Buffer.from(claimed!.confidential.secret!).toString()).toBe('secret');
    expect(JSON.stringify(json)).not.toMatch(/p@ss|p%40ss|b2xk/);
    await rig.store.beginAttempt(claimed!.ref, Date.now());
    await rig.store.endAttempt(claimed!.ref, attempt(1, { status: 200 }), { state: 'delivered' });
    expect((await detailOf(rig, runId)).attempts.at(-1)).toMatchObject({
      target: 'https://elsewhere.example/in?x=1',
      trigger: 'manual',
    });
  });

  it.each([
    ['', 'invalid_body', 'target is empty'],
    ['x', 'invalid_body', 'target is not an absolute http or https URL'],
    ['http:host', 'invalid_body', 'target is not an absolute http or https URL'],
    ['http://a b/', 'invalid_body', 'target holds white space or control characters'],
    [`http://x.example/${'x'.repeat(2048)}`, 'invalid_body', 'target is longer than 2048 characters'],
    ['http://127.0.0.1/', 'forbidden_target', 'not_global'],
    ['http://localhost:8080/', 'forbidden_target', 'not_global'],
    ['http://[::1]/', 'forbidden_target', 'not_global'],
  ])('refuses the target %j', async (target, code, detail) => {
    const rig = await openRig();
    const { runId } = await rig.attempted(FAILED, { status: 500 });
    const { status, json } = await post(rig, pathTo(runId, '/redeliver'), { target });
    expect([status, json]).toMatchObject([400, { code, detail: expect.stringContaining(detail) }]);
    expect((await rig.store.find(runId))?.state).toBe('failed');
  });

  it.each([
    ['not JSON', '{', 'The body is not JSON'],
    ['a list', '[]', 'The body is not acceptable'],
    ['an unknown name', '{"to":1}', 'there is no parameter "to"'],
    ['another type', '{"target":1}', 'target must be a URL'],
  ])('refuses %s', async (_, body, detail) => {
    const rig = await openRig();
    const { runId } = await rig.attempted(FAILED, { status: 500 });
    const { status, json } = await post(rig, pathTo(runId, '/redeliver'), body);
    expect([status, json]).toMatchObject([
      400,
      { code: 'invalid_body', detail: expect.stringContaining(detail) },
    ]);
  });

  it('under the same key does its work once', async () => {
    const rig = await openRig();
    const { runId } = await rig.attempted(FAILED, { status: 500 });
    const key = { 'Idempotency-Key': 'once' };
    const path = pathTo(runId, '/redeliver');
    expect(await post(rig, path, {}, key)).toMatchObject({ status: 202, json: { round: 2 } });
    await rig.store.ledger.cancel(runId, Date.now());
    expect(await post(rig, path, {}, key)).toMatchObject({
      status: 202,
      json: { round: 2, state: 'cancelled' },
    });
    const elsewhere = await post(rig, path, { target: 'https://x.example/' }, key);
    expect(elsewhere).toMatchObject({ status: 422, json: { code: 'idempotency_key_reused' } });
    const bad = await post(rig, path, {}, { 'Idempotency-Key': 'a b' });
    expect(bad).toMatchObject({ status: 400, json: { code: 'invalid_idempotency_key' } });
  });
});

describe('cancelling', () => {
  it('ends what is pending, with the attempt that is under way', async () => {
    const rig = await openRig();
    const { runId, ref } = await rig.deliver({ begunAt: Date.now() });
    const { status, json } = await post(rig, pathTo(runId, '/cancel'));
    expect([status, json]).toMatchObject([
      200,
      { state: 'cancelled', attempts: [{ error: { code: 'cancelled' } }] },
    ]);
    expect(await rig.store.endAttempt(ref, attempt(1, { status: 200 }), { state: 'delivered' })).toBe(false);
    const again = await post(rig, pathTo(runId, '/cancel'));
    expect(again).toMatchObject({ status: 409, json: { code: 'delivery_settled' } });
  });
});
