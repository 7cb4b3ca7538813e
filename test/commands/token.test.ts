import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jwtVerify } from 'jose';
import { afterAll, describe, expect, it } from 'vitest';
import { run } from './run.ts';

const SECRET = 'a-secret-of-thirty-two-characters';
const DAY = 24 * 3600;

const cwd = mkdtempSync(join(tmpdir(), 'token-'));
afterAll(() => rmSync(cwd, { recursive: true }));
const { publicKey } = generateKeyPairSync('ed25519');
writeFileSync(join(cwd, 'key.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
writeFileSync(
  join(cwd, 'afterword.yaml'),
  `
projects:
  p-demo: { jwt: { secret: ${SECRET} } }
  p-strict: { jwt: { secret: ${SECRET}, issuer: us, audience: them } }
  p-key: { jwt: { publicKey: key.pem } }
`,
);

function verify(token: string, options = {}) {
  return jwtVerify(token, Buffer.from(SECRET), { algorithms: ['HS256'], ...options });
}

describe('a token', () => {
  it.each([
    [[], 30 * DAY],
    [['--ttl', '7d'], 7 * DAY],
    [['--ttl', '1h30m'], 5400],
  ])('with %j', async (argv, ttl) => {
    const { code, stdout, stderr } = await run(['token', '--project', 'p-demo', ...argv], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { payload } = await verify(stdout.trimEnd());
    expect(payload.project_id).toBe('p-demo');
    expect(payload.exp! - payload.iat!).toBe(ttl);
    expect(Math.abs(payload.iat! - Date.now() / 1000)).toBeLessThan(60);
  });

  it('as JSON', async () => {
    const { stdout } = await run(['token', '-p', 'p-demo', '--ttl', '60s', '--json'], { cwd });
    const { token, ...others } = JSON.parse(stdout) as { token: string };
    expect(others).toEqual({ project_id: 'p-demo', expires_in: 60 });
    await expect(verify(token)).resolves.toBeTruthy();
  });

  it('has the issuer and the audience that its project asks for', async () => {
    const { stdout } = await run(['token', '-p', 'p-strict'], { cwd });
    await expect(verify(stdout.trimEnd(), { issuer: 'us', audience: 'them' })).resolves.toBeTruthy();
  });

  it('is made with the configuration that is named', async () => {
    const argv = ['token', '-p', 'p-demo', '--config', join(cwd, 'afterword.yaml')];
    expect(await run(argv, { cwd: '/' })).toMatchObject({ code: 0 });
  });
});

describe('no token', () => {
  it.each([
    [
      'for a project that is not configured',
      ['--project', 'p-nope'],
      'configured are: p-demo, p-strict, p-key',
    ],
    ['for a project with a public key', ['--project', 'p-key'], 'private key'],
    ['without a project', [], '--project'],
    ['for no time', ['--project', 'p-demo', '--ttl', '0s'], 'duration'],
    ['for a time that is none', ['--project', 'p-demo', '--ttl', '30'], 'duration'],
    ['without the configuration', ['--project', 'p-demo', '--config', 'none.yaml'], 'none.yaml'],
  ])('%s', async (_, argv, message) => {
    const { code, stdout, stderr } = await run(['token', ...argv], { cwd });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});
