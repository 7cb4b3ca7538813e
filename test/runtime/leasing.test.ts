/**
 * Places in the processes of apps for calls that another process takes: the same places, and the same bound,
 * as for calls taken here.
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { AppConfig } from '../../src/config/config.ts';
import { Problem } from '../../src/errors.ts';
import type { HostedApp, Lease } from '../../src/runtime/hosted-app.ts';
import { type LeaseReply, type LeaseRequest, serveLeases } from '../../src/runtime/leasing.ts';
import { createRemoteHost } from '../../src/runtime/remote-host.ts';
import { ManualClock } from '../support/clock.ts';
import { portPair } from '../support/ports.ts';
import { ask, host, NODE, shell } from './hosting.ts';

const APP = { projectId: 'p-test', name: 'app' } as AppConfig;
const WAIT = { timeout: 10_000, interval: 5 };
const wanted = (): boolean => true;

/** Another process that takes calls of `app`. */
function takeCalls(app: HostedApp, clock = systemClock) {
  const { here, there, cut } = portPair<LeaseReply, LeaseRequest>();
  const asked: string[] = [];
  const leasing = serveLeases({
    host: {
      lease(_app, stillWanted) {
        asked.push('lease');
        return app.lease(stillWanted);
      },
      states: () => [{ ...app.state(), projectId: APP.projectId, app: APP.name }],
    },
    port: here,
    appOf: (projectId, name) => ({ ...APP, projectId, name }),
  });
  const remote = createRemoteHost({ port: there, appTimeout: 60_000, clock });
  onTestFinished(() => remote.stop());
  return { remote, leasing, asked, cut, lease: async (want = wanted) => remote.lease(APP, want) };
}

/** Whether a promise is settled once everything that is on its way has arrived. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => void (settled = true);
  promise.then(note, note);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve));
  return settled;
}

describe('a place for a call of another process', () => {
  it.each([
    ['a server that is told its port', {}, '/pid'],
    ['functions on a Unix socket', { program: NODE }, 'pid'],
  ])('is one in %s, reached over a connection of its own', async (_, program, path) => {
    const hosting = host(program);
    const [local, remote] = [await hosting.lease(), await takeCalls(hosting.app).lease()];
    expect(remote.pool).not.toBe(local.pool);
    expect(await ask(remote, path)).toEqual(await ask(local, path));
  });

  it('is seen by the other process, as all that is told of the app', async () => {
    const hosting = host({ concurrency: 2 });
    const { remote, lease } = takeCalls(hosting.app);
    expect(await remote.states()).toMatchObject([
      { projectId: 'p-test', app: 'app', phase: 'idle', replicas: [] },
    ]);
    await lease();
    expect(await remote.states()).toMatchObject([
      { phase: 'ready', waiting: 0, replicas: [{ index: 0, phase: 'ready', restarts: 0, active: 1 }] },
    ]);
  });

  it('counts as those of this process do, until it is given back', async () => {
    const hosting = host({ concurrency: 2 });
    const [one, other] = [takeCalls(hosting.app), takeCalls(hosting.app)];
    const first = await one.lease();
    await other.lease();
    const third = other.lease();
    expect(await isSettled(third)).toBe(false);
    first.done();
    first.done(); // once more makes no other place free
    await third;
    expect(await isSettled(one.lease())).toBe(false);
  });

  it.each([
    ['no room to wait', { concurrency: 1, queue: 0 }, 'app_busy', ['Retry-After', '1']],
    ['a process that does not start', { program: shell('exit 3') }, 'app_unreachable', []],
  ])('is refused for the same reason: %s', async (_, config, code, headers) => {
    const hosting = host(config);
    const { lease } = takeCalls(hosting.app);
    const places = Promise.all([lease(), lease()]);
    const error = await places.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Problem);
    expect(error).toMatchObject({ code, headers });
  });

  it('lets a process be retired whose call ran into its time limit', async () => {
    const hosting = host();
    const { lease } = takeCalls(hosting.app);
    const late = await lease();
    const before = await ask(late, '/pid');
    late.timedOut();
    late.done();
    await vi.waitUntil(() => hosting.ready() === 2, WAIT);
    expect(await ask(await lease(), '/pid')).not.toEqual(before);
  });

  it('tells whether its process has ended', async () => {
    const hosting = host({ program: NODE });
    const { lease } = takeCalls(hosting.app);
    const place = await lease();
    expect(await place.crashed!()).toBe(false);
    const pid = Number(await ask(place, 'pid'));
    expect(pid).toBeGreaterThan(1);
    process.kill(pid, 'SIGKILL');
    expect(await place.crashed!()).toBe(true);
  });
});

describe('a call that nobody wants any more', () => {
  it('makes room for another, once its process has said so', async () => {
    const hosting = host({ concurrency: 1, queue: 1 });
    const clock = new ManualClock();
    const { lease } = takeCalls(hosting.app, clock);
    await lease();
    let gone = false;
    const abandoned = lease(() => !gone);
    abandoned.catch(() => {});
    expect(await isSettled(abandoned)).toBe(false);
    await expect(lease()).rejects.toMatchObject({ code: 'app_busy' });

    gone = true;
    clock.advance(100);
    expect(await isSettled(abandoned)).toBe(false);
    const next = lease();
    expect(await isSettled(abandoned)).toBe(true);
    expect(await isSettled(next)).toBe(false); // it waits, in that one's place
  });
});

describe('a process that is gone', () => {
  it('gives back its places, and wants no more', async () => {
    const hosting = host({ concurrency: 2 });
    const [dead, other] = [takeCalls(hosting.app), takeCalls(hosting.app)];
    await Promise.all([dead.lease(), dead.lease()]);
    const waiting = dead.lease();
    waiting.catch(() => {});
    await vi.waitUntil(() => dead.asked.length === 3, WAIT);
    dead.cut();
    dead.leasing.end();
    const places: Lease[] = await Promise.all([other.lease(), other.lease()]);
    expect(places).toHaveLength(2);
    expect(await isSettled(other.lease())).toBe(false);
  });
});
