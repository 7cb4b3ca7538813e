/**
 * The bytes of a batch, one after the other in a single parameter: an array of byte strings would have to be
 * written as text, which took half again as long.
 */

/** Where `substring` finds it; null for none. */
export interface Span {
  readonly start: number | null;
  readonly length: number | null;
}

export interface Blobs {
  add(bytes: Uint8Array | undefined): Span;
  joined(): Buffer;
}

const NOWHERE: Span = { start: null, length: null };

export function createBlobs(): Blobs {
  const parts: Uint8Array[] = [];
  let end = 0;
  return {
    add(bytes) {
      if (bytes === undefined) return NOWHERE;
      parts.push(bytes);
      const start = end + 1; // SQL counts from 1
      end += bytes.byteLength;
      return { start, length: bytes.byteLength };
    },
    joined: () => Buffer.concat(parts, end),
  };
}
