/** What every store must do with what has been counted. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Counts, type HostCounts, LATENCY_BOUNDS, type MinuteCounts } from '../../src/store/stats.ts';
import type { Store } from '../../src/store/store.ts';
import type { OpenStore, Place } from './conformance.ts';
import { temporaryDirectory } from './samples.ts';

const MINUTE = 60_000;
const HOUR = 3_600_000;
/** The beginning of a day. */
const T = 1_800_057_600_000;
const BUCKETS = LATENCY_BOUNDS.length + 1;

/** First attempts, so many in each of these buckets. */
function inBuckets(counts: Record<number, number> = {}): number[] {
  return Array.from({ length: BUCKETS }, (_, bucket) => counts[bucket] ?? 0);
}

const NONE: Counts = {
  calls: 0,
  callErrors: 0,
  made: 0,
  delivered: 0,
  failed: 0,
  firstAttempts: inBuckets(),
};

function minute(at: number, counts: Partial<Counts>, projectId = 'p-demo'): MinuteCounts {
  return { ...NONE, projectId, minute: T + at * MINUTE, ...counts };
}

function host(
  name: string,
  hour: number,
  attempts: number,
  failures: number,
  projectId = 'p-demo',
): HostCounts {
  return { projectId, host: name, hour: T + hour * HOUR, attempts, failures };
}

export function statsConformance(name: string, openStore: OpenStore): void {
  describe(`${name} as a store of numbers`, () => {
    let place: Place;
    let store: Store;

    beforeEach(async () => {
      const dir = temporaryDirectory();
      place = { dir, spoolDir: join(dir, 'spool') };
      store = await openStore(place);
      onTestFinished(() => store.close());
    });

    describe('spans', () => {
      it('has none where nothing was counted', async () => {
        await store.stats.add([], []);
        expect(await store.stats.spans({ since: T, step: MINUTE })).toEqual([]);
        expect(await store.stats.failingHosts({ since: T }, 10)).toEqual([]);
      });

      it('tells each number as it was counted', async () => {
        const counts: Counts = {
          calls: 1,
          callErrors: 2,
          made: 3,
          delivered: 4,
          failed: 5,
          firstAttempts: inBuckets({ 0: 6, 17: 1_000_000, [BUCKETS - 1]: 7 }),
        };
        await store.stats.add([minute(0, counts)], []);
        expect(await store.stats.spans({ since: T, step: MINUTE })).toEqual([{ at: T, ...counts }]);
      });

      it('adds to what is there, also within one addition and after a new start', async () => {
        const one = minute(0, { calls: 1, firstAttempts: inBuckets({ 3: 1 }) });
        await store.stats.add([one, one], []);
        await store.stats.add([one], []);
        await store.close();
        store = await openStore(place);
        await store.stats.add([one], []);
        expect(await store.stats.spans({ since: T, step: MINUTE })).toMatchObject([
          { at: T, calls: 4, firstAttempts: inBuckets({ 3: 4 }) },
        ]);
      });

      it('adds up by steps, which begin at whole multiples of themselves, oldest first', async () => {
        const minutes = [119, 60, 59, 0, -1].map(at =>
          minute(at, { made: 1, firstAttempts: inBuckets({ 5: 2 }) }),
        );
        await store.stats.add(minutes, []);
        const spans = (since: number, step: number) => store.stats.spans({ since, step });
        expect(await spans(T, HOUR)).toMatchObject([
          { at: T, made: 2, firstAttempts: inBuckets({ 5: 4 }) },
          { at: T + HOUR, made: 2, firstAttempts: inBuckets({ 5: 4 }) },
        ]);
        expect(await spans(T + MINUTE, HOUR)).toMatchObject([
          { at: T, made: 1 },
          { at: T + HOUR, made: 2 },
        ]);
        expect((await spans(T - HOUR, MINUTE)).map(({ at }) => (at - T) / MINUTE)).toEqual([
          -1, 0, 59, 60, 119,
        ]);
        expect(await spans(T - HOUR, 24 * HOUR)).toMatchObject([
          { at: T - 24 * HOUR, made: 1 },
          { at: T, made: 4 },
        ]);
      });

      it('tells those of one project, or of all together', async () => {
        await store.stats.add([minute(0, { calls: 1 }, 'p-a'), minute(0, { calls: 2 }, 'p-b')], []);
        const calls = async (projectId?: string) => {
          const window = { since: T, step: MINUTE, ...(projectId !== undefined && { projectId }) };
          return (await store.stats.spans(window)).map(span => span.calls);
        };
        expect([await calls('p-a'), await calls('p-b'), await calls(), await calls('p-none')]).toEqual([
          [1],
          [2],
          [3],
          [],
        ]);
      });
    });

    describe('failing hosts', () => {
      it('come with the most failures first, and only those that have any', async () => {
        const hosts = [
          host('a', 0, 10, 2),
          host('b', 0, 9, 9),
          host('c', 0, 100, 0),
          host('d:8080', 0, 5, 5),
        ];
        await store.stats.add([], hosts);
        const expected = [
          { host: 'b', attempts: 9, failures: 9 },
          { host: 'd:8080', attempts: 5, failures: 5 },
          { host: 'a', attempts: 10, failures: 2 },
        ];
        expect(await store.stats.failingHosts({ since: T }, 10)).toEqual(expected);
        expect(await store.stats.failingHosts({ since: T }, 2)).toEqual(expected.slice(0, 2));
      });

      it('are added up over the hours of the window, the one that it begins in included', async () => {
        await store.stats.add([], [host('a', 0, 1, 1), host('a', 1, 2, 2), host('a', 1, 4, 4)]);
        await store.stats.add([], [host('a', 2, 8, 8)]);
        const failures = async (since: number) =>
          (await store.stats.failingHosts({ since }, 1)).map(each => each.failures);
        expect(await failures(T)).toEqual([15]);
        expect(await failures(T + HOUR)).toEqual([14]);
        expect(await failures(T + 2 * HOUR - 1)).toEqual([14]);
        expect(await failures(T + 3 * HOUR)).toEqual([]);
      });

      it('are those of one project, or of all together', async () => {
        await store.stats.add(
          [],
          [host('a', 0, 2, 1, 'p-a'), host('a', 0, 3, 2, 'p-b'), host('b', 0, 4, 4, 'p-b')],
        );
        const of = (projectId?: string) =>
          store.stats.failingHosts({ since: T, ...(projectId !== undefined && { projectId }) }, 10);
        expect(await of('p-a')).toEqual([{ host: 'a', attempts: 2, failures: 1 }]);
        expect(await of()).toEqual([
          { host: 'b', attempts: 4, failures: 4 },
          { host: 'a', attempts: 5, failures: 3 },
        ]);
      });
    });

    describe('prune', () => {
      it('deletes what is older, and nothing else', async () => {
        await store.stats.add(
          [minute(0, { calls: 1 }), minute(60, { calls: 2 })],
          [host('a', 0, 1, 1), host('a', 1, 2, 2)],
        );
        await store.stats.prune(T + HOUR);
        expect(await store.stats.spans({ since: 0, step: MINUTE })).toMatchObject([
          { at: T + HOUR, calls: 2 },
        ]);
        expect(await store.stats.failingHosts({ since: 0 }, 10)).toEqual([
          { host: 'a', attempts: 2, failures: 2 },
        ]);
      });
    });
  });
}
