/**
 * What is kept of a receiver's answer for those who look at the attempt. It is readable at rest: where a receiver
 * repeats what is sealed, that part of its answer is not kept.
 */
import type { Confidential } from '../store/store.ts';
import type { Answer } from './answer.ts';

export interface Kept {
  /** In the form of answer-headers.ts. */
  readonly headers?: string;
  /** The beginning of the body, as it came. */
  readonly excerpt?: Uint8Array;
}

/** Shorter ones stand in any text by chance. */
const TELLING_BYTES = 6;

export function keptOf({ headers, excerpt }: Answer, confidential: Confidential): Kept {
  const secrets = secretsOf(confidential);
  const tells = (text: Buffer) => secrets.some(secret => text.includes(secret));
  return {
    ...(headers !== undefined && !tells(Buffer.from(headers)) && { headers }),
    ...(excerpt !== undefined && !tells(viewOf(excerpt)) && { excerpt }),
  };
}

function secretsOf({ secret, authorization }: Confidential): Array<Uint8Array | string> {
  const basic = authorization?.slice('Basic '.length);
  const password =
    basic &&
    Buffer.from(basic, 'base64')
      .toString()
      .replace(/^[^:]*:/, '');
  return [secret, basic, password].filter(each => each !== undefined).filter(isTelling);
}

function isTelling({ length }: Uint8Array | string): boolean {
  return length >= TELLING_BYTES;
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
