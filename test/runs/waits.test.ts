/** Waiting for the end of a run: told at once by this process, found out a little later otherwise. */
import { expect, it } from 'vitest';
import { silentLogger } from '../../src/log.ts';
import { createWaits } from '../../src/runs/waits.ts';
import { ManualClock } from '../support/clock.ts';

function rig() {
  const clock = new ManualClock();
  const asked: Array<readonly string[]> = [];
  const over = new Set<string>();
  let failure: Error | undefined;
  const runs = {
    ended: async (runIds: readonly string[]) => {
      asked.push(runIds);
      if (failure !== undefined) throw failure;
      return runIds.filter(id => over.has(id));
    },
  };
  const waits = createWaits({ runs, clock, log: silentLogger });
  const told: string[] = [];
  const begin = (runId: string, ms = 10_000, signal = new AbortController().signal) =>
    waits.wait(runId, { ms, signal }).then(() => void told.push(runId));
  const tick = async (ms = 250) => {
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  const fail = (error: Error | undefined) => void (failure = error);
  return { clock, asked, over, waits, told, begin, tick, fail };
}

it('is told at once of a run that ends here', async () => {
  const { waits, begin, told } = rig();
  const both = [begin('a'), begin('a'), begin('b')] as const;
  waits.ended('a');
  await Promise.all(both.slice(0, 2));
  expect(told).toEqual(['a', 'a']);
  waits.ended('b');
  await both[2];
});

it('asks the store for all together, and tells those whose run has ended elsewhere', async () => {
  const { asked, over, told, begin, tick } = rig();
  void begin('a');
  void begin('b');
  await tick();
  expect(asked).toEqual([['a', 'b']]);
  over.add('b');
  await tick();
  expect(told).toEqual(['b']);
  await tick();
  expect(asked.at(-1)).toEqual(['a']);
});

it('resolves when the time is up, or when it is not wanted any more', async () => {
  const { clock, told, begin, tick } = rig();
  const stop = new AbortController();
  void begin('a', 1_000);
  void begin('b', 1_000, stop.signal);
  void begin('c', 1_000, AbortSignal.abort());
  await tick(0);
  expect(told).toEqual(['c']);
  stop.abort();
  await tick(0);
  expect(told).toEqual(['c', 'b']);
  await tick(1_000);
  expect(told).toEqual(['c', 'b', 'a']);
  await tick();
  expect(clock.waiting, 'nobody waits: nobody asks').toBe(0);
});

it('goes on asking after the store could not answer', async () => {
  const { over, told, begin, tick, fail } = rig();
  void begin('a');
  over.add('a');
  fail(new Error('away'));
  await tick();
  expect(told).toEqual([]);
  fail(undefined);
  await tick();
  expect(told).toEqual(['a']);
});
