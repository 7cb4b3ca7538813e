import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseEncryptionKey, publicKeyFault } from '../../src/config/keys.ts';

describe('the encryption key', () => {
  const bytes = randomBytes(32);
  it.each(['hex', 'base64', 'base64url'] as const)('is read as %s', encoding => {
    expect(Buffer.from(parseEncryptionKey(bytes.toString(encoding))!)).toEqual(bytes);
  });
  it('is read as hex in capitals and as base64 without padding', () => {
    expect(Buffer.from(parseEncryptionKey(bytes.toString('hex').toUpperCase())!)).toEqual(bytes);
    expect(Buffer.from(parseEncryptionKey(bytes.toString('base64').replace('=', ''))!)).toEqual(bytes);
  });
  it.each([
    ['nothing', ''],
    ['31 bytes', randomBytes(31).toString('base64')],
    ['33 bytes', randomBytes(33).toString('base64')],
    ['63 hex digits', 'a'.repeat(63)],
    ['two alphabets', `+_${'a'.repeat(41)}=`],
    ['a password', 'correct horse battery staple'],
  ])('is not %s', (_, text) => expect(parseEncryptionKey(text)).toBeUndefined());
});

describe('a public key', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ed = generateKeyPairSync('ed25519');
  const pem = (key: typeof rsa.publicKey) => key.export({ type: 'spki', format: 'pem' });
  const jwk = (key: typeof rsa.publicKey, more: object = {}) =>
    JSON.stringify({ ...key.export({ format: 'jwk' }), ...more });

  it.each([
    ['RSA PEM', pem(rsa.publicKey)],
    ['EC PEM', pem(ec.publicKey)],
    ['Ed25519 PEM', pem(ed.publicKey)],
    ['RSA JWK', jwk(rsa.publicKey)],
    ['EC JWK', jwk(ec.publicKey, { alg: 'ES256', use: 'sig', kid: 'one' })],
    ['Ed25519 JWK', jwk(ed.publicKey)],
  ])('is taken as %s', (_, text) => expect(publicKeyFault(text)).toBeUndefined());

  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const x25519 = generateKeyPairSync('x25519');
  it.each([
    ['a private PEM', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }), /private key/],
    ['a private PKCS 1 PEM', rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }), /private key/],
    ['a private EC PEM', ec.privateKey.export({ type: 'sec1', format: 'pem' }), /private key/],
    ['a private JWK', jwk(ec.privateKey), /private or secret/],
    ['a secret JWK', '{"kty":"oct","k":"AAAA"}', /private or secret/],
    ['a set of keys', '{"keys":[]}', /jwksUrl/],
    ['PKCS 1', rsa.publicKey.export({ type: 'pkcs1', format: 'pem' }), /BEGIN PUBLIC KEY/],
    ['a broken PEM', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', /not a readable PEM/],
    ['a broken JWK', '{"kty":"RSA"}', /not a readable JWK/],
    ['a list', '[]', /neither/],
    ['text', 'hello', /neither/],
    ['nothing', '', /neither/],
    ['RSA of 1024 bits', pem(small.publicKey), /2048/],
    ['EC P-384', pem(p384.publicKey), /P-256/],
    ['X25519', jwk(x25519.publicKey), /Ed25519/],
    ['an RSA key for RS512', jwk(rsa.publicKey, { alg: 'RS512' }), /RS256/],
    ['a key for encryption', jwk(rsa.publicKey, { use: 'enc' }), /signatures/],
  ])('is not %s', (_, text, fault) => expect(publicKeyFault(text)).toMatch(fault));
});
