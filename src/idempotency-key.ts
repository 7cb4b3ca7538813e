/**
 * What a caller may give as `Idempotency-Key`: a name of its own for a request, so that the request can be sent
 * twice and does its work once.
 */
import { Problem } from './errors.ts';

const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
const MAX_KEY = 255;

/** The key as it came. Throws a Problem where it is not acceptable. */
export function checkedKey(key: string): string {
  if (key === '') throw invalidKey('is empty');
  if (key.length > MAX_KEY) throw invalidKey(`is longer than ${MAX_KEY} characters`);
  if (!VISIBLE_ASCII.test(key)) throw invalidKey('holds other than visible ASCII characters');
  return key;
}

export function invalidKey(what: string): Problem {
  return new Problem('invalid_idempotency_key', `Idempotency-Key ${what}`);
}
