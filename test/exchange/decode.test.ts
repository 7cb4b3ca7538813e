import { randomBytes } from 'node:crypto';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codingsOf, decodeSmall, decodeStream } from '../../src/exchange/decode.ts';

describe('the codings of a Content-Encoding', () => {
  it.each<[string | undefined, string[] | undefined]>([
    [undefined, []],
    ['', []],
    ['identity', []],
    ['gzip', ['gzip']],
    ['GZip', ['gzip']],
    ['x-gzip', ['x-gzip']],
    ['deflate, gzip,br', ['br', 'gzip', 'deflate']],
    [' zstd ,, identity', ['zstd']],
    ['rot13', undefined],
    ['gzip, rot13', undefined],
    ['compress', undefined],
    ['constructor', undefined],
  ])('%j are undone in the order %j', (value, codings) => {
    expect(codingsOf(value)).toEqual(codings);
  });
});

const ENCODERS = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: (bytes: Uint8Array): Buffer => (bytes.length % 2 === 0 ? deflateSync : deflateRawSync)(bytes),
  br: (bytes: Uint8Array): Buffer => brotliCompressSync(bytes),
  zstd: (bytes: Uint8Array): Buffer => zstdCompressSync(bytes),
} as const;
type Coding = keyof typeof ENCODERS;
const coding = fc.constantFrom(...(Object.keys(ENCODERS) as Coding[]));

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('decoding', () => {
  it('undoes any stack of codings, at once or in pieces of any size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 2_000 }),
        fc.array(coding, { maxLength: 3 }),
        fc.integer({ min: 1, max: 700 }),
        async (bytes, codings, size) => {
          let encoded: Uint8Array = bytes;
          for (const name of codings) encoded = ENCODERS[name](encoded);
          const undoing = codingsOf(codings.join(','))!;
          expect(Buffer.from(decodeSmall(encoded, undoing, 10_000)!).equals(bytes)).toBe(true);
          expect((await collect(decodeStream(inPieces(encoded, size), undoing))).equals(bytes)).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each(Object.keys(ENCODERS) as Coding[])('refuses %s that breaks off, wherever it does', async name => {
    const encoded = ENCODERS[name](randomBytes(500));
    for (let length = 1; length < encoded.length; length += 7) {
      const part = encoded.subarray(0, length);
      expect(() => decodeSmall(part, [name], 10_000)).toThrow(Error);
      await expect(collect(decodeStream(inPieces(part, 50), [name]))).rejects.toThrow(Error);
    }
  });

  it.each(Object.keys(ENCODERS) as Coding[])('gives up on %s that grows beyond the limit', name => {
    const encoded = ENCODERS[name](Buffer.alloc(100_000));
    expect(decodeSmall(encoded, [name], 99_999)).toBeUndefined();
    expect(decodeSmall(encoded, [name], 100_000)).toHaveLength(100_000);
  });

  it('refuses more than the ceiling between two codings, though little comes out', async () => {
    const empty = Buffer.concat(Array<Buffer>(1_000).fill(gzipSync('')));
    const decoded = decodeStream(inPieces(gzipSync(empty), 100), ['gzip', 'gzip'], 10_000);
    await expect(collect(decoded)).rejects.toThrow(RangeError);
  });

  it('ends when its reader does', async () => {
    for await (const chunk of decodeStream(inPieces(gzipSync(Buffer.alloc(1_000_000)), 100), ['gzip'])) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
  });

  it('passes on the failure of what it reads', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield gzipSync('x').subarray(0, 5);
      throw new Error('the disk is gone');
    }
    await expect(collect(decodeStream(failing(), ['gzip', 'br']))).rejects.toThrow('the disk is gone');
  });
});
