import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  serviceSignature,
  signDelivery,
  standardSignature,
  startSignature,
} from '../../src/delivery/signature.ts';

const input = { secret: Buffer.from('s3cret'), requestId: 'run-1', timestamp: 1_700_000_000 };

describe('signDelivery', () => {
  it('is HMAC-SHA256 over id, timestamp and body, as a receiver computes it from text', () => {
    const body = Buffer.from('{"run_id":"run-1","result":"größe"}');
    const expected = createHmac('sha256', 's3cret')
      .update(`run-1.1700000000.${body.toString('utf8')}`, 'utf8')
      .digest('hex');
    expect(signDelivery({ ...input, body })).toBe(expected);
  });

  it('takes the key as bytes, whether or not they are text', () => {
    const secret = Buffer.from([0xff, 0x00, 0xfe]);
    const expected = createHmac('sha256', secret).update('run-1.1700000000.{}').digest('hex');
    expect(signDelivery({ ...input, secret, body: Buffer.from('{}') })).toBe(expected);
  });

  it('does not depend on how a body is cut into pieces', () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 });
    fc.assert(
      fc.property(pieces, pieces => {
        const signature = startSignature(input);
        for (const piece of pieces) signature.update(piece);
        expect(signature.digest('hex')).toBe(signDelivery({ ...input, body: Buffer.concat(pieces) }));
      }),
    );
  });
});

describe('header values', () => {
  it('are the digest as hex, and as base64 for Standard Webhooks', () => {
    const digest = createHmac('sha256', 'k').update('x').digest();
    const hex = digest.toString('hex');
    expect(serviceSignature(hex)).toBe(`v1,${hex}`);
    expect(standardSignature(hex)).toBe(`v1,${digest.toString('base64')}`);
  });
});
