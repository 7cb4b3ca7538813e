/**
 * Generated answers of apps, each a plan: what goes over the wire, piece by piece, and what it means. The
 * same plan answers as often as it is asked, always with the same bytes.
 */
import { createCipheriv } from 'node:crypto';
import type { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import * as fc from 'fast-check';

/** What an answer holds once it is decoded. */
export type Content =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'json' | 'text' | 'bytes'; readonly bytes: Buffer };

export type Header = readonly [name: string, value: string];
type Framing = 'length' | 'chunked' | 'close';
type Pause = 'none' | 'turn' | 'timer';

export interface Plan {
  readonly method: string;
  readonly version: '1.0' | '1.1';
  readonly status: number;
  readonly reason: string;
  /** In the order of the wire, without those that frame the body. */
  readonly headers: readonly Header[];
  readonly interim: ReadonlyArray<{ readonly status: number; readonly headers: readonly Header[] }>;
  readonly content: Content;
  readonly contentType: string | undefined;
  /** `content` as the wire has it: encoded, but without its framing. */
  readonly body: Buffer;
  readonly contentEncoding: string | undefined;
  readonly framing: Framing;
  readonly trailers: readonly Header[];
  /** Where the body is cut, as parts of the whole, and how long each piece waits. */
  readonly cuts: ReadonlyArray<{ readonly at: number; readonly pause: Pause }>;
}

/** Answers without a body end with their head (RFC 9112, section 6.3). */
export function isBodiless({ method, status }: Pick<Plan, 'method' | 'status'>): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/** The whole answer, and then the end of the connection. */
export async function perform(plan: Plan, socket: Socket): Promise<void> {
  const { status, reason, headers, interim, contentType, contentEncoding } = plan;
  const lines: string[] = [];
  for (const each of interim) lines.push(`HTTP/1.1 ${each.status} Interim`, ...each.headers.map(line), '');
  lines.push(`HTTP/1.1 ${status} ${reason}`, 'Connection: close, X-Hop', 'X-Hop: over here');
  lines.push(...headers.map(line));
  if (contentType !== undefined) lines.push(`Content-Type: ${contentType}`);
  if (contentEncoding !== undefined) lines.push(`Content-Encoding: ${contentEncoding}`);
  if (plan.framing === 'length') lines.push(`Content-Length: ${plan.body.length}`);
  if (plan.framing === 'chunked') lines.push('Transfer-Encoding: chunked');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (!isBodiless(plan)) await performBody(plan, socket);
  socket.end();
}

async function performBody({ body, framing, cuts, trailers }: Plan, socket: Socket): Promise<void> {
  let from = 0;
  for (const { at, pause } of [...cuts, { at: 1, pause: 'none' as const }]) {
    const to = Math.round(body.length * at);
    const piece = body.subarray(from, to);
    from = to;
    if (piece.length > 0) {
      if (framing === 'chunked') socket.write(`${piece.length.toString(16)}\r\n`);
      const room = socket.write(piece);
      if (framing === 'chunked') socket.write('\r\n');
      if (!room) await new Promise(resolve => socket.once('drain', resolve).once('close', resolve));
    }
    if (pause === 'turn') await setImmediate();
    if (pause === 'timer') await setTimeout(2);
  }
  if (framing === 'chunked')
    socket.write(`0\r\n${trailers.map(each => `${line(each)}\r\n`).join('')}\r\n`, 'latin1');
}

const line = ([name, value]: Header): string => `${name}: ${value}`;

const ENCODERS = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  GZIP: gzipSync,
  deflate: deflateSync,
  br: (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: zstdCompressSync,
  'deflate, gzip': (bytes: Buffer) => gzipSync(deflateRawSync(bytes)),
} as const satisfies Record<string, (bytes: Buffer) => Buffer>;

export type Encoding = keyof typeof ENCODERS;
export const ENCODINGS = Object.keys(ENCODERS) as Encoding[];

/** The same bytes for the same seed, and as hard to compress as random ones. */
export function noise(size: number, seed: number): Buffer {
  const key = Buffer.alloc(16, `seed ${seed}`);
  return createCipheriv('aes-128-ctr', key, key).update(Buffer.alloc(size));
}

/** White space, a number beyond double precision, repeated keys and escapes: to be found again as they are. */
export function jsonOf(size: number, seed: number): Buffer {
  const start = `{ "z":12345678901234567890.10e+2,\n"a":[${seed},null,"\\u00e9 é 𝄞"],"a":{},"fill":"`;
  const fill = noise(Math.ceil((Math.max(0, size - start.length) * 3) / 4), seed).toString('base64');
  return Buffer.from(`${start}${fill}"\t}`);
}

const SNIPPET = 'Tschüß, "world" \\ \u2028 \u0001 𝄞 ';

export function textOf(size: number, seed: number): Buffer {
  return Buffer.from(`~${seed} ${SNIPPET.repeat(Math.ceil(size / SNIPPET.length))}`);
}

export function eventsOf(size: number, seed: number): Buffer {
  const event = `id: ${seed}\nevent: token\ndata: {"text":"é"}\n\n`;
  return Buffer.from(event.repeat(Math.ceil(size / event.length) + 1));
}

type Substance = Pick<Plan, 'content' | 'contentType'>;

/** How the kinds of content come about; each is what its content type says, or is known to be something else. */
export const SUBSTANCES: Readonly<Record<string, (size: number, seed: number) => Substance>> = {
  nothing: () => ({ content: { kind: 'nothing' }, contentType: 'text/html' }),
  json: (size, seed) => ({
    content: { kind: 'json', bytes: jsonOf(size, seed) },
    contentType: 'application/json',
  }),
  problem: (size, seed) => ({
    content: { kind: 'json', bytes: jsonOf(size, seed) },
    contentType: 'application/problem+json; charset=utf-8',
  }),
  undeclared: (size, seed) => ({
    content: { kind: 'json', bytes: jsonOf(size, seed) },
    contentType: undefined,
  }),
  notJson: (size, seed) => ({
    content: { kind: 'text', bytes: textOf(size, seed) },
    contentType: 'application/json',
  }),
  text: (size, seed) => ({
    content: { kind: 'text', bytes: textOf(size, seed) },
    contentType: 'text/plain;charset="UTF-8"',
  }),
  events: (size, seed) => ({
    content: { kind: 'text', bytes: eventsOf(size, seed) },
    contentType: 'text/event-stream',
  }),
  bytes: (size, seed) => ({
    content: { kind: 'bytes', bytes: Buffer.concat([Buffer.of(0xff), noise(size, seed)]) },
    contentType: 'application/octet-stream',
  }),
  notText: (size, seed) => ({
    content: { kind: 'bytes', bytes: Buffer.concat([Buffer.of(0xff), noise(size, seed)]) },
    contentType: 'text/plain',
  }),
};

/** A plan before its bytes are made: short enough to be read in a report. */
export interface Recipe extends Omit<Plan, 'body' | 'contentEncoding' | 'content' | 'contentType'> {
  readonly substance: string;
  readonly size: number;
  readonly seed: number;
  readonly encoding: Encoding | undefined;
}

export function planOf({ substance, size, seed, encoding, ...rest }: Recipe): Plan {
  const { content, contentType } = SUBSTANCES[substance]!(size, seed);
  const plain = content.kind === 'nothing' ? Buffer.alloc(0) : content.bytes;
  const body = encoding === undefined || plain.length === 0 ? plain : ENCODERS[encoding](plain);
  return { ...rest, content, contentType, contentEncoding: encoding, body };
}

/** Reason phrases that pass through; beside these there are some that cannot. */
export const WHOLE_REASONS: readonly string[] = ['OK', 'Oh dear', 'Gr\xc3\xb6\xc3\x9fe'];

/** RFC 9110, section 5.6.2. */
const TOKEN = `!#$%&'*+-.^_\`|~0129AZaz`;
const name = fc.oneof(
  fc.constantFrom(
    'Set-Cookie',
    'sEt-cOOkie',
    'ETag',
    'X-Request-Id',
    'Vary',
    'Server',
    'Link',
    'dAtE',
    'Trailer',
  ),
  fc.constantFrom('__proto__', 'constructor', 'Keep-Alive', 'Proxy-Authenticate', 'Last-Modified', 'TE'),
  fc
    .string({ unit: fc.constantFrom(...TOKEN.split('')), minLength: 1, maxLength: 30 })
    .map(text => `X${text}`),
);
const value = fc
  .string({
    unit: fc.integer({ min: 0x20, max: 0xff }).map(code => String.fromCharCode(code)),
    maxLength: 60,
  })
  .map(text => text.replaceAll('\x7f', '?').trim());
const headers = fc.array(fc.tuple(name, value), { maxLength: 8 });

export const recipes: fc.Arbitrary<Recipe> = fc.record({
  method: fc.oneof({ weight: 4, arbitrary: fc.constant('GET') }, fc.constantFrom('HEAD', 'POST', 'DELETE')),
  version: fc.oneof({ weight: 4, arbitrary: fc.constant('1.1' as const) }, fc.constant('1.0' as const)),
  status: fc.oneof(
    fc.constantFrom(200, 201, 204, 205, 206, 301, 304, 404, 500),
    fc.integer({ min: 200, max: 599 }),
  ),
  reason: fc.constantFrom(...WHOLE_REASONS, '', 'Caf\xe9', 'O\x01K'),
  headers,
  interim: fc.array(fc.record({ status: fc.constantFrom(102, 103), headers }), { maxLength: 2 }),
  substance: fc.constantFrom(...Object.keys(SUBSTANCES)),
  size: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 60_000, max: 70_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 100_000, max: 600_000 }) },
  ),
  seed: fc.nat(1_000),
  encoding: fc.option(fc.constantFrom(...ENCODINGS), { freq: 2, nil: undefined }),
  framing: fc.constantFrom<Framing>('length', 'chunked', 'close'),
  trailers: fc.array(fc.tuple(fc.constantFrom('X-Checksum', 'server-timing'), value), { maxLength: 2 }),
  cuts: fc
    .array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        pause: fc.constantFrom<Pause>('none', 'turn', 'timer'),
      }),
      { maxLength: 4 },
    )
    .map(cuts => cuts.sort((one, other) => one.at - other.at)),
});
