import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { run } from './run.ts';

const cwd = mkdtempSync(join(tmpdir(), 'config-'));
afterAll(() => rmSync(cwd, { recursive: true }));
const files = {
  'good.yaml': [
    'projects:',
    '  p-demo: { jwt: { secret: "${JWT_SECRET}" } }',
    'apps:',
    '  p-demo/chat: { runtime: custom, url: "http://127.0.0.1:9000" }',
  ].join('\n'),
  'warned.yaml': 'databaseConnections: 4\n',
  'bad.yaml': 'listn: 127.0.0.1:8080\nwebhooks: { attemptTimeout: soon }\n',
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
const env = { JWT_SECRET: 'a-secret-of-thirty-two-characters' };

describe('a good configuration', () => {
  it('is printed as it takes effect, without its secrets', async () => {
    const { code, stdout, stderr } = await run(['config', 'check', '--config', 'good.yaml'], { cwd, env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^listen: 127\.0\.0\.1:8080$/m);
    expect(stdout).toMatch(/^ {2}attemptTimeout: 15s$/m);
    expect(stdout).not.toContain(env.JWT_SECRET);
  });

  it('is printed as JSON', async () => {
    const { code, stdout } = await run(['config', 'check', '-c', 'good.yaml', '--json'], { cwd, env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      webhooks: { attemptTimeout: '15s' },
      apps: { 'p-demo/chat': { runtime: 'custom' } },
    });
    expect(stdout).not.toContain(env.JWT_SECRET);
  });

  it('has its warnings on standard error', async () => {
    const { code, stdout, stderr } = await run(['config', 'check', '-c', 'warned.yaml', '--json'], { cwd });
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: warned\.yaml:1: databaseConnections: .+\n$/);
    expect(() => JSON.parse(stdout) as unknown).not.toThrow();
  });
});

it('tells all mistakes of a bad one', async () => {
  const { code, stdout, stderr } = await run(['config', 'check', '--config', 'bad.yaml'], { cwd });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('bad.yaml:1: listn');
  expect(stderr).toContain('bad.yaml:2: webhooks.attemptTimeout');
});

it('tells that the file is not there', async () => {
  const { code, stderr } = await run(['config', 'check', '--config', 'none.yaml'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('none.yaml');
});
