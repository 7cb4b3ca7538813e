/**
 * `Idempotency-Key` of what is done by hand: the key, and a digest of what came with it.
 */
import { createHash } from 'node:crypto';
import { checkedKey } from '../idempotency-key.ts';
import type { Idempotency } from '../store/runs.ts';

/** `shape` is whatever makes a request the same. */
export function idempotencyOf(key: string | undefined, shape: readonly unknown[]): Idempotency | undefined {
  if (key === undefined) return undefined;
  return { key: checkedKey(key), fingerprint: createHash('sha256').update(JSON.stringify(shape)).digest() };
}
