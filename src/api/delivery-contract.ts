/**
 * Deliveries as the API takes and tells them. By these schemas inputs are checked, and the OpenAPI document is
 * made of them.
 */
import { z } from '@hono/zod-openapi';
import { DELIVERY_STATES, FAILURE_REASONS, FILTER } from './delivery-filter.ts';
import { nextCursor, PAGE, time, uuid, wrong } from './parameters.ts';
import { RunFacts } from './run-contract.ts';

export const DeliveryParams = z.object({
  run_id: uuid.openapi({ format: 'uuid', description: 'Of the call: its X-Request-Id' }),
});

export const JobParams = z.object({ job_id: uuid.openapi({ format: 'uuid' }) });

export const DeliveryListQuery = z.strictObject({ ...FILTER, ...PAGE });

export const StreamQuery = z.strictObject(FILTER);

export const DeliveryQuery = z.strictObject({
  exclude: z
    .enum(['body'], wrong('must be body'))
    .optional()
    .openapi({ description: '`body`: all but the body of the request, which may be large' }),
});

export const IdempotencyHeader = z.object({
  'Idempotency-Key': z.string().optional().openapi({
    description:
      'A name for this request, of up to 255 visible ASCII characters: sent again within a day, it does its work once',
  }),
});

const ms = z.number().min(0);

const target = z.string().openapi({ format: 'uri', description: 'Without user information' });

const AttemptError = z
  .object({
    code: z.string().openapi({ example: 'connection_refused' }),
    meaning: z.string(),
    advice: z.string(),
  })
  .openapi('AttemptError');

export const Attempt = z
  .object({
    round: z.int().min(1),
    number: z.int().min(1).openapi({ description: 'Within its round' }),
    trigger: z.enum(['automatic', 'manual']),
    target: target.optional().openapi({ description: 'Where it went, if not to the target of the delivery' }),
    started_at: time,
    timings: z
      .object({
        queue: ms.openapi({ description: 'From due to sent' }),
        dns: ms.optional(),
        connect: ms.optional(),
        tls: ms.optional(),
        first_byte: ms.optional(),
        total: ms,
      })
      .openapi({ description: 'In milliseconds; what did not happen is absent' }),
    status: z.int().optional().openapi({ description: 'What the receiver answered' }),
    error: AttemptError.optional().openapi({ description: 'Where there was no answer' }),
    headers: z
      .array(z.tuple([z.string(), z.string()]).openapi({ minItems: 2, maxItems: 2 }))
      .optional()
      .openapi({
        description:
          'Of the answer, as names and values in the order in which they came. At most 2 KiB, without cookies and what is of the connection alone',
      }),
    excerpt: z.string().optional().openapi({ description: 'The beginning of the answer' }),
    excerpt_encoding: z
      .literal('base64')
      .optional()
      .openapi({ description: 'Where the answer is not UTF-8' }),
  })
  .openapi('Attempt');

/** What lists, the live stream and one delivery tell alike. */
export const Delivery = z
  .object({
    run_id: z.uuidv7(),
    project_id: z.string(),
    app: z.string(),
    target: target.openapi({ description: 'Where it goes, or went last' }),
    status_code: z.int().openapi({ description: 'What the caller got' }),
    state: z.enum(DELIVERY_STATES),
    reason: z.enum(FAILURE_REASONS).optional().openapi({ description: 'Where it has failed' }),
    round: z.int().min(1).openapi({ description: 'The first is automatic, each redelivery is another' }),
    attempt_count: z.int().min(0).openapi({ description: 'Attempts of all rounds that have ended' }),
    last_status: z.int().optional(),
    last_error: z.string().optional(),
    created_at: time.openapi({ description: 'When the call was answered' }),
    next_attempt_at: time.optional().openapi({ description: 'While it is pending' }),
    settled_at: time.optional().openapi({ description: 'Once it is not pending any more' }),
  })
  .openapi('Delivery');

const DeliveryRequest = z
  .object({
    method: z.literal('POST'),
    url: z.string(),
    headers: z.record(z.string(), z.string()).openapi({
      description: 'Of the last attempt, or the next where there was none; never the secret ones',
    }),
    signed: z.boolean().optional().openapi({ description: 'Absent where what is sealed cannot be opened' }),
    body: z.looseObject({}).nullable().optional().openapi({
      description: 'As it is stored; null where it is gone, absent where it is excluded',
    }),
  })
  .openapi('DeliveryRequest');

export const DeliveryDetail = Delivery.extend({
  own_target: target
    .optional()
    .openapi({ description: 'That of the call, where a round by hand went elsewhere' }),
  attempts: z.array(Attempt).openapi({ description: 'The oldest first' }),
  trace_id: z.string().optional().openapi({ description: 'Of the trace that the call belongs to' }),
  run: RunFacts.omit({ delivery: true })
    .optional()
    .openapi({ description: 'Where the call was asynchronous, while its run is kept' }),
  request: DeliveryRequest.optional().openapi({ description: 'Not in the answer to an action' }),
}).openapi('DeliveryDetail');

export const DeliveryList = z
  .object({ deliveries: z.array(Delivery), next_cursor: nextCursor })
  .openapi('DeliveryList', {
    description: 'A page may have fewer than were asked for, even none, and still be followed by another',
  });

export const RedeliverBody = z
  .strictObject({
    target: z.string('must be a URL').optional().openapi({
      description:
        'Another place for this round. `user:password@` becomes its Basic header; that of the call stays behind',
    }),
  })
  .openapi('RedeliverBody');

export const BulkBody = z
  .strictObject({
    filter: z
      .strictObject(FILTER)
      .refine(filter => Object.keys(filter).length > 0, 'must have at least one name')
      .openapi({ description: 'The names of the list of deliveries' }),
    dryRun: z.boolean('must be true or false').default(false).openapi({ description: 'Only counts' }),
  })
  .openapi('BulkBody');

export const Counted = z
  .object({
    matching: z.int().min(0),
    exact: z
      .boolean()
      .openapi({ description: 'False: there are more; counting takes a few seconds at most' }),
  })
  .openapi('Counted');

export const JobAccepted = z.object({ job_id: z.uuidv7(), total: z.int().min(0) }).openapi('JobAccepted');

export const Job = z
  .object({
    job_id: z.uuidv7(),
    state: z.enum(['running', 'done']),
    total: z
      .int()
      .min(0)
      .openapi({ description: 'How many there were when it began, as far as they were counted' }),
    seen: z.int().min(0).openapi({ description: 'How many of them have been looked at' }),
    redelivered: z.int().min(0).openapi({ description: 'How many of these have a new round' }),
    created_at: time,
    ended_at: time.optional(),
  })
  .openapi('Job');
