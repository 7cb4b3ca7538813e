/**
 * The signature of a delivery: HMAC-SHA256 over `<request id>.<timestamp>.<body>`, keyed by the bytes of
 * `X-Webhook-Secret`. Both header families of a delivery carry the same digest, one as hex, one as base64.
 */
import { createHmac, type Hmac } from 'node:crypto';

export interface SigningInput {
  readonly secret: Uint8Array;
  readonly requestId: string;
  /** Unix seconds, as the header carries them. */
  readonly timestamp: number;
}

/** For a body that comes in pieces: `update` with each of them, then `digest('hex')`. */
export function startSignature({ secret, requestId, timestamp }: SigningInput): Hmac {
  return createHmac('sha256', secret).update(`${requestId}.${timestamp}.`);
}

/** The hex digest for a body in memory. */
export function signDelivery({ body, ...input }: SigningInput & { readonly body: Uint8Array }): string {
  return startSignature(input).update(body).digest('hex');
}

/** The value of `X-Service-Webhook-Signature`. */
export function serviceSignature(hex: string): string {
  return `v1,${hex}`;
}

/** The value of `webhook-signature` (Standard Webhooks), from the same digest. */
export function standardSignature(hex: string): string {
  return `v1,${Buffer.from(hex, 'hex').toString('base64')}`;
}
