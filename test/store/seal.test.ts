import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyring, seal, sealHeaders, unseal, unsealHeaders } from '../../src/store/seal.ts';
import type { Confidential } from '../../src/store/store.ts';
import { runIdAt } from './samples.ts';

const keyring = createKeyring([randomBytes(32)]);
const runId = runIdAt(1_800_000_000_000);
const secret = Buffer.from('a secret of the caller');

const confidentials: fc.Arbitrary<Confidential> = fc.record(
  {
    secret: fc.uint8Array({ maxLength: 1_024 }),
    authorization: fc.string({ unit: 'binary', maxLength: 200 }),
  },
  { requiredKeys: [] },
);

describe('seal', () => {
  it('opens to what was sealed, and to nothing when there was nothing', () => {
    fc.assert(
      fc.property(confidentials, confidential => {
        const sealed = seal(confidential, runId, keyring);
        expect(sealed === undefined).toBe(Object.keys(confidential).length === 0);
        expect(sealed ? unseal(sealed, runId, keyring) : {}).toEqual(confidential);
      }),
    );
  });

  it('does not open after a change of any bit, or cut short', () => {
    const { keyId, sealed } = seal({ secret }, runId, keyring)!;
    for (let bit = 0; bit < sealed.byteLength * 8; bit += 1) {
      const changed = Uint8Array.from(sealed);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(unseal({ keyId, sealed: changed }, runId, keyring)).toBeUndefined();
    }
    for (let length = 0; length < sealed.byteLength; length += 1) {
      expect(unseal({ keyId, sealed: sealed.subarray(0, length) }, runId, keyring)).toBeUndefined();
    }
  });

  it('does not open for another run', () => {
    const sealed = seal({ secret }, runId, keyring)!;
    expect(unseal(sealed, runIdAt(1_800_000_000_000), keyring)).toBeUndefined();
  });

  it('seals with the newest key and opens with every one', () => {
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const before = seal({ secret }, runId, createKeyring([older]))!;
    const both = createKeyring([newer, older]);
    const after = seal({ secret }, runId, both)!;
    expect(after.keyId).not.toBe(before.keyId);
    expect(unseal(before, runId, both)).toEqual({ secret: new Uint8Array(secret) });
    expect(unseal(after, runId, both)).toEqual({ secret: new Uint8Array(secret) });
    expect(unseal(after, runId, createKeyring([older]))).toBeUndefined();
  });

  it('never seals alike twice, and shows nothing of the secret', () => {
    const [one, two] = [seal({ secret }, runId, keyring)!, seal({ secret }, runId, keyring)!];
    expect(Buffer.compare(one.sealed, two.sealed)).not.toBe(0);
    expect(Buffer.from(one.sealed).includes(secret)).toBe(false);
  });

  it.each([0, 16, 31, 33])('refuses a key of %d bytes', length => {
    expect(() => createKeyring([randomBytes(length)])).toThrow('32 bytes');
  });
});

describe('sealed headers', () => {
  it('open to what was sealed', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), headers => {
        expect(unsealHeaders(sealHeaders(headers, runId, keyring), runId, keyring)).toEqual(headers);
      }),
    );
  });

  it('open for no other run, with no other key, and after no change', () => {
    const sealed = sealHeaders(['cookie', 'a=1'], runId, keyring);
    expect(unsealHeaders(sealed, runIdAt(1_800_000_000_000), keyring)).toBeUndefined();
    expect(unsealHeaders(sealed, runId, createKeyring([randomBytes(32)]))).toBeUndefined();
    const changed = Uint8Array.from(sealed.sealed);
    changed[20]! ^= 1;
    expect(unsealHeaders({ ...sealed, sealed: changed }, runId, keyring)).toBeUndefined();
    expect(
      unsealHeaders({ ...sealed, sealed: sealed.sealed.subarray(0, 10) }, runId, keyring),
    ).toBeUndefined();
  });

  it('do not open as a secret of the same run, nor a secret as headers', () => {
    expect(unseal(sealHeaders(['a', '1'], runId, keyring), runId, keyring)).toBeUndefined();
    expect(unsealHeaders(seal({ secret }, runId, keyring)!, runId, keyring)).toBeUndefined();
  });
});
