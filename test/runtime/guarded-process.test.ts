/**
 * Processes that cannot be orphaned: how each way of ending reaches the program and all that it started.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type GuardedProcess, spawnGuarded } from '../../src/runtime/guarded-process.ts';
import { aliveWith, isAlive, untilEnded, untilNoneAlive } from '../support/alive.ts';

const SOON = { timeout: 10_000, interval: 5 };
const PARENT = join(import.meta.dirname, 'hosted', 'parent.ts');

/** A process whose descendants can all be found. */
function guard(...command: string[]): { child: GuardedProcess; mark: string } {
  const MARK = randomUUID();
  const env = { PATH: process.env['PATH'] ?? '', MARK };
  const child = spawnGuarded({ command, cwd: '/', env });
  onTestFinished(async () => {
    child.kill();
    await child.exited;
  });
  return { child, mark: `MARK=${MARK}` };
}

const shell = (script: string) => guard('/bin/sh', '-c', script);

/** The next words that a program prints, as numbers. */
async function numbersFrom(stdout: Readable): Promise<number[]> {
  const [chunk] = (await once(stdout, 'data')) as [Buffer];
  return chunk.toString().trim().split(/\s+/).map(Number);
}

async function textOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}

describe('the end of a program is told', () => {
  it.each([
    ['exit 0', { code: 0 }],
    ['exit 7', { code: 7 }],
    ['exit 255', { code: 255 }],
    ['kill -KILL $$', { signal: 'SIGKILL' }],
    ['kill -TERM $$', { signal: 'SIGTERM' }],
    ['kill -SEGV $$', { signal: 'SIGSEGV' }],
  ])('%s', async (script, exit) => {
    expect(await shell(script).child.exited).toEqual(exit);
  });

  it('where there is no such command', async () => {
    const { child } = guard('no-such-command');
    const [exit, stderr] = await Promise.all([child.exited, textOf(child.stderr)]);
    expect(exit).toEqual({ code: 127 });
    expect(stderr).toContain('no-such-command');
  });

  it('where the command cannot be executed', async () => {
    expect(await guard('/').child.exited).toEqual({ code: 126 });
  });

  it('where there is no such folder', async () => {
    const child = spawnGuarded({ command: ['true'], cwd: '/no/such/folder', env: {} });
    expect(await child.exited).toEqual({ code: 127 });
  });
});

describe('a program', () => {
  it('gets its arguments as they are, its folder, its environment, and nothing to read', async () => {
    const child = spawnGuarded({
      command: [
        '/bin/sh',
        '-c',
        'printf "%s|" "$@" "$PWD" "$A"; cat; echo end >&2',
        'name',
        'a  b',
        '$A',
        '',
      ],
      cwd: '/usr',
      env: { PATH: process.env['PATH'] ?? '', A: "it's" },
    });
    const texts = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    expect(texts).toEqual(["a  b|$A||/usr|it's|", 'end\n']);
    expect(await child.exited).toEqual({ code: 0 });
  });

  it('ends by itself when it is asked to, and its code is told', async () => {
    const { child } = shell('trap "exit 3" TERM; echo ready; while :; do sleep 0.01; done');
    await once(child.stdout, 'data');
    child.terminate();
    expect(await child.exited).toEqual({ code: 3 });
  });

  it('may be asked to end more than once', async () => {
    const script =
      'n=0; trap "n=\\$((n+1)); echo \\$n" TERM; echo 0; while [ $n -lt 3 ]; do sleep 0.01; done';
    const { child } = shell(script);
    for await (const chunk of child.stdout) if (Number(String(chunk)) < 3) child.terminate();
    expect(await child.exited).toEqual({ code: 0 });
  });

  it('may ignore the request to end, and is killed', async () => {
    const { child, mark } = shell('trap "" TERM; echo ready; while :; do sleep 1; done');
    await once(child.stdout, 'data');
    child.terminate();
    child.kill();
    expect(await child.exited).toEqual({ signal: 'SIGKILL' });
    await untilNoneAlive(mark);
  });
});

describe('nothing is left', () => {
  const FAMILY = 'sleep 300 & (sleep 300 & echo $$ $!; wait) & wait';

  it('when the program ends by itself', async () => {
    const { child, mark } = shell('sleep 300 & (sleep 300 & wait) & exit 0');
    expect(await child.exited).toEqual({ code: 0 });
    await untilNoneAlive(mark);
  });

  it('when it is killed', async () => {
    const { child, mark } = shell(FAMILY);
    const pids = await numbersFrom(child.stdout);
    expect(pids.every(isAlive)).toBe(true);
    child.kill();
    expect(await child.exited).toEqual({ signal: 'SIGKILL' });
    await untilNoneAlive(mark);
  });

  it('when the program is killed by somebody else', async () => {
    const { child, mark } = shell(FAMILY);
    const [pid] = await numbersFrom(child.stdout);
    process.kill(pid!, 'SIGKILL');
    expect(await child.exited).toEqual({ signal: 'SIGKILL' });
    await untilNoneAlive(mark);
  });

  it('when what stands between is killed by somebody else', async () => {
    const { child, mark } = shell(`echo $PPID; ${FAMILY}`);
    const [pid] = await numbersFrom(child.stdout);
    process.kill(pid!, 'SIGKILL');
    expect(await child.exited).toEqual({ signal: 'SIGKILL' });
    await untilNoneAlive(mark);
  });

  it('and the program goes on, when only a process of its own is killed', async () => {
    const { child } = shell('sleep 300 & echo $!; wait; echo 1; exit 4');
    const [pid] = await numbersFrom(child.stdout);
    process.kill(pid!, 'SIGKILL');
    await untilEnded(pid!);
    expect(await child.exited).toEqual({ code: 4 });
  });

  it.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGABRT'] as const)(
    'when the parent ends by %s, however busy the program',
    async signal => {
      const MARK = randomUUID();
      const script = `sleep 300 & echo $$ $!; while :; do :; done`;
      const parent = spawn(process.execPath, [PARENT, '/bin/sh', '-c', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { PATH: process.env['PATH'], MARK },
      });
      onTestFinished(() => void parent.kill('SIGKILL'));
      const pids = await numbersFrom(parent.stdout);
      // The parent, the shell, its guard, the program and what it started.
      await vi.waitUntil(() => aliveWith(`MARK=${MARK}`).length >= 5, SOON);
      expect(pids.every(isAlive)).toBe(true);
      parent.kill(signal);
      await once(parent, 'exit');
      await untilNoneAlive(`MARK=${MARK}`);
    },
  );
});
