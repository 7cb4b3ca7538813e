/**
 * Places for calls, and the processes behind them: started, replaced, retired and stopped.
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Program } from '../../src/config/config.ts';
import type { Problem } from '../../src/errors.ts';
import type { Lease } from '../../src/runtime/hosted-app.ts';
import { temporaryDirectory } from '../store/samples.ts';
import { aliveWith, isAlive, untilEnded, untilNoneAlive } from '../support/alive.ts';
import { HurriedClock } from '../support/clock.ts';
import { closedPort, startHostile } from '../support/receivers.ts';
import { ask, host, type Hosting, HOSTED, NODE, SERVER, shell } from './hosting.ts';

const SOON = { timeout: 10_000, interval: 5 };

const pidOf = async (lease: Lease): Promise<number> => (await ask(lease, '/pid')) as number;

/** Why there was no place. */
async function refusal(asked: Promise<Lease>): Promise<Pick<Problem, 'code' | 'message' | 'headers'>> {
  const outcome = await asked.catch((problem: Problem) => problem);
  if ('pool' in outcome) throw new Error('there was a place');
  const { code, message, headers } = outcome;
  return { code, message, headers };
}

/** Whether it waits still, as far as can be told after a turn of the loop. */
async function isWaiting(asked: Promise<Lease>): Promise<boolean> {
  let waiting = true;
  const over = (): void => {
    waiting = false;
  };
  asked.then(over, over);
  await setImmediate();
  return waiting;
}

/** As many places as there are, so that every replica is ready. */
async function fill({ lease }: Hosting, places: number): Promise<Lease[]> {
  return Promise.all(Array.from({ length: places }, lease));
}

/** The first place, however long its process takes to start. */
async function untilGranted({ lease, ready, app }: Hosting): Promise<Lease> {
  app.start();
  await vi.waitUntil(() => ready() > 0, SOON);
  return lease();
}

describe('places', () => {
  it('are never more than there are, and those who wait get them in their order', async () => {
    const limits = { replicas: 2, concurrency: 2, queue: 3 };
    const hosting = host(limits);
    const places = limits.replicas * limits.concurrency;
    for (const lease of await fill(hosting, limits.queue)) lease.done();
    await vi.waitUntil(() => hosting.ready() === limits.replicas, SOON);

    const step = fc.oneof(
      { weight: 3, arbitrary: fc.constant('ask' as const) },
      { weight: 2, arbitrary: fc.nat() },
    );
    const steps = fc.array(step, { minLength: 20, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async scenario => {
        const held: Lease[] = [];
        const granted: number[] = [];
        let asked = 0;
        let refused = 0;
        let wronged = 0;
        const ask = (): void => {
          const isFull = held.length === places && waiting() === limits.queue;
          const number = asked++;
          const refuse = (): void => {
            refused += 1;
            if (!isFull) wronged += 1;
          };
          const take = (lease: Lease): void => {
            held.push(lease);
            granted.push(number);
          };
          hosting.lease().then(take, refuse);
        };
        const waiting = (): number => asked - granted.length - refused;
        for (const step of scenario) {
          if (step === 'ask') ask();
          else held.splice(step % Math.max(held.length, 1), 1)[0]?.done();
          await setImmediate();
          for (const pool of new Set(held.map(lease => lease.pool))) {
            expect(held.filter(lease => lease.pool === pool).length).toBeLessThanOrEqual(limits.concurrency);
          }
          // Nobody waits while there is room, and nobody is sent away while there is some to wait in.
          expect(wronged).toBe(0);
          expect(waiting()).toBeLessThanOrEqual(held.length < places ? 0 : limits.queue);
          expect(granted).toEqual(granted.toSorted((a, b) => a - b));
        }
        while (held.length > 0) {
          held.pop()!.done();
          await setImmediate();
        }
        expect(waiting()).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it('beyond those that may wait are refused, with the time to come back', async () => {
    const hosting = host({ concurrency: 1, queue: 2 });
    const first = await hosting.lease();
    const [second, third] = [hosting.lease(), hosting.lease()];
    expect(await refusal(hosting.lease())).toMatchObject({ code: 'app_busy', headers: ['Retry-After', '1'] });
    first.done();
    (await second).done();
    (await third).done();
  });

  it('are waited for no longer than an app may take to answer', async () => {
    const hosting = host({ concurrency: 1 }, { appTimeout: 20 });
    const first = await untilGranted(hosting);
    expect(await refusal(hosting.lease())).toMatchObject({ code: 'app_timeout' });
    first.done();
    expect((await hosting.lease()).pool).toBe(first.pool);
  });

  it('are not kept for those who have gone', async () => {
    const { app, lease } = host({ concurrency: 1, queue: 1 });
    const first = await lease();
    let wanted = true;
    const gone = refusal(Promise.resolve(app.lease(() => wanted)));
    expect(await refusal(lease())).toMatchObject({ code: 'app_busy' });
    wanted = false;
    const next = lease();
    first.done();
    expect((await next).pool).toBe(first.pool);
    expect(await gone).toMatchObject({ code: 'app_busy' });
  });

  it('are free once, however often that is said', async () => {
    const { lease } = host({ concurrency: 1 });
    const first = await lease();
    first.done();
    first.done();
    await lease();
    expect(await isWaiting(lease())).toBe(true);
  });

  it('are taken where there is most room', async () => {
    const hosting = host({ replicas: 3, concurrency: 2 });
    const leases = await fill(hosting, 6);
    const pids = await Promise.all(leases.map(pidOf));
    expect(new Set(pids).size).toBe(3);
    leases[2]!.done();
    expect((await hosting.lease()).pool).toBe(leases[2]!.pool);
    for (const index of [0, 3]) leases[index]!.done();
    const shared = [await hosting.lease(), await hosting.lease()];
    expect(new Set(shared.map(({ pool }) => pool))).toEqual(new Set([leases[0]!.pool, leases[3]!.pool]));
  });
});

describe('a process', () => {
  it('is started by the first call, where nobody has before', async () => {
    const { app, lease, mark } = host();
    expect(aliveWith(mark)).toEqual([]);
    const pid = await pidOf(await lease());
    app.start();
    await setImmediate();
    expect(await pidOf(await lease())).toBe(pid);
  });

  it('that ends is replaced, and the log says how it ended', async () => {
    const { lease, lines } = host({ program: NODE });
    const first = await lease();
    const pid = (await ask(first, 'pid')) as number;
    process.kill(pid, 'SIGKILL');
    expect(await first.crashed!()).toBe(true);
    first.done();
    expect(await ask(await lease(), 'pid')).not.toBe(pid);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', replica: 0, msg: 'the app ended with SIGKILL' }),
    );
  });

  it('that goes on has not crashed, whatever became of a connection', async () => {
    const { lease } = host({}, { clock: new HurriedClock() });
    expect(await (await lease()).crashed!()).toBe(false);
  });

  it('is replaced after pauses that grow, until one stays up for a while', async () => {
    const clock = new HurriedClock();
    const { lease } = host({}, { clock });
    const pauses = async (times: number): Promise<number[]> => {
      clock.waits.length = 0;
      for (let time = 0; time < times; time += 1) {
        const place = await lease();
        const pid = await pidOf(place);
        process.kill(pid, 'SIGKILL');
        await untilEnded(pid);
        await vi.waitUntil(() => clock.waits.length > time, SOON);
        place.done();
      }
      return clock.waits;
    };
    expect(await pauses(3)).toEqual([100, 200, 400]);
    (await lease()).done();
    clock.skip(10_001);
    expect(await pauses(2)).toEqual([100, 200]);
  });

  it('that cannot be started is tried again, after pauses that grow to 10 s', async () => {
    const clock = new HurriedClock();
    const { app } = host({ program: shell('exit 3') }, { clock });
    app.start();
    await vi.waitUntil(() => clock.waits.length >= 10, SOON);
    const expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000];
    expect(clock.waits.slice(0, 10)).toEqual(expected);
  });

  it('is ready when it can be reached, or where it has a path for that, when that is 2xx', async () => {
    const file = join(temporaryDirectory(), 'healthy');
    const program = { kind: 'command', command: SERVER, health: '/health?deep' } as const;
    const { lease, mark } = host({ program, env: { HEALTHY_FILE: file } });
    const asked = lease();
    // Sleeping until then: it has been asked, and has answered 503.
    await vi.waitUntil(() => aliveWith(mark).length >= 3, SOON);
    expect(await isWaiting(asked)).toBe(true);
    writeFileSync(file, '');
    expect(await ask(await asked, '/port')).toBeGreaterThan(0);
  });

  it('gets the port that it is to use, and each replica the next', async () => {
    const port = await twoFreePorts();
    const program = { kind: 'command', command: SERVER, port } as const;
    const leases = await fill(host({ program, replicas: 2, concurrency: 1 }), 2);
    const ports = await Promise.all(leases.map(lease => ask(lease, '/port')));
    expect(new Set(ports)).toEqual(new Set([port, port + 1]));
  });

  it('leaves no socket behind', async () => {
    const hosting = host({ program: NODE });
    const lease = await hosting.lease();
    const [socket] = readdirSync(hosting.socketDir);
    process.kill((await ask(lease, 'pid')) as number, 'SIGKILL');
    await lease.crashed!();
    await vi.waitFor(() => expect(readdirSync(hosting.socketDir)).not.toContain(socket), SOON);
  });
});

/** The second is free as far as can be told. */
async function twoFreePorts(): Promise<number> {
  for (;;) {
    const port = await closedPort();
    const next = await startHostile(() => {}, { port: port + 1 }).catch(() => undefined);
    await next?.close();
    if (next !== undefined) return port;
  }
}

describe('those who wait for a process that cannot be started', () => {
  const broken = (name: string, text: string): Program => {
    const entry = join(temporaryDirectory(), name);
    writeFileSync(entry, text);
    return name.endsWith('.py') ? { kind: 'python', entry, python: 'python3' } : { kind: 'node', entry };
  };
  it.each([
    ['an import that fails in TypeScript', () => broken('main.ts', `import './no.ts';`), 'exit code 1'],
    ['an import that fails in Python', () => broken('main.py', 'import nothing_like_that'), 'exit code 1'],
    ['no functions', () => broken('main.ts', 'export const one = 1;'), 'exit code 1'],
    ['an exit at once', () => shell('exit 7'), 'exit code 7'],
    ['a signal', () => shell('kill -TERM $$'), 'SIGTERM'],
    [
      'no interpreter',
      (): Program => ({ kind: 'python', entry: join(HOSTED, 'main.py'), python: './no/python' }),
      'exit code 127: there is no such command',
    ],
    [
      'a command that is none',
      (): Program => ({ kind: 'command', command: ['/'] }),
      'exit code 126: its command cannot be executed',
    ],
  ])('are told why: %s', async (_, program, exit) => {
    const { lease, lines } = host({ program: program() });
    const message = `The app could not be started: its process ended with ${exit}`;
    const refusals = await Promise.all([refusal(lease()), refusal(lease())]);
    expect(refusals).toMatchObject([{ code: 'app_unreachable', message }, { message }]);
    await vi.waitUntil(() => lines.some(({ level }) => level === 'error'), SOON);
    expect(lines.find(({ level }) => level === 'error')!.msg).toBe(message.replace('The', 'the'));
  });

  it('are told of a port that is taken, and nobody else is called in its place', async () => {
    await using other = await startHostile(socket => socket.destroy());
    const program = { kind: 'command', command: SERVER, port: other.port } as const;
    const { message } = await refusal(host({ program }).lease());
    expect(message).toBe(`The app could not be started: its port ${other.port} is taken by another process`);
  });

  it('are told of a working directory that is gone', async () => {
    const { message } = await refusal(host({ cwd: '/no/such/folder' }).lease());
    expect(message).toBe('The app could not be started: its working directory is not there');
  });

  it('are told of what the system refuses', async () => {
    const { lease } = host({ env: { LARGE: 'x'.repeat(1_000_000) } });
    expect((await refusal(lease())).message).toMatch(/^The app could not be started: .*E2BIG/);
  });

  it('are told of one that is never ready, which is ended', async () => {
    const clock = new HurriedClock();
    const { lease, mark } = host({ program: shell('sleep 300') }, { clock });
    const asked = refusal(lease());
    await vi.waitUntil(() => aliveWith(mark).length > 0, SOON);
    clock.skip(60_001);
    expect((await asked).message).toBe('The app could not be started: it was not ready within 60 s');
  });

  it('wait on where another replica is ready', async () => {
    const port = await twoFreePorts();
    await using taken = await startHostile(() => {}, { port: port + 1 });
    const program = { kind: 'command', command: SERVER, port } as const;
    const hosting = host({ program, replicas: 2, concurrency: 1 });
    const errors = () =>
      hosting.lines.filter(({ msg }) => msg.includes(`port ${taken.port} is taken`)).length;
    hosting.app.start();
    await vi.waitUntil(() => hosting.ready() === 1, SOON);
    const first = await hosting.lease();
    const second = hosting.lease();
    const before = errors();
    await vi.waitUntil(() => errors() > before, SOON);
    expect(await isWaiting(second)).toBe(true);
    first.done();
    await second;
  });
});

describe('a process that let a call run into its time limit', () => {
  it('is replaced at once, and ends when its other calls are over', async () => {
    const { lease, lines } = host({ program: NODE });
    const [late, other] = [await lease(), await lease()];
    const pid = (await ask(other, 'pid')) as number;
    late.timedOut();
    late.done();
    const next = await lease();
    expect(await ask(next, 'pid')).not.toBe(pid);
    expect(await ask(other, 'pid')).toBe(pid);
    other.done();
    await untilEnded(pid);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
    expect(await ask(next, 'pid')).not.toBe(pid);
  });

  it('is replaced when it has ended, where both need the same port', async () => {
    const port = await closedPort();
    const { lease } = host({ program: { kind: 'command', command: SERVER, port } });
    const [late, other] = [await lease(), await lease()];
    const pid = await pidOf(other);
    late.timedOut();
    late.done();
    const next = lease();
    expect(await isWaiting(next)).toBe(true);
    expect(await pidOf(other)).toBe(pid);
    other.done();
    expect(await pidOf(await next)).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
  });
});

describe('a reload', () => {
  it('loses no call: those under way end where they began, new ones wait for the new process', async () => {
    const { app, lease } = host({ program: NODE });
    const before = await lease();
    const pid = (await ask(before, 'pid')) as number;
    app.reload();
    const after = await lease();
    expect(await ask(after, 'pid')).not.toBe(pid);
    expect(await ask(before, 'pid')).toBe(pid);
    before.done();
    await untilEnded(pid);
  });

  it('replaces a process that is still starting', async () => {
    const folder = temporaryDirectory();
    const entry = join(folder, 'main.ts');
    const old = `import { writeFileSync } from 'node:fs';
      writeFileSync(${JSON.stringify(join(folder, 'started'))}, '');
      setInterval(() => {}, 1_000);
      await new Promise(() => {});`;
    writeFileSync(entry, old);
    const { app, lease } = host({ program: { kind: 'node', entry } });
    const asked = lease();
    await vi.waitUntil(() => existsSync(join(folder, 'started')), SOON);
    writeFileSync(entry, 'export const version = () => 2;');
    app.reload();
    expect(await ask(await asked, 'version')).toBe(2);
  });

  it('ends the pause of one that could not be started', async () => {
    const folder = temporaryDirectory();
    const entry = join(folder, 'main.py');
    writeFileSync(entry, 'import nothing_like_that');
    const { app, lease, lines } = host({ program: { kind: 'python', entry, python: 'python3' } });
    await refusal(lease());
    writeFileSync(entry, 'def version(): return 2');
    await vi.waitUntil(() => lines.some(({ level }) => level === 'error'), SOON);
    app.reload();
    expect(await ask(await lease(), 'version')).toBe(2);
  });
});

describe('the stop of an app', () => {
  it('ends every process, whatever it was about to do', async () => {
    const { app, lease, mark } = host({ replicas: 3, concurrency: 2 });
    const [busy, retired] = [await lease(), await lease()];
    retired.timedOut();
    await vi.waitUntil(() => aliveWith(mark).length >= 3, SOON);
    await app.stop();
    await untilNoneAlive(mark);
    for (const place of [busy, retired]) {
      await expect(ask(place, '/pid')).rejects.toThrow('The client is destroyed');
    }
  });

  it('refuses those who wait, and those who come', async () => {
    const { app, lease } = host({ program: shell('sleep 300') });
    const waiting = refusal(lease());
    await app.stop();
    expect(await waiting).toMatchObject({ code: 'shutting_down' });
    expect(await refusal(lease())).toMatchObject({ code: 'shutting_down' });
  });

  it('ends one that has only just begun to start', async () => {
    const { app, mark } = host({ replicas: 4 });
    app.start();
    await app.stop();
    await vi.waitFor(() => expect(aliveWith(mark)).toEqual([]), SOON);
  });

  it('does not wait for the next attempt to start one', async () => {
    // The first pause is never over: nothing is started again before the stop.
    const isPause = (ms: number): boolean => ms === 100;
    const after: Clock['after'] = (ms, task) => (isPause(ms) ? () => {} : systemClock.after(ms, task));
    const { app, lease, lines } = host({ program: shell('exit 1') }, { clock: { ...systemClock, after } });
    await refusal(lease());
    await vi.waitUntil(() => lines.length > 0, SOON);
    await app.stop();
    expect(lines).toHaveLength(1);
  });

  it('lets a process end by itself', async () => {
    const file = join(temporaryDirectory(), 'ended');
    const script = `trap 'echo bye > ${file}; exit 0' TERM; "$0" "$1" & while :; do sleep 0.01; done`;
    const program: Program = { kind: 'command', command: ['/bin/sh', '-c', script, ...SERVER] };
    const { app, lease } = host({ program });
    await lease();
    await app.stop();
    expect(existsSync(file)).toBe(true);
  });

  it('kills one that does not, after 5 s', async () => {
    const clock = new HurriedClock();
    const { app, lease, mark } = host({ env: { STUBBORN: '1' } }, { clock });
    await lease();
    await app.stop();
    expect(clock.waits).toContain(5_000);
    await untilNoneAlive(mark);
  });

  it('can be repeated, and can be all that there ever was', async () => {
    const { app } = host();
    expect(await Promise.all([app.stop(), app.stop()])).toEqual([undefined, undefined]);
  });
});
