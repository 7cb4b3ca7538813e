/**
 * Writes the numbers of a window as JSON, with a span for each step of it, also where nothing happened.
 */
import type { z } from '@hono/zod-openapi';
import { type Counts, LATENCY_BOUNDS, type Span } from '../store/stats.ts';
import { percentile } from './percentile.ts';
import { isoTime } from './run-json.ts';
import type { Stats, StatsSpan } from './stats-contract.ts';

type StatsJson = z.output<typeof Stats>;
type CountsJson = Omit<z.output<typeof StatsSpan>, 'at'>;

export interface Window {
  /** A multiple of `step`. */
  readonly since: number;
  readonly until: number;
  readonly step: number;
}

const NOTHING: Counts = {
  calls: 0,
  callErrors: 0,
  made: 0,
  delivered: 0,
  failed: 0,
  firstAttempts: LATENCY_BOUNDS.map(() => 0).concat(0),
};

export function spansJson(spans: readonly Span[], window: Window): Pick<StatsJson, 'spans' | 'totals'> {
  const { since, until, step } = window;
  const byTime = new Map(spans.map(span => [span.at, span]));
  const times = Array.from({ length: Math.ceil((until - since) / step) }, (_, index) => since + index * step);
  const totals = spans.reduce<Counts>(sumOf, NOTHING);
  const { delivered, failed } = totals;
  return {
    spans: times.map(at => ({ at: isoTime(at), ...countsJson(byTime.get(at) ?? NOTHING) })),
    totals: {
      ...countsJson(totals),
      success_rate: delivered + failed === 0 ? null : delivered / (delivered + failed),
    },
  };
}

function countsJson(counts: Counts): CountsJson {
  const { calls, callErrors, made, delivered, failed, firstAttempts } = counts;
  return {
    calls,
    call_errors: callErrors,
    made,
    delivered,
    failed,
    p50_ms: percentile(firstAttempts, LATENCY_BOUNDS, 0.5),
    p95_ms: percentile(firstAttempts, LATENCY_BOUNDS, 0.95),
  };
}

function sumOf(one: Counts, other: Counts): Counts {
  return {
    calls: one.calls + other.calls,
    callErrors: one.callErrors + other.callErrors,
    made: one.made + other.made,
    delivered: one.delivered + other.delivered,
    failed: one.failed + other.failed,
    firstAttempts: one.firstAttempts.map((count, index) => count + (other.firstAttempts[index] ?? 0)),
  };
}
