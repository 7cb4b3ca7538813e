/**
 * The request of a delivery as it is shown: what is sent, without what is secret in it. The signature and the
 * credentials of the target are left out.
 */
import type { z } from '@hono/zod-openapi';
import type { DeliveryRecord } from '../store/store.ts';
import type { DeliveryDetail } from './delivery-contract.ts';

type Detail = z.output<typeof DeliveryDetail>;
type ShownRequest = Omit<NonNullable<Detail['request']>, 'body'>;

export interface DeliveryHeadersOptions {
  readonly userAgent: string;
  /** Whether a project wants the Standard Webhooks headers. */
  readonly standardWebhooks: (projectId: string) => boolean;
}

export interface DeliveryHeaders {
  requestOf(delivery: DeliveryRecord): ShownRequest;
}

export function createDeliveryHeaders({
  userAgent,
  standardWebhooks,
}: DeliveryHeadersOptions): DeliveryHeaders {
  return {
    requestOf(delivery) {
      const { runId, projectId, target, otherTarget, signed } = delivery;
      const last = delivery.attempts.at(-1);
      const seconds = last && String(Math.floor(last.startedAt / 1000));
      return {
        method: 'POST',
        url: otherTarget ?? target,
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': userAgent,
          'X-Request-Id': runId,
          'X-Service-Webhook-Attempt': String(last?.number ?? 1),
          ...(seconds !== undefined && { 'X-Service-Webhook-Timestamp': seconds }),
          ...(standardWebhooks(projectId) && {
            'webhook-id': runId,
            ...(seconds !== undefined && { 'webhook-timestamp': seconds }),
          }),
        },
        ...(signed !== undefined && { signed }),
      };
    },
  };
}

/** The beginning of a detail whose last part is the body of the request, without the brace of that. */
export function requestOpening(detail: Detail, request: ShownRequest): string {
  const known = JSON.stringify(detail).slice(0, -1);
  return `${known},"request":${JSON.stringify(request).slice(0, -1)},"body":{`;
}
