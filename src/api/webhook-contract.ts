/**
 * The request of a delivery, as the OpenAPI document describes it to those who receive it.
 */
import { type RouteConfig, z } from '@hono/zod-openapi';

const DeliveryBody = z
  .looseObject({
    run_id: z.uuidv7(),
    project_id: z.string(),
    app: z.string(),
    status_code: z.int().openapi({ description: 'What the caller got' }),
    run_time_ms: z.number(),
    result: z
      .unknown()
      .optional()
      .openapi({ description: 'What the app answered: any JSON, text, or base64' }),
    result_encoding: z.literal('base64').optional(),
    result_omitted: z.object({ bytes: z.int(), limit: z.int() }).optional(),
    content_type: z.string().optional().openapi({ description: 'Of the answer, where it is not JSON' }),
    content_encoding: z.string().optional(),
    error: z
      .object({ type: z.string(), message: z.string() })
      .optional()
      .openapi({ description: 'In place of a result' }),
    timestamp: z.iso.datetime().openapi({ description: 'When the answer was complete' }),
  })
  .openapi('DeliveryBody');

const DeliveryHeaders = z.object({
  'X-Request-Id': z.uuidv7().openapi({ description: 'The run id; the same at every attempt' }),
  'X-Service-Webhook-Timestamp': z.string().openapi({ description: 'Unix seconds of this attempt' }),
  'X-Service-Webhook-Attempt': z.string().openapi({ description: 'From 1, within a round' }),
  'X-Service-Webhook-Signature': z.string().optional().openapi({
    description:
      '`v1,` and the hex HMAC-SHA256 of `<X-Request-Id>.<X-Service-Webhook-Timestamp>.<body>`, where the call gave a secret',
  }),
  traceparent: z.string().optional().openapi({ description: 'Where tracing is on' }),
  'webhook-id': z
    .string()
    .optional()
    .openapi({ description: 'Standard Webhooks, where the project wants it' }),
  'webhook-timestamp': z.string().optional(),
  'webhook-signature': z.string().optional(),
});

export const deliveryWebhook: RouteConfig = {
  method: 'post',
  path: 'delivery',
  operationId: 'receiveDelivery',
  summary: 'The answer of a call, sent to its `webhookEndpoint`',
  request: {
    headers: DeliveryHeaders,
    body: { required: true, content: { 'application/json': { schema: DeliveryBody } } },
  },
  responses: {
    '2XX': { description: 'It is delivered' },
    404: { description: 'It is tried again, as it is after a 3xx and where there is no answer' },
    '4XX': { description: 'It has failed, and is not tried again' },
    '5XX': { description: 'It has failed, and is not tried again' },
  },
};
