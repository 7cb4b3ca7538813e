/**
 * The launcher and the packed package: what works in a checkout works the same once it is installed.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

const CHECKOUT = join(import.meta.dirname, '..');
const temporary = mkdtempSync(join(tmpdir(), 'package-'));
const PACKAGE = join(temporary, 'package');
const { version } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as { version: string };

/** Makes the running Node say that it is an old one. */
const OLD_NODE = join(temporary, 'old-node.cjs');

beforeAll(() => {
  const pack = ['pack', '--silent', '--offline', '--no-update-notifier', '--pack-destination', temporary];
  execFileSync('npm', pack, { cwd: CHECKOUT, stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('tar', ['-xzf', join(temporary, `afterword-${version}.tgz`), '-C', temporary]);
  symlinkSync(join(CHECKOUT, 'node_modules'), join(PACKAGE, 'node_modules'));
  writeFileSync(
    OLD_NODE,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });`,
  );
}, 180_000);

afterAll(() => rmSync(temporary, { recursive: true }));

const NODES: readonly (readonly [string, readonly string[]])[] = [
  ['a Node that is new enough', []],
  ['a Node that is too old, and hands over', ['--require', OLD_NODE]],
];

/** Starts a command that runs on, as the head of its own group, and waits until it has begun. */
async function listen(argv: readonly string[]) {
  const child = spawn(process.execPath, argv, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL');
  });
  await once(createInterface(child.stderr), 'line');
  return { child, exit };
}

describe.each([
  ['checkout', CHECKOUT],
  ['package', PACKAGE],
])('%s', (_, root) => {
  describe.each(NODES)('on %s', (_, nodeOptions) => {
    const argv = (...args: string[]) => [...nodeOptions, join(root, 'bin', 'afterword'), ...args];
    const run = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, argv(...args), { encoding: 'utf8' });
      return { status, stdout, stderr };
    };

    it('tells its version, and nothing else', () => {
      expect(run('--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    });

    it('tells how it is used', () => {
      const { status, stdout, stderr } = run('--help');
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain('Usage: afterword');
    });

    it('exits 2 on wrong usage', () => {
      expect(run('nonsense')).toMatchObject({ status: 2, stdout: '' });
    });

    it('exits 1 on a failed check, with the streams of the launcher', () => {
      const { status, stdout } = spawnSync(
        process.execPath,
        argv('verify', '--secret', 's', '--request-id', 'r', '--timestamp', '1', '--signature', 'x'),
        { input: '{}', encoding: 'utf8' },
      );
      expect(status).toBe(1);
      expect(stdout).toMatch(/^bad_signature: /);
    });

    it.each([
      ['SIGTERM to the launcher', (child: ChildProcess) => child.kill('SIGTERM')],
      // What a terminal does: each process of the group gets it.
      ['SIGINT to the whole group', (child: ChildProcess) => process.kill(-child.pid!, 'SIGINT')],
    ])('ends well on %s', async (_, interrupt) => {
      const { child, exit } = await listen(argv('listen', '--port', '0'));
      interrupt(child);
      expect(await exit).toEqual([0, null]);
    });
  });
});

describe.each([
  ['checkout', CHECKOUT],
  ['package', PACKAGE],
])('dev, from the %s', (name, root) => {
  it('shows the dashboard, takes a call, and receives its delivery with a good signature', async () => {
    const data = join(temporary, `dev-${name}`);
    const argv = [join(root, 'bin', 'afterword'), 'dev', '--json', '--port', '0', '--data', data];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value as string) as Record<string, unknown>;

    const ready = (await next()) as Record<string, string>;
    const { base, dashboard, token, project_id: project, receiver } = ready;
    const page = await (await fetch(dashboard!)).text();
    const scripts = [...page.matchAll(/<script [^>]*src="([^"]+)"/g)].map(([, src]) => src!);
    expect(scripts).toHaveLength(1);
    expect((await fetch(new URL(scripts[0]!, dashboard))).status).toBe(200);

    const target = encodeURIComponent(receiver!);
    const answer = await fetch(`${base}/v4/${project}/hello/run?webhookEndpoint=${target}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'X-Webhook-Secret': 'demo-webhook-secret' },
      body: '{"name":"Ada"}',
    });
    const body = (await answer.json()) as { run_id: string; result: unknown };
    expect(body).toMatchObject({ status_code: 200, result: { greeting: 'Hello, Ada!' } });
    expect(await next()).toMatchObject({
      run_id: body.run_id,
      signature: 'ok',
      attempt: 1,
      status: 200,
      body,
    });

    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });
});

describe('a Node that is too old, with no other around', () => {
  it('says what is needed and exits 1', () => {
    const alone = join(temporary, 'alone');
    cpSync(join(CHECKOUT, 'bin'), join(alone, 'bin'), { recursive: true });
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--require', OLD_NODE, join(alone, 'bin', 'afterword'), '--version'],
      { encoding: 'utf8' },
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^error: afterword needs Node 24\.15 or newer, and this is 18\.20\.8\. .+\n$/);
  });

  it('does not hand over to another that is too old as well', () => {
    const old = join(temporary, 'old');
    cpSync(join(CHECKOUT, 'bin'), join(old, 'bin'), { recursive: true });
    mkdirSync(join(old, 'node_modules', 'node', 'bin'), { recursive: true });
    writeFileSync(join(old, 'node_modules', 'node', 'bin', 'node'), '');
    writeFileSync(join(old, 'node_modules', 'node', 'package.json'), '{ "version": "24.14.9" }');
    const { status } = spawnSync(process.execPath, [
      '--require',
      OLD_NODE,
      join(old, 'bin', 'afterword'),
      '--version',
    ]);
    expect(status).toBe(1);
  });
});

it('passes on the signal that ended the command', async () => {
  const launcher = join(CHECKOUT, 'bin', 'afterword');
  const { child, exit } = await listen(['--require', OLD_NODE, launcher, 'listen', '--port', '0']);
  // Nobody listens for it in the command, so it ends there as the system has it.
  child.kill('SIGHUP');
  expect(await exit).toEqual([null, 'SIGHUP']);
});

describe('the package', () => {
  it('has what it needs and no more', () => {
    const files = globSync('**', { cwd: PACKAGE, exclude: name => name === 'node_modules' });
    expect(files).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'bin/afterword',
        'bin/package.json',
        'dashboard/dist/index.html',
        'dist/cli.js',
        'dist/runtime/runners/node.js',
        'dist/runtime/runners/python/runner.py',
        'dist/runtime/runners/python/afterword_runner/main.py',
        'dist/verify.d.ts',
      ]),
    );
    expect(globSync('dashboard/*', { cwd: PACKAGE })).toEqual(['dashboard/dist']);
    const top = new Set(files.map(file => file.split('/')[0]));
    for (const name of ['src', 'test', 'bench', 'scripts', '.ci']) expect(top).not.toContain(name);
    expect(files.filter(file => file.endsWith('.ts') && !file.endsWith('.d.ts'))).toEqual([]);
  });

  const consumer = join(temporary, 'consumer');
  beforeAll(() => {
    mkdirSync(join(consumer, 'node_modules'), { recursive: true });
    symlinkSync(PACKAGE, join(consumer, 'node_modules', 'afterword'));
    writeFileSync(join(consumer, 'package.json'), '{ "type": "module" }');
  });

  it('gives receivers afterword/verify', () => {
    const digest = createHmac('sha256', 's').update('r.1.{}').digest('hex');
    const program = `import { verifyDelivery } from 'afterword/verify';
      const headers = {
        'x-request-id': 'r', 'x-service-webhook-timestamp': '1', 'x-service-webhook-signature': '${digest}',
      };
      console.log((await verifyDelivery({ headers, body: '{}', secret: 's' })).requestId);`;
    writeFileSync(join(consumer, 'receiver.js'), program);
    expect(execFileSync(process.execPath, ['receiver.js'], { cwd: consumer, encoding: 'utf8' })).toBe('r\n');
  });

  it('gives nothing else', () => {
    writeFileSync(join(consumer, 'inside.js'), `import 'afterword/dist/cli.js';`);
    const { stderr } = spawnSync(process.execPath, ['inside.js'], { cwd: consumer, encoding: 'utf8' });
    expect(stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it('has types that stand on their own', () => {
    writeFileSync(
      join(consumer, 'receiver.ts'),
      `import { type DeliveryBody, VerificationError, verifyDelivery } from 'afterword/verify';
      export async function receive(headers: Map<string, string>, body: Uint8Array): Promise<number> {
        try {
          const get = (name: string) => headers.get(name) ?? null;
          const delivery = await verifyDelivery({ headers: { get }, body, secret: ['a', 'b'], tolerance: 300 });
          const { result }: DeliveryBody<{ size: number }> = delivery.json<{ size: number }>();
          return result?.size ?? 0;
        } catch (error) {
          if (error instanceof VerificationError && error.reason === 'no_match') return -1;
          throw error;
        }
      }`,
    );
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--lib', 'es2022', '--types', ''];
    const tsc = join(CHECKOUT, 'node_modules', '.bin', 'tsc');
    const { status, stdout } = spawnSync(tsc, [...options, 'receiver.ts'], {
      cwd: consumer,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });
});
