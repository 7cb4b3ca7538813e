/** How a part of an embedded store is read out: beyond a position, in batches that fit into memory. */

/** What is read out together, at most; beyond the bytes by one. Bodies in files do not count. */
const BATCH_ROWS = 500;
const BATCH_BYTES = 8 * 1024 * 1024;

export interface PartReader<T> {
  /** How many there are beyond a position. */
  count(after: number): number;
  /** Those beyond a position, in the order of their positions. */
  read(after: number): Iterable<T>;
  /** The bytes that one takes in memory, apart from its small parts. */
  weightOf(stored: T): number;
}

export function* inBatches<T>(reader: PartReader<T>, after: number): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const each of reader.read(after)) {
    batch.push(each);
    bytes += reader.weightOf(each);
    if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
