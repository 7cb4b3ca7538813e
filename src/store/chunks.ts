/** Work on very many rows, a bounded number at a time. */

/** Repeats `step` until it has nothing left to do or the limit is reached; tells the sum. */
export async function inChunks(
  limit: number,
  chunk: number,
  step: (size: number) => Promise<number>,
): Promise<number> {
  let total = 0;
  while (total < limit) {
    const size = Math.min(chunk, limit - total);
    const done = await step(size);
    total += done;
    if (done < size) break;
  }
  return total;
}
