/**
 * Reads metrics in the Prometheus text format (version 0.0.4), as far as a service like ours writes it: samples
 * with their labels. Lines that are none are passed over.
 */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Samples by the name of their metric, in the order they came. */
export type Metrics = ReadonlyMap<string, readonly Sample[]>;

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+([^ \t]+)(?:[ \t]+-?\d+)?$/s;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/gs;
const ESCAPED: Readonly<Record<string, string>> = { '\\n': '\n', '\\\\': '\\', '\\"': '"' };
const INFINITIES: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity };

export function parseMetrics(text: string): Metrics {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = SAMPLE.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) continue;
    const samples = metrics.get(name) ?? [];
    samples.push({ labels: parseLabels(labels), value: INFINITIES[value] ?? Number(value) });
    metrics.set(name, samples);
  }
  return metrics;
}

function parseLabels(text: string): Record<string, string> {
  const labels = [...text.matchAll(LABEL)].map(([, name, value]) => [name!, unescaped(value!)] as const);
  return Object.fromEntries(labels);
}

function unescaped(value: string): string {
  return value.replaceAll(/\\./gs, pair => ESCAPED[pair] ?? pair);
}

/** The sum of a metric's samples that have these labels; undefined where there is none. */
export function sumOf(
  metrics: Metrics,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels);
  const found = (metrics.get(name) ?? []).filter(sample =>
    wanted.every(([label, value]) => sample.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

/**
 * A quantile of a histogram without labels of its own: the bucket is found by counting, the place within it by
 * taking what it holds to be spread evenly. Beyond the last bound, only that is known. Undefined where nothing
 * was observed.
 */
export function quantileOf(metrics: Metrics, histogram: string, share: number): number | undefined {
  const buckets = (metrics.get(`${histogram}_bucket`) ?? [])
    .map(({ labels, value }) => ({ bound: boundOf(labels['le']), count: value }))
    .sort((one, other) => one.bound - other.bound);
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) return undefined;
  const wanted = share * total;
  const index = buckets.findIndex(({ count }) => count > 0 && count >= wanted);
  const { bound, count } = buckets[index]!;
  const { bound: lower, count: below } = buckets[index - 1] ?? { bound: 0, count: 0 };
  if (bound === Infinity) return lower;
  return lower + ((bound - lower) * (wanted - below)) / (count - below);
}

function boundOf(text = '+Inf'): number {
  return INFINITIES[text] ?? Number(text);
}
