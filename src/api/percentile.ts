/**
 * Percentiles out of a histogram: the bucket is found by counting, the place within it by taking its times to
 * be spread evenly.
 */

/**
 * `counts` has one bucket more than there are `bounds`; of that one, only its lower bound is known. Null where
 * nothing was counted. `share` is above 0 and at most 1.
 */
export function percentile(
  counts: readonly number[],
  bounds: readonly number[],
  share: number,
): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = share * total;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const lower = bounds[index - 1] ?? 0;
      const upper = bounds[index] ?? lower;
      return lower + ((upper - lower) * (wanted - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}
