/** Which traces are kept, as the samplers of OpenTelemetry decide it: pure. */
import type { SamplerConfig } from '../config/config.ts';
import type { SpanIds } from '../trace.ts';

/** Of the trace id, what is random wherever it was made (Trace Context, level 2): its last 7 bytes. */
const RANDOM_DIGITS = 14;
const ALL = 16 ** RANDOM_DIGITS;

export function isSampled(
  { name, ratio }: SamplerConfig,
  traceId: string,
  parent: Pick<SpanIds, 'sampled'> | undefined,
): boolean {
  if (parent !== undefined && name.startsWith('parentbased_')) return parent.sampled;
  if (name.endsWith('always_on')) return true;
  if (name.endsWith('always_off')) return false;
  return Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) < ratio * ALL;
}
