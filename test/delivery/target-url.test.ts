/**
 * The URL of a target: what is one, and where its user information goes.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { readTargetUrl } from '../../src/delivery/target-url.ts';

it.each([
  ['https://a.example', 'https://a.example/', undefined],
  ['HTTP://A.example:80/x?y=1#z', 'http://a.example/x?y=1', undefined],
  ['http://u@a.example/', 'http://a.example/', 'u:'],
  ['http://:p@a.example/', 'http://a.example/', ':p'],
  ['http://%C3%A9:p%3Aq@a.example/', 'http://a.example/', 'é:p:q'],
])('%s', (value, href, credentials) => {
  const target = readTargetUrl(value);
  if ('wrong' in target) throw new Error(target.wrong);
  const basic = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
  expect([target.url.href, target.authorization]).toEqual([href, basic]);
});

it.each([
  ['', 'is empty'],
  ['ftp://a.example/', 'is not an absolute http or https URL'],
  ['http:a.example', 'is not an absolute http or https URL'],
  ['http:///a.example', 'is not an absolute http or https URL'],
  ['//a.example', 'is not an absolute http or https URL'],
  ['http://a.example/\tx', 'holds white space or control characters'],
  ['http://[::x]/', 'is not a valid URL'],
  ['http://a.example/'.padEnd(2049, 'x'), 'is longer than 2048 characters'],
  ['http://%ff@a.example/', 'holds a user name or password that is not percent-encoded UTF-8'],
  ['http://a%3Ab:c@a.example/', 'holds a user name or password that a Basic header cannot carry'],
])('%j is none', (value, wrong) => {
  expect(readTargetUrl(value)).toEqual({ wrong });
});

it('what is wrong is told without repeating any of it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 12 }), secret => {
      const target = readTargetUrl(`http://u:${encodeURIComponent(secret)}@a b.example/`);
      expect('wrong' in target && !target.wrong.includes(secret)).toBe(true);
    }),
  );
});
