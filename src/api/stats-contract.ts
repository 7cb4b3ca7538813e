/**
 * The numbers of a window of time as the API tells them.
 */
import { z } from '@hono/zod-openapi';
import { projectParameter, time, wrong } from './parameters.ts';

/** Windows, and the spans that each is told in. All in milliseconds. */
export const WINDOWS = {
  '1h': { length: 3_600_000, step: 60_000 },
  '24h': { length: 86_400_000, step: 600_000 },
  '7d': { length: 7 * 86_400_000, step: 3_600_000 },
} as const;

export type WindowName = keyof typeof WINDOWS;

const NAMES = Object.keys(WINDOWS) as [WindowName, ...WindowName[]];

export const StatsQuery = z.strictObject({
  project: projectParameter,
  window: z.enum(NAMES, wrong(`must be one of ${NAMES.join(', ')}`)).default('1h'),
});

const count = z.int().min(0);
const milliseconds = z.number().nullable();

const COUNTS = {
  calls: count.openapi({ description: 'Calls that ended' }),
  call_errors: count.openapi({ description: 'Those of them with a status of 500 or more' }),
  made: count.openapi({ description: 'Deliveries that were made' }),
  delivered: count.openapi({ description: 'Rounds of deliveries that ended so' }),
  failed: count,
  p50_ms: milliseconds.openapi({ description: 'How long first attempts took; null where there were none' }),
  p95_ms: milliseconds,
};

export const StatsSpan = z.object({ at: time, ...COUNTS }).openapi('StatsSpan');

export const Stats = z
  .object({
    since: time,
    step_seconds: z.int(),
    spans: z.array(StatsSpan).openapi({ description: 'The oldest first, without gaps' }),
    totals: z.object({
      ...COUNTS,
      success_rate: z
        .number()
        .min(0)
        .max(1)
        .nullable()
        .openapi({ description: 'Of the rounds that ended; null where none did' }),
    }),
    backlog: z.object({
      pending: count,
      oldest_at: time.optional().openapi({ description: 'When the oldest was made' }),
    }),
    failing_hosts: z
      .array(z.object({ host: z.string(), attempts: count, failures: count }))
      .openapi({ description: 'Those with the most attempts that failed, at most 10' }),
  })
  .openapi('Stats');
