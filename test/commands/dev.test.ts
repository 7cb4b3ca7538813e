/**
 * `afterword dev <folder>` as its user has it: a real process, a call, its delivery, and new code as soon as
 * a file is saved.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { untilNoneAlive } from '../support/alive.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/afterword', import.meta.url));
const SOON = { timeout: 45_000, interval: 10 };

type Json = Record<string, unknown>;

interface Dev {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly mark: string;
  readonly stderr: string;
  /** The next line of standard output. */
  next(): Promise<Json>;
}

function startDev(...argv: string[]): Dev {
  const MARK = randomUUID();
  const child = spawn(process.execPath, [LAUNCHER, 'dev', '--json', '--port', '0', ...argv], {
    cwd: temporaryDirectory(),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1', MARK },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    child,
    mark: `MARK=${MARK}`,
    get stderr() {
      return stderr;
    },
    next: async () => JSON.parse((await lines.next()).value as string) as Json,
  };
}

/** A folder with this in it. */
function folderWith(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(temporaryDirectory(), name);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(folder, file, '..'), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

describe.each([
  [
    'main.ts',
    `import { greeting } from './words/greeting.ts';
     export const run = ({ name }: { name: string }) => (console.log('called'), greeting + name);`,
    'words/greeting.ts',
    (word: string) => `export const greeting: string = '${word}, ';`,
  ],
  [
    'main.py',
    'from words.greeting import greeting\ndef run(name):\n    print("called")\n    return greeting + name',
    'words/greeting.py',
    (word: string) => `greeting = '${word}, '`,
  ],
])('dev, with a folder that has a %s', (main, functions, words, wordsOf) => {
  it('calls its functions, delivers, and serves new code once a file is saved', async () => {
    const folder = folderWith('my functions', { [main]: functions, [words]: wordsOf('Hello') });
    const dev = startDev(folder);
    const { base, token, project_id: project, receiver } = (await dev.next()) as Record<string, string>;
    const call = async (): Promise<Json> => {
      const target = encodeURIComponent(receiver!);
      const answer = await fetch(`${base}/v4/${project}/my-functions/run?webhookEndpoint=${target}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'X-Webhook-Secret': 'demo-webhook-secret' },
        body: '{"name":"Ada"}',
      });
      return (await answer.json()) as Json;
    };
    const deliveryOf = async (answer: Json): Promise<Json> => {
      for (;;) {
        const delivery = await dev.next();
        if (delivery['run_id'] === answer['run_id']) return delivery;
      }
    };
    /** A save may be noticed in several steps: what counts is what is served in the end. */
    const save = async (file: string, text: string, expected: Json): Promise<Json> => {
      const before = dev.stderr.length;
      writeFileSync(join(folder, file), text);
      await vi.waitUntil(() => dev.stderr.includes('reloading my-functions', before), SOON);
      return vi.waitFor(async () => {
        const answer = await call();
        expect(answer).toMatchObject(expected);
        return answer;
      }, SOON);
    };

    const first = await call();
    expect(first).toMatchObject({ status_code: 200, result: 'Hello, Ada' });
    expect(await deliveryOf(first)).toMatchObject({ signature: 'ok', body: first });
    await vi.waitUntil(() => dev.stderr.includes('"msg":"called"'), SOON);

    const second = await save(words, wordsOf('Goodbye'), { result: 'Goodbye, Ada' });
    expect(await deliveryOf(second)).toMatchObject({ signature: 'ok', body: second });
    const broken = await save(main, 'this is no program', { status: 502, code: 'app_unreachable' });
    expect(await deliveryOf(broken)).toMatchObject({ body: { error: { type: 'app_unreachable' } } });
    await save(main, functions, { result: 'Goodbye, Ada' });

    dev.child.kill('SIGTERM');
    expect(await once(dev.child, 'exit')).toEqual([0, null]);
    await untilNoneAlive(dev.mark);
  });
});

describe('dev, with a folder that cannot be served', () => {
  it.each([
    ['has no functions', { 'index.ts': '' }, /^error: .*\/fn has no main\.ts, .* or main\.py\n$/],
    ['is none', {}, /^error: .*\/fn is not a folder\n$/],
  ])('exits 2 when it %s', async (_, files, message) => {
    const dev = startDev(folderWith('fn', files));
    expect(await once(dev.child, 'close')).toEqual([2, null]);
    expect(dev.stderr).toMatch(message);
  });
});
