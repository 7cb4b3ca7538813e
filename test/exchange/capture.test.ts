/**
 * How the answer of a custom app becomes the `result` of its delivery (contract, section 3), below and above
 * the size at which it leaves memory for the spool, while the caller gets the bytes as they came.
 */
import { randomBytes } from 'node:crypto';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/waiting.ts';
import { type Delivered, openRig, type Rig } from '../gateway/rig.ts';

const MIB = 1024 * 1024;
const MAX_BODY = MIB;
/** Well below and well above the 128 KiB that one answer may hold in memory. */
const SIZES = [1_000, 400_000] as const;

let rig: Rig;
/** Spool files that belong to deliveries, and so may stay. */
const kept = new Set<string>();

beforeAll(async () => {
  rig = await openRig({ maxBody: MAX_BODY });
});
afterAll(() => rig.stop());

/** After every test, or it fails by its timeout: no memory held, and no file but those of deliveries. */
afterEach(() =>
  until(async () => rig.spool.memory.used === 0 && (await rig.spooled()).every(name => kept.has(name))),
);

async function captured(
  body: string | Uint8Array,
  type?: string,
  encoding?: string | string[],
): Promise<Delivered & { text: string }> {
  const path = rig.app.play((_req, res) => {
    if (type !== undefined) res.setHeader('Content-Type', type);
    if (encoding !== undefined) res.setHeader('Content-Encoding', encoding);
    res.end(body);
  });
  const answer = await rig.call({ path, hook: true });
  expect(answer.body.equals(Buffer.from(body as string))).toBe(true);
  const delivered = await rig.delivered(answer.header('x-request-id'));
  const { body: stored, runId } = delivered.delivery;
  if ('file' in stored) kept.add(runId);
  expect('file' in stored ? stored.size : stored.bytes.length).toBe(delivered.body.length);
  expect(delivered.json).toMatchObject({ run_id: runId, app: 'custom', status_code: 200 });
  return { ...delivered, text: delivered.body.toString() };
}

const brotli = (bytes: string | Uint8Array): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

describe.each(SIZES)('an answer of about %i bytes', size => {
  const filler = 'x'.repeat(size);

  it(`${size > 128 * 1024 ? 'leaves' : 'stays in'} memory`, async () => {
    const { delivery } = await captured(`"${filler}"`, 'application/json');
    expect('file' in delivery.body).toBe(size > 128 * 1024);
  });

  it.each([
    ['big numbers', `{"n":12345678901234567890,"f":1.50,"a":"FILL"}`],
    ['repeated keys and their order', `{"b":1,"a":"FILL","b":2,"0":3}`],
    ['white space', ` \r\n{ "a" : "FILL" }\t`],
    ['escapes and bytes', `"\\u0041é😀 FILL"`],
  ])('in JSON is spliced in as it came: %s', async (_what, pattern) => {
    const body = pattern.replace('FILL', filler);
    const { text, json } = await captured(body, 'application/json; charset=utf-8');
    expect(text.includes(`"result":${body},"run_time_ms":`)).toBe(true);
    expect(json).not.toHaveProperty('content_type');
  });

  it.each(['application/json', 'application/problem+json', 'text/json', undefined])(
    'of the type %s is taken for JSON',
    async type => {
      expect((await captured(`["${filler}"]`, type)).json['result']).toEqual([filler]);
    },
  );

  it('in text is a string, with its type', async () => {
    const body = `"é😀\u0000\\ ${filler}`;
    const { json } = await captured(body, 'text/plain');
    expect(json).toMatchObject({ content_type: 'text/plain', result: body });
    expect(json).not.toHaveProperty('result_encoding');
  });

  it('in text of another charset is decoded by it', async () => {
    const type = 'text/html; charset=ISO-8859-1';
    const { json } = await captured(Buffer.from(`café ${filler}`, 'latin1'), type);
    expect(json).toMatchObject({ content_type: type, result: `café ${filler}` });
    const utf16 = await captured(Buffer.from(`é😀${filler}`, 'utf16le'), 'text/plain; charset="utf-16le"');
    expect(utf16.json['result']).toBe(`é😀${filler}`);
  });

  it('in text that is none, or of a charset nobody knows, is base64', async () => {
    const bytes = Buffer.concat([Buffer.from(filler), Buffer.from([0xff, 0xfe])]);
    for (const type of ['text/plain', 'text/plain; charset=klingon']) {
      const { json } = await captured(bytes, type);
      expect(json).toMatchObject({ content_type: type, result_encoding: 'base64', result: base64(bytes) });
    }
  });

  it('in other bytes is base64, with its type', async () => {
    const bytes = randomBytes(size + 1);
    const { json } = await captured(bytes, 'image/png');
    expect(json).toMatchObject({
      content_type: 'image/png',
      result_encoding: 'base64',
      result: base64(bytes),
    });
  });

  it('that claims to be JSON and is none is passed on as text', async () => {
    for (const body of [`{"a":"${filler}"`, `["${filler}"]]`, `"${filler}\n"`]) {
      const { json } = await captured(body, 'application/json');
      expect(json).toMatchObject({ content_type: 'application/json', result: body });
    }
  });

  it('that claims to be JSON and is no text is passed on as base64', async () => {
    const bytes = Buffer.concat([Buffer.from(`["${filler}`), Buffer.from([0xc3, 0x28])]);
    const { json } = await captured(bytes, 'application/json');
    expect(json).toMatchObject({ result_encoding: 'base64', result: base64(bytes) });
  });

  it('of events is text, since it is the stream of an app and not of a function', async () => {
    const body = `data: 1\n\ndata: ${filler}\n\n`;
    expect((await captured(body, 'text/event-stream')).json['result']).toBe(body);
  });
});

describe.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', brotli],
  ['zstd', zstdCompressSync],
] as const)('Content-Encoding: %s', (coding, compress) => {
  /** Random letters, so that the encoded answer is large as well. */
  const letters = (size: number): string => randomBytes(size / 2).toString('hex');

  it.each(SIZES)('is undone for the delivery alone (%i bytes)', async size => {
    const value = letters(size);
    const { json } = await captured(compress(Buffer.from(`{"a":"${value}"}`)), 'application/json', coding);
    expect(json['result']).toEqual({ a: value });
    expect(json).not.toHaveProperty('content_encoding');
  });

  it('is undone though the answer leaves memory only once it is decoded', async () => {
    const value = 'x'.repeat(900_000);
    const { json } = await captured(compress(Buffer.from(value)), 'text/plain', coding.toUpperCase());
    expect(json['result']).toBe(value);
  });

  it.each(SIZES)('that breaks off is passed on as it came, with its encoding (%i bytes)', async size => {
    const whole = compress(Buffer.from(letters(size)));
    const bytes = whole.subarray(0, whole.length - 10);
    const { json } = await captured(bytes, 'text/plain', coding);
    expect(json).toMatchObject({
      content_type: 'text/plain',
      content_encoding: coding,
      result_encoding: 'base64',
      result: base64(bytes),
    });
  });
});

describe('Content-Encoding', () => {
  it.each(SIZES)('is undone in the reverse of its order (%i bytes)', async size => {
    const value = randomBytes(size / 2).toString('hex');
    const bytes = brotli(gzipSync(deflateSync(value)));
    for (const coding of ['deflate, gzip, br', ['deflate', 'gzip,br'], ' DEFLATE ,identity, gzip,, br']) {
      expect((await captured(bytes, 'text/plain', coding)).json['result']).toBe(value);
    }
  });

  it.each(SIZES)('that is not true is passed on as it came (%i bytes)', async size => {
    const bytes = randomBytes(size);
    const { json } = await captured(bytes, 'application/json', 'gzip');
    expect(json).toMatchObject({ content_encoding: 'gzip', result: base64(bytes) });
  });

  it.each(SIZES)('that nobody knows is passed on as it came (%i bytes)', async size => {
    const bytes = Buffer.from('x'.repeat(size));
    const { json } = await captured(bytes, 'text/plain', 'rot13, gzip');
    expect(json).toMatchObject({
      content_type: 'text/plain',
      content_encoding: 'rot13, gzip',
      result_encoding: 'base64',
      result: base64(bytes),
    });
  });

  it('of text that is none keeps the decoded bytes', async () => {
    const bytes = randomBytes(300_000);
    const { json } = await captured(gzipSync(bytes), 'text/plain', 'gzip');
    expect(json).toMatchObject({
      content_type: 'text/plain',
      result_encoding: 'base64',
      result: base64(bytes),
    });
    expect(json).not.toHaveProperty('content_encoding');
  });
});

describe('an answer without bytes', () => {
  it.each(['application/json', 'text/plain', 'image/png', undefined])(
    'has the result null (%s)',
    async type => {
      const { json } = await captured('', type);
      expect(json['result']).toBeNull();
      expect(json).not.toHaveProperty('content_type');
    },
  );

  it('has the result null also when it is encoded', async () => {
    expect((await captured('', 'text/plain', 'gzip')).json['result']).toBeNull();
    expect((await captured(gzipSync(''), 'text/plain', 'gzip')).json['result']).toBeNull();
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('has the result null (%s, %i)', async (method, status) => {
    const path = rig.app.play((_req, res) => res.writeHead(status, { 'Content-Type': 'text/plain' }).end());
    const answer = await rig.call({ path, method, hook: true });
    const { json } = await rig.delivered(answer.header('x-request-id'));
    expect(json).toMatchObject({ status_code: status, result: null });
  });
});

describe('an answer beyond maxBody', () => {
  it('is named with its size and never shortened', async () => {
    const exact = await captured('x'.repeat(MAX_BODY), 'text/plain');
    expect(String(exact.json['result'])).toHaveLength(MAX_BODY);
    const { json } = await captured('x'.repeat(MAX_BODY + 1), 'text/plain');
    expect(json).toMatchObject({
      content_type: 'text/plain',
      result_omitted: { bytes: MAX_BODY + 1, limit: MAX_BODY },
    });
    expect(json).not.toHaveProperty('result');
  });

  it('of JSON says nothing of its type', async () => {
    const { json } = await captured(`"${'x'.repeat(MAX_BODY)}"`, 'application/json');
    expect(json['result_omitted']).toEqual({ bytes: MAX_BODY + 2, limit: MAX_BODY });
    expect(json).not.toHaveProperty('content_type');
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotli],
    ['zstd', zstdCompressSync],
  ] as const)('once decoded (%s) is named with its decoded size', async (coding, compress) => {
    const size = 12 * MIB;
    const bomb = compress(Buffer.alloc(size));
    expect(bomb.length).toBeLessThan(128 * 1024);
    const { json } = await captured(bomb, 'application/json', coding);
    expect(json['result_omitted']).toEqual({ bytes: size, limit: MAX_BODY });
  });

  it('once decoded without end is counted up to 16 times maxBody', async () => {
    const { json } = await captured(gzipSync(Buffer.alloc(20 * MIB)), 'text/plain', 'gzip');
    const { bytes } = json['result_omitted'] as { bytes: number };
    expect(bytes).toBeGreaterThan(16 * MAX_BODY);
    expect(bytes).toBeLessThan(17 * MAX_BODY);
  });

  it('between two codings is passed on as it came', async () => {
    const nothing = gzipSync(Buffer.concat(Array<Buffer>(1_000_000).fill(gzipSync(''))));
    const { json } = await captured(nothing, 'text/plain', 'gzip, gzip');
    expect(json).toMatchObject({ content_encoding: 'gzip, gzip', result: base64(nothing) });
  });
});
