/**
 * Runs as the API takes and tells them. By these schemas inputs are checked, and the OpenAPI document is made
 * of them.
 */
import { z } from '@hono/zod-openapi';
import { formatDuration, parseDuration } from '../config/units.ts';
import type { RunState } from '../store/runs.ts';
import { name, nextCursor, PAGE, projectParameter, time, uuid, wrong } from './parameters.ts';

const RUN_STATES = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
] as const satisfies readonly RunState[];

const MAX_WAIT_MS = 300_000;

const WRONG_WAIT = wrong(`must be a duration from 0s to ${formatDuration(MAX_WAIT_MS)}, such as 30s`);

export const RunParams = z.object({
  run_id: uuid.openapi({ format: 'uuid', description: 'Of the 202 that took the call' }),
});

export const RunQuery = z.strictObject({
  wait: z
    .string(WRONG_WAIT)
    .transform(parseDuration)
    .pipe(z.number(WRONG_WAIT).max(MAX_WAIT_MS, WRONG_WAIT))
    .optional()
    .openapi({
      type: 'string',
      example: '30s',
      description:
        'How long to wait for the end of the run, from `0s` to `5m`. The answer comes as soon as the run has ended, ' +
        'and otherwise tells how it stands when the time is up.',
    }),
});

export const RunListQuery = z.strictObject({
  project: projectParameter,
  state: z.enum(RUN_STATES, wrong(`must be one of ${RUN_STATES.join(', ')}`)).optional(),
  app: name('an app').optional(),
  ...PAGE,
});

const RunDelivery = z
  .object({
    target: z
      .url()
      .openapi({ description: 'Without its user information and its query, which may be secret' }),
    state: z.enum(['pending', 'delivered', 'failed', 'cancelled']).optional(),
    reason: z.enum(['exhausted', 'rejected', 'blocked']).optional(),
    attempts: z.int().min(0).optional().openapi({ description: 'Those that have ended' }),
  })
  .openapi('RunDelivery', { description: 'While the run has not ended, the target alone' });

/** What is told of a run and never stands in its answer. */
export const RunFacts = z.object({
  state: z.enum(RUN_STATES),
  created_at: time,
  started_at: time.optional().openapi({ description: 'When it was last begun' }),
  ended_at: time.optional(),
  starts: z.int().min(0),
  cancelling: z.literal(true).optional().openapi({ description: 'It runs, and is to be cancelled' }),
  delivery: RunDelivery.optional(),
});

export const Run = RunFacts.extend({
  run_id: z.uuidv7(),
  project_id: z.string(),
  app: z.string(),
  status_code: z.int().optional().openapi({ description: 'Of the answer, once the run has ended' }),
  error: z.object({ type: z.string() }).optional().openapi({ description: 'In place of a result' }),
}).openapi('Run');

/** The same fields as the body of a delivery has, beside what is told of the run. */
export const RunWithAnswer = Run.extend({
  error: z.object({ type: z.string(), message: z.string().optional() }).optional(),
  result: z.unknown().optional().openapi({ description: 'What the app answered: any JSON, text, or base64' }),
  result_encoding: z.literal('base64').optional(),
  result_omitted: z.object({ bytes: z.int(), limit: z.int() }).optional(),
  result_expired: z
    .literal(true)
    .optional()
    .openapi({ description: 'The run has ended, and its answer is not kept any more' }),
  content_type: z.string().optional(),
  content_encoding: z.string().optional(),
  run_time_ms: z.number().optional(),
  timestamp: time.optional().openapi({ description: 'When the answer was complete' }),
}).openapi('RunWithAnswer');

export const RunList = z
  .object({
    runs: z.array(Run),
    next_cursor: nextCursor,
  })
  .openapi('RunList');
