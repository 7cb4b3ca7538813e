/**
 * Workers that are killed and replaced under load, and their primary in the end: nothing acknowledged is lost,
 * nothing is sent more often than permitted, nobody notices but the callers of the one that was killed.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { untilEnded, untilNoneAlive } from '../support/alive.ts';
import { startLoad } from '../support/load.ts';
import { configure, openStoreOf, type Place, readMetric } from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { serveWorkers, type WorkersRig } from '../support/workers.ts';
import { openMoodyReceiver, type Post } from './moody-receiver.ts';
import { openSizedApp } from './sized-app.ts';
import { ended, expectLawful, expectSettled, type Lost, unmet } from './verdict.ts';

const LONG = process.env['AFTERWORD_FAULTS'] === 'long';
const KILLS = LONG ? 100 : 3;
const HAND_OVERS = LONG ? 20 : 1;
const SETTLED = { timeout: 30_000, interval: 100 };
/** Connections of the load. Each that a killed worker had fails the call that is on it, and no other. */
const LANES = 12;
/** What a kill can cost at most: each lane has one call under way. */
const COST = LANES;

async function prepare(): Promise<Place> {
  return configure({
    apps: await openSizedApp(),
    // Those that hang must not take all slots; the more so in the long form, where an attempt is not given up
    // because the machine is slow.
    webhooks: { attemptTimeout: LONG ? '10s' : '3s', commitWait: '10s', concurrency: 2048, perTarget: 256 },
    more: { workers: 2 },
  });
}

/** The moment of a kill; it is over when what the killed one had sent last can have been noticed. */
interface Kill {
  readonly at: number;
  readonly over: number;
}

async function killOne(rig: WorkersRig, number: number): Promise<Kill> {
  await setTimeout(Math.random() * 500);
  const pid = rig.pidOf(number);
  const at = Date.now();
  process.kill(pid, 'SIGKILL');
  await untilEnded(pid);
  // What lies in sockets is read here, by an event loop with much to do: it has several turns for that.
  for (let turn = 0; turn < 20; turn += 1) await setTimeout(5);
  const over = Date.now();
  await rig.successorOf(pid, number);
  return { at, over };
}

describe('workers that are killed and replaced under load', () => {
  it(`${KILLS} kills, ${HAND_OVERS} hand-overs and the end of all`, async () => {
    const place = await prepare();
    const receiver = await openMoodyReceiver('the secret of the load');
    const load = startLoad({ token: await testToken(), target: receiver.url, lanes: LANES });
    const untilBusy = async (): Promise<void> => {
      const before = load.answers.length;
      await vi.waitUntil(() => load.answers.length > before + 50, SETTLED);
    };

    const first = await serveWorkers(place);
    load.aim(first.addresses.port);
    await untilBusy();
    for (let handOver = 0; handOver < HAND_OVERS; handOver += 1) {
      const done = (): number => first.lines().filter(({ msg }) => msg === 'the workers are replaced').length;
      const before = done();
      first.service.signal('SIGHUP');
      await vi.waitUntil(() => done() > before, SETTLED);
      await untilBusy();
    }
    expect(load.failures).toEqual([]);

    const kills: Kill[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = load.failures.length;
      kills.push(await killOne(first, 1 + (kill % 2)));
      await untilBusy();
      expect(load.failures.length - before).toBeLessThanOrEqual(COST);
    }
    await first.service.kill();
    load.aim(undefined);
    await untilNoneAlive(first.mark);
    await receiver.nextLife();

    const second = await serveWorkers(place);
    load.aim(second.addresses.port);
    await untilBusy();
    const answers = await load.stop();
    await vi.waitFor(() => expect(unmet(answers, receiver.posts)).toEqual([]), SETTLED);
    const held = () => readMetric(second.addresses, 'deliveries_held');
    await vi.waitFor(async () => expect(await held()).toBe(0), SETTLED);
    expect(await second.service.stop()).toEqual({ code: 0, signal: null });
    await untilNoneAlive(second.mark);

    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expectLawful(answers, receiver.posts, lostTo(kills));
    const store = await openStoreOf(place);
    await expectSettled(store, answers);
    const files = await readdir(join(place.data, 'spool'));
    const known = await Promise.all(files.map(file => store.find(file).catch(() => undefined)));
    expect(files.filter((_, index) => known[index] === undefined)).toEqual([]);
  });
});

/** A delivery can be lost with the worker that was killed after it had sent it, or with all of them. */
function lostTo(kills: readonly Kill[]): Lost {
  const between = (sent: Post, next: Post): boolean =>
    kills.some(({ at, over }) => sent.at <= over && next.at >= at);
  return (sent, next) => ended(sent, next) || between(sent, next);
}
