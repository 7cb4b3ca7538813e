/**
 * The body of a delivery is cut out of the answer as it is, whatever else stands in it.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestOpening } from '../../../src/api/delivery-request.ts';
import { type DeliveryDetails, partsOf } from '../../../src/commands/deliveries/answer.ts';
import { UNKNOWN } from './delivering.ts';

/** Texts that look like what is searched for. */
const text = fc.oneof(
  fc.string(),
  fc.constantFrom(',"request":{', ',"body":', '}}', '\\', '"', ',"request":{"a":1,"body":null}}'),
);
const request = { method: 'POST', url: 'http://a.example/', headers: { 'X-Request-Id': UNKNOWN } } as const;

it('gives the bytes of any body, behind any details', () => {
  fc.assert(
    fc.property(text, text, fc.json(), fc.boolean(), (target, excerpt, result, signed) => {
      const details = { run_id: UNKNOWN, target, attempts: [{ excerpt }] } as unknown as DeliveryDetails;
      const body = `{ "result":${result}, "n":12345678901234567890}`;
      const opening = requestOpening(details, { ...request, url: `http://a.example/${target}`, signed });
      const parts = partsOf(Buffer.from(`${opening}${body.slice(1)}}}`));
      expect(parts?.body?.toString()).toBe(body);
      expect(parts?.details).toMatchObject({ ...details, request: { signed, body: null } });
    }),
  );
});

describe('of another answer', () => {
  it('tells that the body is gone', () => {
    const answer = { run_id: UNKNOWN, request: { ...request, body: null } };
    expect(partsOf(Buffer.from(JSON.stringify(answer)))).toEqual({
      kind: 'delivery',
      details: answer,
      body: undefined,
    });
  });

  it.each([
    '',
    '{}',
    '[]',
    '<h1>Welcome</h1>',
    ',"request":{,"body":}}',
    '{"a":1,"request":{"b":1,"body":{}}',
  ])('gives nothing of %j', answer => {
    expect(partsOf(Buffer.from(answer))).toBeUndefined();
  });
});
