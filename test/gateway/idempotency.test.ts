import { describe, expect, it } from 'vitest';
import { Problem } from '../../src/errors.ts';
import { beginFingerprint, type CallShape, readIdempotencyKey } from '../../src/gateway/idempotency.ts';

describe('an Idempotency-Key', () => {
  it.each(['k', '"quoted"', '!~', 'x'.repeat(255)])('may be %s', key => {
    expect(readIdempotencyKey(['Host', 'h', 'IDEMPOTENCY-key', key])).toBe(key);
  });

  it('is undefined where there is none', () => {
    expect(readIdempotencyKey(['Idempotency-Keys', 'k', 'X', 'Idempotency-Key'])).toBeUndefined();
  });

  it.each([
    [[''], 'is empty'],
    [['x'.repeat(256)], 'is longer than 255 characters'],
    [['a b'], 'holds other than visible ASCII characters'],
    [['a\tb'], 'holds other than visible ASCII characters'],
    [['\xe9'], 'holds other than visible ASCII characters'],
    [['k', 'k'], 'is given more than once'],
  ])('%j is refused: it %s', (values, why) => {
    const headers = values.flatMap(value => ['Idempotency-Key', value]);
    expect(() => readIdempotencyKey(headers)).toThrow(
      new Problem('invalid_idempotency_key', `Idempotency-Key ${why}`),
    );
  });
});

describe('the fingerprint of a call', () => {
  const CALL: CallShape = { app: 'a', method: 'POST', path: '/p', query: 'q', target: 'http://t/' };
  const digest = (shape: Partial<CallShape>, body = 'body'): string =>
    beginFingerprint({ ...CALL, ...shape })
      .update(body)
      .digest('hex');

  it('is 32 bytes, and the same for the same call', () => {
    expect(digest({})).toMatch(/^[0-9a-f]{64}$/);
    expect(digest({})).toBe(digest({}));
  });

  it.each<[string, Partial<CallShape>, string?]>([
    ['app', { app: 'b' }],
    ['method', { method: 'PUT' }],
    ['path', { path: '/p/' }],
    ['query', { query: 'q&' }],
    ['query, empty', { query: '' }],
    ['query, none', { query: undefined }],
    ['target', { target: 'http://u/' }],
    ['target, none', { target: undefined }],
    ['body', {}, 'other'],
    ['place where one part ends', { path: '/pq', query: '' }],
  ])('differs by the %s', (_what, shape, body) => {
    expect(digest(shape, body)).not.toBe(digest({}));
  });
});
