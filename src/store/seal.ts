/**
 * Secrets at rest: AES-256-GCM with a random nonce, the run id as associated data, and the id of the key
 * kept beside the sealed bytes. What was sealed for one run opens for no other.
 *
 * Sealed bytes: nonce (12), ciphertext, tag (16). Plain bytes of a delivery: a flag for each part that is
 * present, the length of the secret (32 bits, big-endian), the secret, the authorization in UTF-8; of the
 * headers of a request: JSON.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { Confidential } from './store.ts';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 5;
const HAS_SECRET = 1;
const HAS_AUTHORIZATION = 2;

/** The newest key seals; all of them open. */
export interface Keyring {
  /** The id of the key that seals. */
  readonly newest: string;
  /** Keys by their id. */
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

export interface Sealed {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** The first of `keys` seals. Each is 32 bytes. */
export function createKeyring(keys: readonly Uint8Array[]): Keyring {
  const byId = new Map<string, Uint8Array>();
  for (const key of keys) {
    if (key.byteLength !== KEY_BYTES) throw new RangeError(`an encryption key has ${KEY_BYTES} bytes`);
    // A copy of its own: a view of a pooled buffer would carry its neighbours along to other threads.
    byId.set(keyIdOf(key), new Uint8Array(key));
  }
  const [newest] = byId.keys();
  if (newest === undefined) throw new RangeError('a keyring needs a key');
  return { newest, keys: byId };
}

/** Undefined when there is nothing to seal. */
export function seal(confidential: Confidential, runId: string, keyring: Keyring): Sealed | undefined {
  const { secret, authorization } = confidential;
  if (secret === undefined && authorization === undefined) return undefined;
  return encrypt(encode(confidential), runId, keyring);
}

/** Undefined when the key is unknown, or the bytes are not what was sealed for this run. */
export function unseal(sealed: Sealed, runId: string, keyring: Keyring): Confidential | undefined {
  const plain = decrypt(sealed, runId, keyring);
  return plain && decode(plain);
}

/** The headers of a run's request, a flat list of names and values. */
export function sealHeaders(headers: readonly string[], runId: string, keyring: Keyring): Sealed {
  return encrypt(Buffer.from(JSON.stringify(headers)), headersOf(runId), keyring);
}

/** Undefined when the key is unknown, or the bytes are not what was sealed for this run. */
export function unsealHeaders(sealed: Sealed, runId: string, keyring: Keyring): string[] | undefined {
  const plain = decrypt(sealed, headersOf(runId), keyring);
  return plain && (JSON.parse(plain.toString()) as string[]);
}

/** Other associated data than the secret has, so that neither opens in the other's place. */
function headersOf(runId: string): string {
  return `${runId} headers`;
}

function encrypt(plain: Uint8Array, associated: string, keyring: Keyring): Sealed {
  const key = keyring.keys.get(keyring.newest)!;
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(associated));
  const text = cipher.update(plain);
  cipher.final();
  return { keyId: keyring.newest, sealed: Buffer.concat([nonce, text, cipher.getAuthTag()]) };
}

function decrypt({ keyId, sealed }: Sealed, associated: string, keyring: Keyring): Buffer | undefined {
  const key = keyring.keys.get(keyId);
  if (key === undefined || sealed.byteLength < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(associated));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return plain;
}

/** Names a key without telling anything of it. */
function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8);
}

function encode({ secret, authorization }: Confidential): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = (secret ? HAS_SECRET : 0) | (authorization === undefined ? 0 : HAS_AUTHORIZATION);
  head.writeUInt32BE(secret?.byteLength ?? 0, 1);
  return Buffer.concat([head, secret ?? new Uint8Array(), Buffer.from(authorization ?? '')]);
}

function decode(plain: Buffer): Confidential {
  const flags = plain[0]!;
  const end = HEAD_BYTES + plain.readUInt32BE(1);
  return {
    ...(flags & HAS_SECRET && { secret: new Uint8Array(plain.subarray(HEAD_BYTES, end)) }),
    ...(flags & HAS_AUTHORIZATION && { authorization: plain.toString('utf8', end) }),
  };
}
