/**
 * `Idempotency-Key`: a name that the caller gives to an asynchronous call, so that it can be sent twice and
 * runs once. A fingerprint tells the same call sent again from another one under the same key.
 */
import { createHash, type Hash } from 'node:crypto';
import { headerValues, type RawHeaders } from '../exchange/headers.ts';
import { checkedKey, invalidKey } from '../idempotency-key.ts';

export function readIdempotencyKey(rawHeaders: RawHeaders): string | undefined {
  const [key, ...more] = headerValues(rawHeaders, 'idempotency-key');
  if (key === undefined) return undefined;
  if (more.length > 0) throw invalidKey('is given more than once');
  return checkedKey(key);
}

/** What makes a call the same, its body aside. */
export interface CallShape {
  readonly app: string;
  readonly method: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly target: string | undefined;
}

/** The fingerprint of a call, to be updated with its body as that comes. */
export function beginFingerprint({ app, method, path, query, target }: CallShape): Hash {
  // As JSON no two shapes have the same bytes, wherever one part ends and the next begins.
  const shape = JSON.stringify([app, method, path, query ?? null, target ?? null]);
  return createHash('sha256').update(shape);
}
