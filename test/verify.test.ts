import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DeliveryHeaders,
  type VerificationError,
  type VerificationFailure,
  verifyDelivery,
} from '../src/verify.ts';

const SECRET = 'whsec-grün';
const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const SENT = 1_700_000_000;
const BODY = '{"run_id":"01890a5d-ac96-774b-bcce-b302099a8057","result":{"café":1.10}}';

/** The seed's recipe, written with another implementation of HMAC than the one under test. */
function sign(
  secret: string | Uint8Array,
  id: string,
  timestamp: string | number,
  body: string | Uint8Array,
): string {
  return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('hex');
}

function headers(changes: Record<string, string | readonly string[] | undefined> = {}) {
  return {
    'x-request-id': ID,
    'x-service-webhook-timestamp': String(SENT),
    'x-service-webhook-signature': `v1,${sign(SECRET, ID, SENT, BODY)}`,
    ...changes,
  };
}

describe('a genuine delivery', () => {
  it('tells who it is', async () => {
    const delivery = await verifyDelivery({
      headers: headers({ 'x-service-webhook-attempt': '2' }),
      body: BODY,
      secret: SECRET,
    });

    expect(delivery).toMatchObject({ requestId: ID, timestamp: new Date(SENT * 1000), attempt: 2 });
    expect(delivery.json<{ café: number }>().result?.café).toBe(1.1);
  });

  it.each<[string, Record<string, string | undefined>]>([
    ['without an attempt', {}],
    ['with an attempt that is not a number', { 'x-service-webhook-attempt': 'x' }],
  ])('has no attempt %s', async (_, changes) => {
    expect(
      await verifyDelivery({ headers: headers(changes), body: BODY, secret: SECRET }),
    ).not.toHaveProperty('attempt');
  });

  const bytes = new TextEncoder().encode(BODY);
  const padded = new Uint8Array([1, 2, ...bytes, 3]);
  it.each<[string, string | Uint8Array | ArrayBuffer]>([
    ['text', BODY],
    ['bytes', bytes],
    ['a Buffer', Buffer.from(BODY)],
    ['a view into a larger buffer', padded.subarray(2, padded.length - 1)],
    ['an ArrayBuffer', bytes.buffer],
  ])('is accepted with its body as %s', async (_, body) => {
    const delivery = await verifyDelivery({ headers: headers(), body, secret: SECRET });
    expect(delivery.json().run_id).toBe(ID);
  });

  it.each<[string, DeliveryHeaders]>([
    ['a Headers object', new Headers(headers())],
    [
      'names in any case',
      Object.fromEntries(Object.entries(headers()).map(([k, v]) => [k.toUpperCase(), v])),
    ],
    ['single values in lists', Object.fromEntries(Object.entries(headers()).map(([k, v]) => [k, [v]]))],
  ])('is accepted with its headers as %s', async (_, given) => {
    await expect(verifyDelivery({ headers: given, body: BODY, secret: SECRET })).resolves.toBeTruthy();
  });

  it('is accepted with the headers that a Node server got', async () => {
    const { promise, resolve } = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: Buffer }>();
    await using server = createServer((request, response) => {
      resolve(buffer(request).then(body => ({ headers: request.headers, body })));
      response.end();
    }).listen(0, '127.0.0.1');
    await new Promise(done => server.once('listening', done));
    const { port } = server.address() as AddressInfo;
    await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { ...(headers() as Record<string, string>), connection: 'close' },
      body: BODY,
    });

    await expect(verifyDelivery({ ...(await promise), secret: SECRET })).resolves.toBeTruthy();
  });

  const digest = sign(SECRET, ID, SENT, BODY);
  it.each([
    ['v1 and a comma', `v1,${digest}`],
    ['no comma: the whole value', digest],
    ['anything before the comma', `v2,${digest}`],
    ['nothing before the comma', `,${digest}`],
    ['capital letters', `v1,${digest.toUpperCase()}`],
  ])('is accepted with a signature header of %s', async (_, signature) => {
    const given = headers({ 'x-service-webhook-signature': signature });
    await expect(verifyDelivery({ headers: given, body: BODY, secret: SECRET })).resolves.toBeTruthy();
  });

  it.each<[string, Parameters<typeof verifyDelivery>[0]['secret']]>([
    ['first', [SECRET, 'other']],
    ['last', ['other', 'another', SECRET]],
    ['given as bytes', [new TextEncoder().encode(SECRET)]],
  ])('is accepted where its secret is %s of several', async (_, secret) => {
    await expect(verifyDelivery({ headers: headers(), body: BODY, secret })).resolves.toBeTruthy();
  });

  it('takes a secret of bytes that are no text', async () => {
    const secret = randomBytes(33);
    const given = headers({ 'x-service-webhook-signature': `v1,${sign(secret, ID, SENT, BODY)}` });
    await expect(verifyDelivery({ headers: given, body: BODY, secret })).resolves.toBeTruthy();
  });
});

describe('a delivery that must not be trusted', () => {
  const digest = sign(SECRET, ID, SENT, BODY);
  it.each<[string, VerificationFailure, Record<string, string | readonly string[] | undefined>]>([
    ['no request id', 'missing_header', { 'x-request-id': undefined }],
    ['an empty request id', 'missing_header', { 'x-request-id': '' }],
    ['no timestamp', 'missing_header', { 'x-service-webhook-timestamp': undefined }],
    ['no signature', 'missing_header', { 'x-service-webhook-signature': undefined }],
    ['a date for a timestamp', 'bad_timestamp', { 'x-service-webhook-timestamp': '2023-11-14' }],
    ['milliseconds for a timestamp', 'bad_timestamp', { 'x-service-webhook-timestamp': '1700000000000' }],
    [
      'a signature that is too short',
      'bad_signature',
      { 'x-service-webhook-signature': `v1,${digest.slice(2)}` },
    ],
    ['a signature that is too long', 'bad_signature', { 'x-service-webhook-signature': `v1,${digest}00` }],
    ['a signature with a second comma', 'bad_signature', { 'x-service-webhook-signature': `v1,${digest},x` }],
    ['a signature in base64', 'bad_signature', { 'x-service-webhook-signature': 'v1,AAAA' }],
    ['no digest', 'bad_signature', { 'x-service-webhook-signature': 'v1,' }],
    ['two signatures', 'bad_signature', { 'x-service-webhook-signature': [`v1,${digest}`, `v1,${digest}`] }],
    ['another request id', 'no_match', { 'x-request-id': 'another' }],
    ['two request ids', 'no_match', { 'X-Request-Id': 'another' }],
    ['another timestamp', 'no_match', { 'x-service-webhook-timestamp': String(SENT + 1) }],
    ['the same timestamp written otherwise', 'no_match', { 'x-service-webhook-timestamp': `0${SENT}` }],
    ['another digest', 'no_match', { 'x-service-webhook-signature': `v1,${'0'.repeat(64)}` }],
  ])('%s is %s', async (_, reason, changes) => {
    await expect(
      verifyDelivery({ headers: headers(changes), body: BODY, secret: SECRET }),
    ).rejects.toMatchObject({ name: 'VerificationError', reason });
  });

  it('names the header that is missing', async () => {
    const given = headers({ 'x-service-webhook-signature': undefined });
    await expect(verifyDelivery({ headers: given, body: BODY, secret: SECRET })).rejects.toThrow(
      'X-Service-Webhook-Signature',
    );
  });

  it('does not match where the body was parsed and written again', async () => {
    const body = JSON.stringify(JSON.parse(BODY));
    await expect(verifyDelivery({ headers: headers(), body, secret: SECRET })).rejects.toMatchObject({
      reason: 'no_match',
    });
  });

  it('does not match any of several other secrets', async () => {
    await expect(
      verifyDelivery({ headers: headers(), body: BODY, secret: ['a', 'b'] }),
    ).rejects.toMatchObject({ reason: 'no_match' });
  });
});

describe('the age of a delivery', () => {
  const at = (offset: number) => new Date((SENT + offset) * 1000);
  it.each([
    ['exactly as old as allowed', 300, at(300), true],
    ['older than allowed', 300, at(301), false],
    ['exactly as far ahead as allowed', 300, at(-300), true],
    ['further ahead than allowed', 300, at(-301), false],
    ['at once, with no tolerance', 0, at(0), true],
    ['years old, where nothing is asked', undefined, at(1e9), true],
  ])('%s', async (_, tolerance, now, accepted) => {
    const verified = verifyDelivery({
      headers: headers(),
      body: BODY,
      secret: SECRET,
      now,
      ...(tolerance !== undefined && { tolerance }),
    });
    const verdict = await verified.then(
      () => 'accepted',
      (error: VerificationError) => error.reason,
    );
    expect(verdict).toBe(accepted ? 'accepted' : 'timestamp_out_of_tolerance');
  });

  it('is measured against the present where no time is given', async () => {
    const now = Math.floor(Date.now() / 1000);
    const fresh = headers({
      'x-service-webhook-timestamp': String(now),
      'x-service-webhook-signature': `v1,${sign(SECRET, ID, now, BODY)}`,
    });
    await expect(
      verifyDelivery({ headers: fresh, body: BODY, secret: SECRET, tolerance: 60 }),
    ).resolves.toBeTruthy();
    await expect(
      verifyDelivery({ headers: headers(), body: BODY, secret: SECRET, tolerance: 60 }),
    ).rejects.toMatchObject({ reason: 'timestamp_out_of_tolerance' });
  });

  it('is told only of a delivery whose signature matches', async () => {
    await expect(
      verifyDelivery({ headers: headers(), body: 'x', secret: SECRET, tolerance: 1 }),
    ).rejects.toMatchObject({ reason: 'no_match' });
  });
});

describe('a mistake of the receiver itself', () => {
  it.each([
    ['a parsed body', { body: JSON.parse(BODY) as never }, 'body must be the raw bytes'],
    ['no body', { body: undefined as never }, 'body must be the raw bytes'],
    ['an empty secret', { secret: '' }, 'secret must not be empty'],
    ['an unset secret', { secret: undefined as never }, 'secret must be'],
    ['no secrets', { secret: [] }, 'secret must not be empty'],
    ['an empty secret among others', { secret: [SECRET, ''] }, 'secret must not be empty'],
    ['a negative tolerance', { tolerance: -1 }, 'tolerance must be'],
    ['a tolerance that is no number', { tolerance: Number.NaN }, 'tolerance must be'],
  ])('%s is a TypeError', async (_, mistake, message) => {
    const call = verifyDelivery({ headers: headers(), body: BODY, secret: SECRET, ...mistake });
    await expect(call).rejects.toThrow(TypeError);
    await expect(call).rejects.toThrow(message);
  });
});

describe('laws', () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  const secret = fc.uint8Array({ minLength: 1, maxLength: 100 });
  const id = fc.stringMatching(/^[!-~]{1,40}$/);
  const timestamp = fc.nat({ max: 99_999_999_999 }).map(String);

  it('accepts whatever was signed with the secret', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, secret, id, timestamp, async (body, secret, id, timestamp) => {
        const given = {
          'x-request-id': id,
          'x-service-webhook-timestamp': timestamp,
          'x-service-webhook-signature': `v1,${sign(secret, id, timestamp, body)}`,
        };
        const delivery = await verifyDelivery({ headers: given, body, secret });
        expect(delivery.requestId).toBe(id);
      }),
    );
  });

  it('refuses a body with any one bit changed', async () => {
    const changed = fc.tuple(fc.nat({ max: BODY.length - 1 }), fc.nat({ max: 7 }));
    await fc.assert(
      fc.asyncProperty(changed, async ([index, bit]) => {
        const body = Buffer.from(BODY);
        body[index]! ^= 1 << bit;
        await expect(verifyDelivery({ headers: headers(), body, secret: SECRET })).rejects.toMatchObject({
          reason: 'no_match',
        });
      }),
    );
  });
});

it('imports nothing', () => {
  const source = readFileSync(new URL('../src/verify.ts', import.meta.url), 'utf8');
  expect(source).not.toMatch(/^import|\bimport\(|\brequire\(|node:|\bBuffer\b|\bprocess\b/m);
});
