/**
 * The key that a project's configuration names. Which algorithm counts follows from the key alone; the one
 * that a token names can only agree with it or be refused.
 */
import { createPublicKey, createSecretKey, type KeyObject, type webcrypto } from 'node:crypto';
import type { CryptoKey } from 'jose';
import type { ProjectConfig } from '../config/config.ts';
import { UsageError } from '../errors.ts';

const HMAC = { name: 'HMAC', hash: 'SHA-256' };

export type Algorithm = 'HS256' | 'RS256' | 'ES256' | 'EdDSA';

export interface VerifyingKey {
  readonly key: CryptoKey | KeyObject;
  readonly algorithm: Algorithm;
}

/** The secret or the public key of a project. Throws a UsageError where it cannot serve. */
export function configuredKey({ id, jwt }: Pick<ProjectConfig, 'id' | 'jwt'>): VerifyingKey {
  try {
    if (jwt.secret !== undefined) return importSecret(jwt.secret);
    if (jwt.publicKey !== undefined) return importPublicKey(jwt.publicKey);
    throw new Error('there is none');
  } catch (error) {
    throw new UsageError(`The JWT key of project ${id} cannot be used: ${(error as Error).message}`);
  }
}

/** Imported once: given bytes, jose would import them for every token. */
function importSecret(secret: string): VerifyingKey {
  const key = createSecretKey(secret, 'utf8').toCryptoKey(HMAC, false, ['verify']);
  return { key, algorithm: 'HS256' };
}

function importPublicKey(text: string): VerifyingKey {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{')) {
    // Also given a private key or a certificate, createPublicKey would find a public one in it.
    if (!trimmed.includes('-----BEGIN PUBLIC KEY-----')) throw new Error('it is neither PEM (SPKI) nor JWK');
    const key = createPublicKey(trimmed);
    return { key, algorithm: algorithmOf(key) };
  }
  const jwk = JSON.parse(trimmed) as webcrypto.JsonWebKey;
  if (jwk.d !== undefined) throw new Error('it is a private key');
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const algorithm = algorithmOf(key);
  if (jwk.alg !== undefined && jwk.alg !== algorithm) throw new Error(`its "alg" must be ${algorithm}`);
  if (jwk.use !== undefined && jwk.use !== 'sig') throw new Error('its "use" must be "sig"');
  return { key, algorithm };
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): Algorithm {
  // RFC 7518, 3.3: 2048 bits or more.
  if (type === 'rsa' && details?.modulusLength !== undefined && details.modulusLength >= 2048) return 'RS256';
  if (type === 'ec' && details?.namedCurve === 'prime256v1') return 'ES256';
  if (type === 'ed25519') return 'EdDSA';
  throw new Error('it must be RSA of at least 2048 bits, EC P-256 or Ed25519');
}
