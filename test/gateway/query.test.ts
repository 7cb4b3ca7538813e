/** The service's own parameters of a query; what becomes of `webhookEndpoint` is told in endpoint.test.ts. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Problem } from '../../src/errors.ts';
import { asksForAsync, readQuery } from '../../src/gateway/query.ts';

const HOOK = 'webhookEndpoint=http://x.example/';

describe('async=true', () => {
  it.each([
    ['async=true', undefined],
    ['async=true&b=2', 'b=2'],
    ['a=1&async=true', 'a=1'],
    ['a=1&async=true&b=2', 'a=1&b=2'],
    ['&async=true&', '&'],
    ['%61sync=true&b', 'b'],
    ['a&%61%73%79%6E%63=true', 'a'],
    ['async=%74rue', undefined],
    ['a=%zz&async=true&b=+%20', 'a=%zz&b=+%20'],
  ])('in %s asks for an asynchronous call, and leaves %s', (query, rest) => {
    expect(readQuery(query)).toEqual({ rest, webhookEndpoint: undefined, async: true });
    expect(asksForAsync(query)).toBe(true);
  });

  it.each([
    [`async=true&${HOOK}`, undefined],
    [`${HOOK}&async=true`, undefined],
    [`a&async=true&${HOOK}&b`, 'a&b'],
    [`${HOOK}&a&async=true&b`, 'a&b'],
    [`a&${HOOK}&&async=true`, 'a&'],
  ])('goes along with a webhookEndpoint: %s leaves %s', (query, rest) => {
    expect(readQuery(query)).toEqual({ rest, webhookEndpoint: 'http://x.example/', async: true });
  });

  it.each(['async=true&async=true', 'async=false&a&async=true', 'async=true&async', '%61sync=1&async=true'])(
    'given more than once is refused: %s',
    query => {
      expect(() => readQuery(query)).toThrow(new Problem('invalid_query', 'async is given more than once'));
      expect(asksForAsync(query)).toBe(true);
    },
  );
});

describe('a query without it', () => {
  it.each([
    undefined,
    '',
    'a=1',
    'async',
    'async=',
    'async=false',
    'async=1',
    'async=True',
    'async=TRUE',
    'async=true%20',
    'async=%zz',
    'async=1&async=2&async',
    'Async=true',
    'asynch=true&xasync=true&async[]=true',
    'a=async=true&b=async',
    '%61syn=true',
    'a;async=true',
  ])('stays as it is: %s', query => {
    expect(readQuery(query)).toEqual({ rest: query, webhookEndpoint: undefined, async: false });
    expect(asksForAsync(query)).toBe(false);
  });

  it('loses its webhookEndpoint alone', () => {
    expect(readQuery(`async=false&${HOOK}&async=1`).rest).toBe('async=false&async=1');
  });
});

it('keeps every other byte: as if split at & and joined without the parameters', () => {
  const other = fc.string({ unit: fc.constantFrom('a', '=', '%', '4', '+', ';', '?', 's'), maxLength: 8 });
  const place = fc.nat();
  fc.assert(
    fc.property(fc.array(other, { maxLength: 5 }), place, place, (others, one, two) => {
      const parts = [...others];
      parts.splice(one % (parts.length + 1), 0, 'async=true');
      parts.splice(two % (parts.length + 1), 0, HOOK);
      expect(readQuery(parts.join('&')).rest).toBe(others.length === 0 ? undefined : others.join('&'));
    }),
  );
});
