/**
 * Keys as they are given in the configuration: the key that seals secrets at rest, and the public keys that
 * tokens are checked with. What is wrong with one is told without showing any of it.
 */
import { createPublicKey, type KeyObject, type webcrypto } from 'node:crypto';

export const MAKE_KEY = 'openssl rand -base64 32';

const HEX = /^[0-9a-f]{64}$/i;
// 32 bytes are 43 characters and one of padding.
const BASE64 = /^(?:[A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?$/;

/** 32 bytes, or undefined where the text is not such a key. Node reads both alphabets as `base64`. */
export function parseEncryptionKey(text: string): Uint8Array | undefined {
  if (HEX.test(text)) return new Uint8Array(Buffer.from(text, 'hex'));
  return BASE64.test(text) ? new Uint8Array(Buffer.from(text, 'base64')) : undefined;
}

/** What keeps this text of a PEM or JWK file from being a key that tokens can be checked with. */
export function publicKeyFault(text: string): string | undefined {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
    return 'is a private key; give its public half (openssl pkey -in FILE -pubout)';
  }
  if (text.includes('-----BEGIN ')) return pemFault(text);
  return jwkFault(text);
}

function pemFault(text: string): string | undefined {
  // Node would also find a public key in a certificate.
  if (!text.includes('-----BEGIN PUBLIC KEY-----')) {
    return 'is PEM of another kind; expected -----BEGIN PUBLIC KEY-----';
  }
  try {
    return kindFault(createPublicKey(text));
  } catch {
    return 'is not a readable PEM public key';
  }
}

function jwkFault(text: string): string | undefined {
  const jwk = parseObject(text);
  if (jwk === undefined) return 'is neither a PEM public key nor a JWK';
  if ('keys' in jwk) return 'is a set of keys; give one JWK, or serve the set and give jwksUrl';
  if ('d' in jwk || 'k' in jwk) return 'is a private or secret JWK; give its public half';
  try {
    return kindFault(createPublicKey({ key: jwk, format: 'jwk' }), jwk);
  } catch {
    return 'is not a readable JWK';
  }
}

function kindFault(key: KeyObject, jwk: webcrypto.JsonWebKey = {}): string | undefined {
  const algorithm = algorithmOf(key);
  if (algorithm === undefined) {
    return 'is of a kind that is not supported; expected RSA of at least 2048 bits, EC P-256 or Ed25519';
  }
  if (jwk.alg !== undefined && jwk.alg !== algorithm) return `is not for ${algorithm}, as its "alg" says`;
  return jwk.use === undefined || jwk.use === 'sig' ? undefined : 'is not for signatures, as its "use" says';
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) {
  if (type === 'ed25519') return 'EdDSA';
  if (type === 'ec' && details?.namedCurve === 'prime256v1') return 'ES256';
  // RFC 7518, section 3.3.
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048 ? 'RS256' : undefined;
}

function parseObject(text: string): webcrypto.JsonWebKey | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
