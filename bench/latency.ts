/**
 * What is told of many durations: the middle one, and the one that a hundredth exceeds.
 */
export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function latencyOf(durations: readonly number[]): Latency {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
