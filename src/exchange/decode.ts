/**
 * Undoes the Content-Encoding of an answer, for the delivery or a cortex envelope; the caller of a custom
 * app gets the bytes as they came.
 */
import { once } from 'node:events';
import type { Transform } from 'node:stream';
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib';

interface Codec {
  sync(bytes: Uint8Array, options: { maxOutputLength: number }): Buffer;
  stream(first: number): Transform;
}

/** RFC 9110, section 8.4.1.2 means zlib by `deflate`, but senders of raw deflate exist. */
const isZlib = (first: number): boolean => (first & 0x0f) === 8;

const gzip: Codec = { sync: gunzipSync, stream: () => createGunzip() };
const CODECS: Readonly<Record<string, Codec>> = {
  gzip,
  'x-gzip': gzip,
  deflate: {
    sync: (bytes, options) => (isZlib(bytes[0] ?? 0) ? inflateSync : inflateRawSync)(bytes, options),
    stream: first => (isZlib(first) ? createInflate() : createInflateRaw()),
  },
  br: { sync: brotliDecompressSync, stream: () => createBrotliDecompress() },
  zstd: { sync: zstdDecompressSync, stream: () => createZstdDecompress() },
};

/** The codings of a Content-Encoding, in the order in which they are undone; undefined: one is unknown. */
export function codingsOf(contentEncoding: string | undefined): readonly string[] | undefined {
  if (contentEncoding === undefined) return [];
  const names = contentEncoding
    .toLowerCase()
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '' && name !== 'identity')
    .reverse();
  return names.every(name => Object.hasOwn(CODECS, name)) ? names : undefined;
}

/** Undoes `codings` at once; undefined when the outcome is larger than `limit`. Throws on damaged data. */
export function decodeSmall(
  bytes: Uint8Array,
  codings: readonly string[],
  limit: number,
): Uint8Array | undefined {
  let decoded = bytes;
  try {
    for (const coding of codings) decoded = CODECS[coding]!.sync(decoded, { maxOutputLength: limit });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw error;
  }
  return decoded;
}

/**
 * Undoes `codings` piece by piece. Throws on damaged or unfinished data, and where more than `ceiling` bytes
 * stand between two codings: what comes out in the end is for the reader to bound.
 */
export async function* decodeStream(
  source: AsyncIterable<Uint8Array>,
  codings: readonly string[],
  ceiling = Number.POSITIVE_INFINITY,
): AsyncGenerator<Uint8Array> {
  const [coding, ...rest] = codings;
  if (coding === undefined) {
    yield* source;
    return;
  }
  const decoded = decodeOnce(source, CODECS[coding]!);
  yield* rest.length === 0 ? decoded : decodeStream(bounded(decoded, ceiling), rest, ceiling);
}

async function* bounded(source: AsyncIterable<Uint8Array>, ceiling: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of source) {
    size += piece.length;
    if (size > ceiling) throw new RangeError('too much between two codings');
    yield piece;
  }
}

async function* decodeOnce(source: AsyncIterable<Uint8Array>, codec: Codec): AsyncGenerator<Uint8Array> {
  const pieces = source[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done) return;
  const decoder = codec.stream(first.value[0] ?? 0);
  const feed = async (): Promise<void> => {
    let piece: IteratorResult<Uint8Array> = first;
    while (!piece.done) {
      if (!decoder.write(piece.value)) await once(decoder, 'drain');
      piece = await pieces.next();
    }
    decoder.end();
  };
  feed().catch(error => decoder.destroy(error as Error));
  yield* decoder as AsyncIterable<Uint8Array>;
}
