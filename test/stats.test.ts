/**
 * What is counted in memory reaches the store: by minute and hour, every ten seconds and at the stop, within
 * bounds, and whatever the store does.
 */
import { expect, it } from 'vitest';
import { silentLogger } from '../src/log.ts';
import { createStatistics, type Statistics } from '../src/stats.ts';
import type { HostCounts, MinuteCounts, StatsStore } from '../src/store/stats.ts';
import { ManualClock } from './support/clock.ts';
import { until } from './support/waiting.ts';

const START = 1_800_000_000_000;
const P = 'p-demo';

function open(add: StatsStore['add'] = async () => {}) {
  const clock = new ManualClock(START);
  const added: [MinuteCounts[], HostCounts[]][] = [];
  const pruned: number[] = [];
  const stats = {
    async add(minutes: readonly MinuteCounts[], hosts: readonly HostCounts[]) {
      added.push([[...minutes], [...hosts]]);
      await add(minutes, hosts);
    },
    prune: async (before: number) => void pruned.push(before),
  } as StatsStore;
  const projects = new Set([P, 'p-other']);
  const statistics = createStatistics({ stats, projects, clock, log: silentLogger });
  statistics.start();
  return { clock, added, pruned, statistics };
}

function attempt(statistics: Statistics, of: Partial<Parameters<Statistics['attempt']>[0]> = {}): void {
  statistics.attempt({ projectId: P, host: 'a.example', first: true, delivered: true, totalMs: 5, ...of });
}

it('counts by project and minute, and by receiver and hour', async () => {
  const { clock, added, statistics } = open();
  statistics.call({ projectId: P, status: 200 });
  statistics.call({ projectId: P, status: 503 });
  statistics.call({ projectId: 'p-other', status: 499 });
  statistics.call({ projectId: 'nobody', status: 200 });
  statistics.call({ projectId: undefined, status: 401 });
  statistics.made({ projectId: P });
  attempt(statistics);
  attempt(statistics, { first: false, delivered: false });
  attempt(statistics, { totalMs: 1e9 });
  statistics.settled({ projectId: P, state: 'delivered' });
  statistics.settled({ projectId: P, state: 'failed' });
  clock.advance(10_000);
  const [[minutes, hosts]] = added as [[MinuteCounts[], HostCounts[]]];
  const minute = START - (START % 60_000);
  expect(minutes).toMatchObject([
    { projectId: P, minute, calls: 2, callErrors: 1, made: 1, delivered: 1, failed: 1 },
    { projectId: 'p-other', minute, calls: 1, callErrors: 0 },
  ]);
  const { firstAttempts } = minutes[0]!;
  expect(firstAttempts).toHaveLength(37);
  expect([firstAttempts[5], firstAttempts[36], firstAttempts.reduce((a, b) => a + b)]).toEqual([1, 1, 2]);
  const hour = START - (START % 3_600_000);
  expect(hosts).toEqual([{ projectId: P, host: 'a.example', hour, attempts: 3, failures: 1 }]);
  await statistics.stop();
});

it('adds each number once, with the minute that it is of, and the rest at the stop', async () => {
  const { clock, added, statistics } = open();
  for (let second = 0; second < 65; second += 1) {
    statistics.call({ projectId: P, status: 200 });
    clock.advance(1_000);
  }
  await statistics.stop();
  const minutes = added.flatMap(([counted]) => counted);
  const sum = (of: readonly MinuteCounts[]): number => of.reduce((all, { calls }) => all + calls, 0);
  expect(sum(minutes)).toBe(65);
  expect(new Set(minutes.map(({ minute }) => minute)).size).toBe(2);
  expect(clock.waiting).toBe(0);
});

it('has nothing to say of a quiet time', async () => {
  const { clock, added, pruned, statistics } = open();
  clock.advance(10_000);
  await until(() => pruned.length === 1);
  clock.advance(60_000);
  await statistics.stop();
  expect(added).toEqual([]);
  expect(pruned).toEqual([START + 10_000 - 8 * 86_400_000]);
});

it('counts receivers beyond a thousand together', async () => {
  const { clock, added, statistics } = open();
  for (let i = 0; i < 3_000; i += 1) attempt(statistics, { host: `h${i}.example`, delivered: false });
  attempt(statistics, { host: 'h0.example' });
  clock.advance(10_000);
  const [, hosts] = added[0]!;
  expect(hosts).toHaveLength(1_001);
  expect(hosts.find(({ host }) => host === 'other')).toMatchObject({ attempts: 2_000, failures: 2_000 });
  expect(hosts.find(({ host }) => host === 'h0.example')).toMatchObject({ attempts: 2 });
  await statistics.stop();
});

it('goes on counting while the store takes long, and gives the rest to the next', async () => {
  const gate = Promise.withResolvers<void>();
  const { clock, added, statistics } = open(() => gate.promise);
  statistics.call({ projectId: P, status: 200 });
  clock.advance(10_000);
  statistics.call({ projectId: P, status: 200 });
  clock.advance(60_000);
  expect(added).toHaveLength(1);
  gate.resolve();
  await statistics.stop();
  expect(added.map(([[counted]]) => counted!.calls)).toEqual([1, 1]);
});

it('keeps the last hours alone while the store takes nothing', async () => {
  const gate = Promise.withResolvers<void>();
  const { clock, added, statistics } = open(() => gate.promise);
  for (let minute = 0; minute < 1_000; minute += 1) {
    statistics.call({ projectId: P, status: 200 });
    clock.advance(60_000);
  }
  expect(added).toHaveLength(1);
  gate.resolve();
  await statistics.stop();
  const [, [minutes]] = added as [unknown, [MinuteCounts[]]];
  expect(minutes).toHaveLength(240);
  expect(minutes.at(-1)!.minute).toBeGreaterThan(clock.now() - 120_000);
});

it('does not hold up a stop for long', async () => {
  const { clock, statistics } = open(() => new Promise(() => {}));
  statistics.call({ projectId: P, status: 200 });
  const stopping = statistics.stop();
  clock.advance(1_000);
  await stopping;
  expect(clock.waiting).toBe(0);
});

it('is not held up, nor ended, by a store that fails', async () => {
  let fails = true;
  const { clock, added, statistics } = open(async () => {
    if (fails) throw new Error('no store');
  });
  statistics.call({ projectId: P, status: 200 });
  clock.advance(10_000);
  await until(() => added.length === 1);
  fails = false;
  statistics.call({ projectId: P, status: 200 });
  await statistics.stop();
  expect(added).toHaveLength(2);
});
