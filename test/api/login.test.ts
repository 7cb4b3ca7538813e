/**
 * Logging in on a real listener: the admin token for a cookie, what the cookie then opens, and what it does not,
 * with requests that another site makes, forged and expired ones, and guesses.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { SESSION_SECONDS } from '../../src/api/session.ts';
import { ADMIN_TOKEN, openAdmin, outcome, PROJECT, PROJECT_TOKEN, send } from '../support/admin.ts';
import { ManualClock } from '../support/clock.ts';
import { captureLog } from '../support/log.ts';
import { startService } from '../support/service.ts';

const API = '/api/v1/deliveries';
const JSON_BODY = { 'content-type': 'application/json' };
const BEARER = { authorization: `Bearer ${ADMIN_TOKEN}` };

const logIn = (base: string, token = ADMIN_TOKEN, headers: Readonly<Record<string, string>> = {}) =>
  send(`${base}/session`, {
    method: 'POST',
    headers: { ...JSON_BODY, origin: base, ...headers },
    body: JSON.stringify({ token }),
  });

/** What a browser would send from then on. */
async function cookieOf(base: string): Promise<string> {
  const { headers } = await logIn(base);
  return headers['set-cookie']![0]!.split(';', 1)[0]!;
}

const told = async (base: string, cookie?: string) => {
  const { text } = await send(`${base}/session`, cookie === undefined ? {} : { headers: { cookie } });
  return JSON.parse(text) as Record<string, unknown>;
};

describe('a session', () => {
  it('is told of', async () => {
    const clock = new ManualClock(Date.parse('2027-01-15T08:00:00Z'));
    const base = await openAdmin({ clock });
    const answer = await send(`${base}/session`);
    expect([answer.status, answer.headers['content-type'], answer.headers['cache-control']]).toEqual([
      200,
      'application/json',
      'no-store',
    ]);
    const known = { login_required: true, version: '0.0.0-test', now: '2027-01-15T08:00:00.000Z' };
    expect(JSON.parse(answer.text)).toEqual({ ...known, logged_in: false });
    const cookie = await cookieOf(base);
    expect(await told(base, cookie)).toEqual({ ...known, logged_in: true });
    expect(await send(`${base}/session`, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });

  it('is not needed where there is no admin token', async () => {
    const base = await openAdmin({ adminToken: undefined });
    expect(await told(base)).toMatchObject({ login_required: false, logged_in: true });
    const answer = await logIn(base, 'whatever');
    expect([answer.status, answer.headers['set-cookie']]).toEqual([204, undefined]);
  });

  it.each([
    [{}, ''],
    [{ 'x-forwarded-proto': 'https' }, '; Secure'],
    [{ 'x-forwarded-proto': 'http' }, ''],
    [{ host: 'admin.example', origin: 'https://admin.example' }, '; Secure'],
  ] as const)('begins with the admin token and ends when asked to (%o)', async (headers, secure) => {
    const base = await openAdmin({});
    const begun = await logIn(base, ADMIN_TOKEN, headers);
    expect([begun.status, begun.text]).toEqual([204, '']);
    const attributes = 'HttpOnly; SameSite=Strict; Path=/; Max-Age=';
    expect(begun.headers['set-cookie']).toEqual([
      expect.stringMatching(new RegExp(`^afterword_session=[\\w.-]+; ${attributes}43200${secure}$`)),
    ]);
    const ended = await send(`${base}/session`, { method: 'DELETE', headers: { origin: base, ...headers } });
    expect([ended.status, ended.headers['set-cookie']]).toEqual([
      204,
      [`afterword_session=; ${attributes}0${secure}`],
    ]);
  });

  it('counts as the admin token, until it ends', async () => {
    const clock = new ManualClock();
    const base = await openAdmin({ clock });
    const headers = { cookie: await cookieOf(base) };
    expect(outcome(await send(base + API, { headers }))).toEqual([200, 'all']);
    expect((await send(`${base}/metrics`, { headers })).status).toBe(200);
    clock.advance(SESSION_SECONDS * 1000);
    const expired = await send(base + API, { headers });
    expect(outcome(expired)).toEqual([401, 'unauthorized']);
    // A browser asks its user for a password by itself where the scheme is another one.
    expect(expired.headers['www-authenticate']).toMatch(/^Bearer /);
    expect((await send(`${base}/metrics`, { headers })).status).toBe(401);
    expect(await told(base, headers.cookie)).toMatchObject({ logged_in: false });
  });

  it('is the same for all listeners with the same token, and for no other', async () => {
    const headers = { cookie: await cookieOf(await openAdmin({})) };
    const [same, other] = [await openAdmin({}), await openAdmin({ adminToken: 'changed' })];
    expect(outcome(await send(same + API, { headers }))).toEqual([200, 'all']);
    expect(outcome(await send(other + API, { headers }))).toEqual([401, 'unauthorized']);
  });

  it('opens the API of a whole service', async () => {
    const service = await startService({ apps: {}, adminToken: ADMIN_TOKEN });
    onTestFinished(() => service.stop());
    expect(await told(service.admin)).toMatchObject({ login_required: true, logged_in: false });
    const headers = { cookie: await cookieOf(service.admin) };
    const { status, text } = await send(service.admin + API, { headers });
    expect([status, JSON.parse(text)]).toEqual([200, { deliveries: [], next_cursor: null }]);
    // On the listener of the calls, there are none.
    const elsewhere = await send(service.base + service.path('_deliveries'), { headers });
    expect(outcome(elsewhere)).toEqual([401, 'unauthorized']);
  });

  it('does no harm beside a token, and gives way to it', async () => {
    const base = await openAdmin({});
    const good = await cookieOf(base);
    const cases: readonly [Record<string, string>, [number, string]][] = [
      [{ ...BEARER, cookie: 'afterword_session=1.forged' }, [200, 'all']],
      [{ authorization: PROJECT_TOKEN, cookie: good }, [200, PROJECT]],
      [{ authorization: 'Bearer wrong', cookie: good }, [401, 'unauthorized']],
    ];
    for (const [headers, answer] of cases)
      expect([headers, outcome(await send(base + API, { headers }))]).toEqual([headers, answer]);
  });
});

describe('a page of another site', () => {
  it('changes nothing with a cookie that the browser sends along', async () => {
    const base = await openAdmin({});
    const cookie = await cookieOf(base);
    const own = { cookie, origin: base };
    const foreign = { cookie, origin: 'https://elsewhere.example' };
    const cases: readonly [string, Record<string, string>, [number, string]][] = [
      ['POST', own, [200, 'all']],
      ['POST', { cookie }, [401, 'unauthorized']],
      ['POST', foreign, [403, 'foreign_origin']],
      ['POST', { cookie, origin: 'null' }, [403, 'foreign_origin']],
      ['DELETE', { cookie }, [401, 'unauthorized']],
      ['OPTIONS', { cookie }, [401, 'unauthorized']],
      ['GET', { cookie }, [200, 'all']],
      ['GET', foreign, [403, 'foreign_origin']],
      // Who holds the token itself need not be a page.
      ['POST', BEARER, [200, 'all']],
    ];
    for (const [method, headers, answer] of cases) {
      const reply = await send(base + API, { method, headers });
      expect([method, headers, outcome(reply)]).toEqual([method, headers, answer]);
    }
  });

  it.each(['POST', 'DELETE'])('neither begins nor ends a session (%s)', async method => {
    const base = await openAdmin({});
    const body = JSON.stringify({ token: ADMIN_TOKEN });
    for (const origin of [{}, { origin: 'https://elsewhere.example' }, { origin: 'null' }]) {
      const refused = await send(`${base}/session`, { method, headers: { ...JSON_BODY, ...origin }, body });
      expect(outcome(refused)).toEqual([403, 'foreign_origin']);
      expect(refused.headers['set-cookie']).toBeUndefined();
    }
  });

  it('is not answered under a name that it has pointed here, where there is no admin token', async () => {
    const base = await openAdmin({ adminToken: undefined });
    const headers = { host: 'rebound.example' };
    expect(outcome(await send(`${base}/session`, { headers }))).toEqual([403, 'foreign_origin']);
    const origin = 'http://rebound.example';
    expect(outcome(await logIn(base, 'x', { ...headers, origin }))).toEqual([403, 'foreign_origin']);
  });
});

describe('a login', () => {
  const body = JSON.stringify({ token: ADMIN_TOKEN });
  it.each([
    ['a body that is no JSON', JSON_BODY, '{', [400, 'invalid_body']],
    ['no body', JSON_BODY, '', [400, 'invalid_body']],
    ['a token that is no text', JSON_BODY, '{"token":1}', [400, 'invalid_body']],
    ['something besides', JSON_BODY, body.replace('}', ',"more":1}'), [400, 'invalid_body']],
    ['a body that is too long', JSON_BODY, 'x'.repeat(70_000), [413, 'request_too_large']],
    ['no type', {}, body, [400, 'invalid_body']],
    ['the type of a form', { 'content-type': 'text/plain' }, body, [400, 'invalid_body']],
    ['the type and more', { 'content-type': 'application/json; charset=utf-8' }, body, [204, '']],
    ['an empty token', JSON_BODY, '{"token":""}', [401, 'unauthorized']],
    ['more than the token', JSON_BODY, body.replace(ADMIN_TOKEN, 'Bearer $&'), [401, 'unauthorized']],
  ] as const)('with %s', async (_, type, body, answer) => {
    const base = await openAdmin({});
    const headers: Record<string, string> = { ...type, origin: base };
    const reply = await send(`${base}/session`, { method: 'POST', headers, body });
    expect(outcome(reply)).toEqual(answer);
    expect(reply.headers['x-request-id']).toBeDefined();
    expect(reply.headers['set-cookie'] !== undefined).toBe(reply.status === 204);
  });

  it('knows no other method', async () => {
    const base = await openAdmin({});
    const reply = await send(`${base}/session`, { method: 'PUT', headers: { origin: base } });
    expect(outcome(reply)).toEqual([405, 'method_not_allowed']);
    expect(reply.headers['allow']).toBe('GET, HEAD, POST, DELETE');
  });

  it('has to wait after ten wrong tokens within a minute, wherever they came from', async () => {
    const clock = new ManualClock();
    const base = await openAdmin({ clock });
    const attempt = async (token: string) => (await logIn(base, token)).status;
    for (let i = 0; i < 9; i += 1) expect(await attempt(`guess ${i}`)).toBe(401);
    expect(await attempt(ADMIN_TOKEN)).toBe(204);
    clock.advance(59_000);
    expect(await attempt('the tenth')).toBe(401);
    const refused = await logIn(base);
    expect([...outcome(refused), refused.headers['retry-after']]).toEqual([429, 'too_many_logins', '1']);
    // The token itself is not a guess at it, and who has a session keeps it.
    expect(outcome(await send(base + API, { headers: BEARER }))).toEqual([200, 'all']);
    clock.advance(1_000);
    expect(await attempt('the first of the next minute')).toBe(401);
    expect(await attempt(ADMIN_TOKEN)).toBe(204);
  });

  it('that fails is logged, without the token', async () => {
    const { log, lines } = captureLog();
    const base = await openAdmin({ log });
    const wrong = 'a-wrong-token';
    const refused = await logIn(base, wrong);
    const begun = await logIn(base);
    const cookie = begun.headers['set-cookie']![0]!.split(/[=;]/)[1]!;
    expect(await told(base)).not.toHaveProperty('token');
    await vi.waitFor(
      () =>
        expect(lines).toMatchObject([
          {
            level: 'warn',
            msg: 'a login failed',
            from: '127.0.0.1',
            run_id: refused.headers['x-request-id'],
          },
          { level: 'info', msg: 'admin request', method: 'POST', path: '/session', status: 401 },
          { level: 'info', msg: 'admin request', method: 'POST', path: '/session', status: 204 },
        ]),
      10_000,
    );
    const seen = JSON.stringify([lines, refused.text, begun.text]);
    for (const secret of [wrong, ADMIN_TOKEN, cookie]) expect(seen).not.toContain(secret);
  });

  it('that is broken off is nobody’s mistake', async () => {
    const { log, lines } = captureLog();
    const base = await openAdmin({ log });
    const { host, port } = new URL(base);
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    const head = ['POST /session HTTP/1.1', `Host: ${host}`, `Origin: ${base}`, 'Expect: 100-continue'];
    socket.write([...head, 'Content-Type: application/json', 'Content-Length: 100', '', '{'].join('\r\n'));
    await once(socket, 'data');
    socket.destroy();
    await vi.waitFor(() => expect(lines).toHaveLength(1), 10_000);
    await told(base);
    expect(lines).toMatchObject([{ msg: 'admin request', path: '/session' }]);
  });
});
