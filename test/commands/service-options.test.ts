import { mkdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { issueToken } from '../../src/token.ts';
import { temporaryDirectory } from '../store/samples.ts';
import { openApp, type TestApp } from '../support/app.ts';
import { run } from './run.ts';

const SECRET = 'a-secret-that-is-long-enough-for-hs256';

/** Answers every request with an empty list of runs. */
let service: TestApp;
let seen: IncomingMessage | undefined;

beforeAll(async () => {
  service = await openApp((req, res) => {
    seen = req;
    res.end('{"runs":[],"next_cursor":null}');
  });
});

beforeEach(() => {
  seen = undefined;
});

afterAll(() => service.close());

const tokenFor = (projectId: string): Promise<string> =>
  issueToken({ secret: SECRET, projectId, ttlSeconds: 60, clock: systemClock });

async function listed(argv: readonly string[], env: Record<string, string>, cwd = '/') {
  const { code, stderr } = await run(['runs', 'list', ...argv], { env, cwd });
  return { code, stderr, url: seen?.url, token: seen?.headers.authorization };
}

const AT = { code: 0, stderr: '' };

describe('which service, as what project', () => {
  it.each<[string, (url: string) => { argv?: string[]; env?: Record<string, string> }, string, string]>([
    ['by options', url => ({ argv: ['--url', url, '--project', 'p', '--token', 't'] }), '/v4/p', 't'],
    [
      'by variables',
      url => ({ env: { AFTERWORD_URL: url, AFTERWORD_PROJECT: 'p', AFTERWORD_TOKEN: 't' } }),
      '/v4/p',
      't',
    ],
    [
      'by options before variables',
      url => ({
        argv: ['--url', url, '--project', 'p', '--token', 't'],
        env: { AFTERWORD_URL: 'http://127.0.0.1:1', AFTERWORD_PROJECT: 'q', AFTERWORD_TOKEN: 'u' },
      }),
      '/v4/p',
      't',
    ],
    [
      'behind a path',
      url => ({ argv: ['--url', `${url}/base/`, '-p', 'p', '--token', 't'] }),
      '/base/v4/p',
      't',
    ],
  ])('%s', async (_, given, path, token) => {
    const { argv = [], env = {} } = given(service.url);
    expect(await listed(argv, env)).toEqual({
      ...AT,
      url: `${path}/_runs?limit=50`,
      token: `Bearer ${token}`,
    });
  });

  it('takes the project from the token, and the token from a file', async () => {
    const file = join(temporaryDirectory(), 'token');
    const token = await tokenFor('p-claimed');
    writeFileSync(file, `${token}\n`);
    const env = { AFTERWORD_URL: service.url, AFTERWORD_TOKEN_FILE: file };
    expect(await listed([], env)).toEqual({
      ...AT,
      url: '/v4/p-claimed/_runs?limit=50',
      token: `Bearer ${token}`,
    });
  });

  describe('beside the data of `afterword dev`', () => {
    const folder = (): string => {
      const cwd = temporaryDirectory();
      mkdirSync(join(cwd, '.afterword'));
      writeFileSync(join(cwd, '.afterword', 'dev-jwt-secret'), SECRET);
      return cwd;
    };

    it('needs no token', async () => {
      const { url, token } = await listed(['--url', service.url], {}, folder());
      expect(url).toBe('/v4/p-demo/_runs?limit=50');
      expect(token).toMatch(/^Bearer ey[\w.-]+$/);
    });

    it('needs one for a service elsewhere', async () => {
      const { code, stderr } = await listed(['--url', 'http://afterword.invalid'], {}, folder());
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: 'error: a token is needed: --token, AFTERWORD_TOKEN or AFTERWORD_TOKEN_FILE\n',
      });
    });
  });
});

it('has variables that a configuration leaves alone', async () => {
  const env = { AFTERWORD_URL: 'x', AFTERWORD_PROJECT: 'x', AFTERWORD_TOKEN: 'x', AFTERWORD_TOKEN_FILE: 'x' };
  const { code, stderr } = await run(['config', 'check'], { env, cwd: temporaryDirectory() });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

it.each<[string, string[], Record<string, string>, string]>([
  ['no token', [], {}, 'a token is needed'],
  ['a token that names no project', ['--token', 't'], {}, 'a project is needed'],
  ['a token of two lines', ['--token', 'a\nb', '-p', 'p'], {}, 'characters that no token has'],
  ['a URL that is none', ['--url', 'localhost:8080'], {}, '--url'],
  ['a variable that is no URL', [], { AFTERWORD_URL: 'ftp://x' }, 'AFTERWORD_URL: It must be an address'],
  ['a file that is not there', [], { AFTERWORD_TOKEN_FILE: '/no/such/file' }, 'AFTERWORD_TOKEN_FILE: ENOENT'],
  ['two tokens', [], { AFTERWORD_TOKEN: 't', AFTERWORD_TOKEN_FILE: '/f' }, 'both AFTERWORD_TOKEN and'],
])('%s is wrong usage', async (_, argv, env, message) => {
  const { code, stderr } = await listed(argv, env);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
  expect(seen).toBeUndefined();
});
