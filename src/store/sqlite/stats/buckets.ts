/** The counts of first attempts as the bytes that a row has: 32 bits for each bucket. */

const WIDTH = 4;

export function packBuckets(counts: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(counts.length * WIDTH);
  for (const [bucket, count] of counts.entries()) bytes.writeUInt32LE(count, bucket * WIDTH);
  return bytes;
}

/** Adds those of a row to the sums. */
export function addBuckets(sums: number[], { buffer, byteOffset, byteLength }: Uint8Array): void {
  const view = new DataView(buffer, byteOffset, byteLength);
  for (let bucket = 0; bucket < sums.length; bucket += 1)
    sums[bucket]! += view.getUint32(bucket * WIDTH, true);
}
