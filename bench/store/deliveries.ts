/**
 * What the bench of the stores puts in and expects to get back: a delivery as a call with a secret makes it,
 * and the outcome of its one attempt.
 */
import type { AttemptResult, Body, NewDelivery, Next } from '../../src/store/store.ts';
import { APP, answerOf, PROJECT, WEBHOOK_SECRET } from '../workload.ts';

export const SMALL = 1024;
export const LARGE = 100 * 1024;
export const TARGET = 'https://receiver.example/hook/7?a=b';
export const STATUS = 200;

const SECRET = Buffer.from(WEBHOOK_SECRET);
const EXCERPT = Buffer.from('{"received":true}');
/** As a common server behind a common proxy answers. */
const HEADERS = `Content-Type: application/json
Content-Length: 11
Server: cloudflare
CF-Ray: 9c1f0a2b3c4d5e6f-FRA
X-Request-Id: 0d5c9a1e-52e1-4b02-9a51-1f4a8d0c7e11
Strict-Transport-Security: max-age=31536000; includeSubDomains`;

/** What the secret takes when it is sealed. */
export const SEALED_BYTES = SECRET.length + 33;

export const DELIVERED: Next = { state: 'delivered' };

export function deliveryOf(runId: string, size: number): Omit<NewDelivery, 'owned'> {
  return {
    runId,
    projectId: PROJECT,
    app: APP,
    target: TARGET,
    statusCode: STATUS,
    createdAt: Date.now(),
    confidential: { secret: SECRET },
    body: { bytes: bodyOf(runId, size) },
  };
}

/** Each has its run id in it: one that belongs to another delivery is noticed. */
export function bodyOf(runId: string, size: number): Buffer {
  const head = Buffer.from(`{"run_id":"${runId}","result":`);
  return Buffer.concat([head, answerOf(size - head.length - 1), Buffer.from('}')]);
}

/** The first run id of a millisecond. */
export function runIdOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

export function firstAttempt(startedAt: number): AttemptResult {
  const timings = { queueMs: 0.25, dnsMs: 0.5, connectMs: 1.5, tlsMs: 8.25, firstByteMs: 20.5, totalMs: 21 };
  return { number: 1, startedAt, timings, status: STATUS, headers: HEADERS, excerpt: EXCERPT };
}

export function isBodyOf(runId: string, size: number, body: Body | undefined): boolean {
  return body !== undefined && 'bytes' in body && bodyOf(runId, size).equals(body.bytes);
}

export function isSecret(secret: Uint8Array | undefined): boolean {
  return secret !== undefined && SECRET.equals(secret);
}
