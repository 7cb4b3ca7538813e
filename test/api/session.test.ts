/**
 * Sessions as values: which cookies hold, until when, and for whom.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSessions, SESSION_SECONDS, sessionCookie } from '../../src/api/session.ts';
import { ManualClock } from '../support/clock.ts';

const adminToken = 'a token for the admin';
const clock = new ManualClock();
const sessions = createSessions({ adminToken, clock });
const cookie = (value: string): string => `afterword_session=${value}`;

describe('a session', () => {
  it('holds from its beginning until its end', () => {
    const clock = new ManualClock();
    const sessions = createSessions({ adminToken, clock });
    const value = sessions.begin();
    expect(sessions.isIn(cookie(value))).toBe(true);
    clock.advance(SESSION_SECONDS * 1000 - 1);
    expect(sessions.isIn(cookie(value))).toBe(true);
    clock.advance(1);
    expect(sessions.isIn(cookie(value))).toBe(false);
  });

  it('is found among other cookies, and beside a false one of its name', () => {
    const good = cookie(sessions.begin());
    const cases: readonly [string | undefined, boolean][] = [
      [`theme=dark; ${good}; a=b`, true],
      [`${cookie('x')}; ${good}`, true],
      [`${good};${cookie('1.x')}`, true],
      [`other_${good}`, false],
      [`theme="${good}"`, false],
      [good.replace('=', ' = '), false],
      [cookie(''), false],
      ['', false],
      [undefined, false],
    ];
    for (const [cookies, found] of cases) expect([cookies, sessions.isIn(cookies)]).toEqual([cookies, found]);
  });

  it('is good wherever the admin token is the same, and nowhere else', () => {
    const begun = cookie(sessions.begin());
    expect(createSessions({ adminToken, clock }).isIn(begun)).toBe(true);
    expect(createSessions({ adminToken: `${adminToken}.`, clock }).isIn(begun)).toBe(false);
  });

  it('tells nothing of the token', () => {
    expect(sessions.begin()).toMatch(/^\d+\.[\w-]{43}$/);
    expect(sessions.begin()).not.toContain(adminToken);
  });

  it('cannot be made, or prolonged, from another', () => {
    const value = sessions.begin();
    const [, code] = value.split('.');
    const changed = fc
      .tuple(fc.nat(value.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
      .map(([at, character]) => value.slice(0, at) + character + value.slice(at + 1));
    const prolonged = fc.nat().map(end => `${end}.${code}`);
    const forged = fc.oneof(fc.string(), fc.stringMatching(/^\d{1,12}\.[\w-]{43}$/), changed, prolonged);
    fc.assert(
      fc.property(forged, text => {
        fc.pre(text !== value && text.trim() !== value);
        expect(sessions.isIn(cookie(text))).toBe(false);
      }),
    );
  });
});

describe('its cookie', () => {
  it.each([
    ['1.x', false, 'afterword_session=1.x; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200'],
    ['1.x', true, 'afterword_session=1.x; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure'],
    ['', false, 'afterword_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0'],
    ['', true, 'afterword_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0; Secure'],
  ])('with "%s", secure: %s', (value, secure, expected) => {
    expect(sessionCookie(value, { secure })).toBe(expected);
  });
});
