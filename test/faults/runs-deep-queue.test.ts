/**
 * A queue of very many runs costs nobody but those who wait in it: its app gets no more at once than it takes,
 * in the order of the calls, memory does not grow, other apps are not held up, and callers get their 202 as fast
 * as ever. What depends on the machine is compared with a service whose queue is short, doing the same work in
 * turns with the other.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { latencyOf } from '../../bench/latency.ts';
import { until } from '../support/waiting.ts';
import type { PacedApp } from './paced-app.ts';
import { openSide, type QueueSide } from './queue-side.ts';

const DEPTH = process.env['AFTERWORD_FAULTS'] === 'long' ? 10_000 : 2_000;
const CONCURRENCY = 4;
/** Enough that the app is never idle. */
const SHORT = 2 * CONCURRENCY;
/** How far a run may begin from its place: some are called for at once, and some begin at once. */
const DISPLACED = 8;
/** Of the requests in the rear half of the queue. In the long form all of them are twice what memory may grow by. */
const REQUEST_BYTES = 60 * 1024;
/**
 * Beyond the most that the same work takes with a short queue. 80 to 100 MiB were measured, with five times the
 * depth hardly more: the store's page cache (32 MiB) fills, and garbage is collected later under more load.
 */
const GROWTH = 150 * 1024 * 1024;
/** Turns that each side takes, and callers whose time is taken in each. */
const [TURNS, CALLS] = [5, 120];
const OTHERS = 15;
/** A machine that has other things to do at the wrong moment spoils a p99, which is then taken anew: so often. */
const TRIES = 4;

type Sides = Readonly<Record<'short' | 'deep', QueueSide>>;
/** In milliseconds. */
type Times = Readonly<Record<'short' | 'deep', number>>;

/** What is compared happens at its front, where all are as small as in a short one. */
async function fill(side: QueueSide, most?: number): Promise<void> {
  await side.fill(DEPTH / 2, 0, most);
  await side.fill(DEPTH / 2, REQUEST_BYTES, most);
}

/** What callers of each wait for their 202, as p99. */
async function callersOf({ short, deep }: Sides): Promise<Times> {
  const enough = (latencies: readonly number[]): Promise<void> => until(() => latencies.length >= CALLS);
  const taken = { short: [] as number[], deep: [] as number[] };
  for (let turn = 0; turn < TURNS; turn += 1) {
    taken.short.push(...(await short.keepBusy(enough)));
    taken.deep.push(...(await deep.keepBusy(enough)));
  }
  return { short: latencyOf(taken.short).p99Ms, deep: latencyOf(taken.deep).p99Ms };
}

/** How long a run of the other app takes, as the median. */
async function othersOf({ short, deep }: Sides): Promise<Times> {
  return { short: await othersBeside(short), deep: await othersBeside(deep) };
}

async function othersBeside(side: QueueSide): Promise<number> {
  const taken: number[] = [];
  await side.keepBusy(async () => {
    while (taken.length < OTHERS) taken.push(await side.timeOther());
  });
  return latencyOf(taken).p50Ms;
}

/** Throws unless the times of the deep one are once within this many times those of the short one. */
async function expectWithin(ratio: number, times: () => Promise<Times>): Promise<void> {
  const seen: Times[] = [];
  while (seen.length < TRIES) {
    const taken = await times();
    if (taken.deep <= ratio * taken.short) return;
    seen.push(taken);
  }
  expect.fail(`never within ${ratio} times the short queue: ${JSON.stringify(seen)}`);
}

/** The most memory that it takes meanwhile. */
async function memoryOf({ rss }: QueueSide, during: () => Promise<void>): Promise<number> {
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, rss())), 50);
  onTestFinished(() => clearInterval(watch));
  await during();
  clearInterval(watch);
  return most;
}

/** The same work, with a queue that stays short. */
async function warmUp(side: QueueSide): Promise<void> {
  side.app.run(0);
  await fill(side, SHORT);
  await side.workOff();
}

/** Throws unless all came, each once, about in the order of the calls, and never too many at once. */
function expectInOrder({ begun, peak }: PacedApp): void {
  expect(peak).toBe(CONCURRENCY);
  expect(begun.toSorted((one, other) => one - other)).toEqual(begun.map((_, index) => index));
  const displaced = begun.map((number, index) => Math.abs(number - index));
  expect(Math.max(...displaced)).toBeLessThan(DISPLACED);
}

describe('a deep queue', () => {
  it(`of ${DEPTH} runs is worked off in order, and is felt by nobody else`, async () => {
    const [short, deep] = await Promise.all([openSide(CONCURRENCY), openSide(CONCURRENCY)]);
    const usual = [await memoryOf(short, () => warmUp(short)), await memoryOf(deep, () => warmUp(deep))];
    await short.fill(SHORT, 0);

    const most = await memoryOf(deep, async () => {
      await fill(deep);
      await expectWithin(1.5, () => callersOf({ short, deep }));
      await expectWithin(2, () => othersOf({ short, deep }));
      expect(deep.depth()).toBeGreaterThanOrEqual(DEPTH);
      const workedOff = deep.workOff();
      await deep.timeOther();
      expect(deep.depth()).toBeGreaterThan(DEPTH / 2);
      await workedOff;
    });
    expect(most - Math.max(...usual)).toBeLessThan(GROWTH);
    await short.workOff();
    for (const { app, service } of [short, deep]) {
      expectInOrder(app);
      expect(await service.stop()).toEqual({ code: 0, signal: null });
    }
  });
});
