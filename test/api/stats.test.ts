/**
 * The numbers of a window: percentiles out of the histogram, spans without gaps, what waits and who fails.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { percentile } from '../../src/api/percentile.ts';
import { Stats } from '../../src/api/stats-contract.ts';
import { type Counts, LATENCY_BOUNDS } from '../../src/store/stats.ts';
import { ManualClock } from '../support/clock.ts';
import { openRig, PROJECT } from './rig.ts';

const NOW = Date.UTC(2027, 0, 15, 12, 34, 56);
const MINUTE = 60_000;
const clock = new ManualClock(NOW);

function counts(given: Partial<Counts>, buckets: Readonly<Record<number, number>> = {}): Counts {
  const firstAttempts = Array.from({ length: LATENCY_BOUNDS.length + 1 }, (_, index) => buckets[index] ?? 0);
  return { calls: 0, callErrors: 0, made: 0, delivered: 0, failed: 0, firstAttempts, ...given };
}

async function statsOf(rig: Awaited<ReturnType<typeof openRig>>, query = '', path = `/v4/${PROJECT}/_stats`) {
  const { status, json } = await rig.get(path + query);
  expect([status, json]).toMatchObject([200, {}]);
  return Stats.strict().parse(json);
}

describe('the numbers', () => {
  it('of an hour are told by the minute, without gaps', async () => {
    const rig = await openRig({}, { clock });
    const at = Math.floor(NOW / MINUTE) * MINUTE;
    await rig.store.stats.add(
      [
        {
          projectId: PROJECT,
          minute: at,
          ...counts({ calls: 4, callErrors: 1, made: 3, delivered: 3 }, { 4: 3 }),
        },
        { projectId: PROJECT, minute: at - 10 * MINUTE, ...counts({ calls: 1, failed: 1 }, { 8: 1 }) },
        { projectId: PROJECT, minute: at - 61 * MINUTE, ...counts({ calls: 1_000 }) },
        { projectId: 'p-else', minute: at, ...counts({ calls: 50 }) },
      ],
      [
        { projectId: PROJECT, host: 'a.example', hour: NOW - (NOW % 3_600_000), attempts: 5, failures: 2 },
        { projectId: PROJECT, host: 'b.example', hour: NOW - (NOW % 3_600_000), attempts: 9, failures: 7 },
      ],
    );
    const { createdAt } = await rig.deliver({ createdAt: NOW - 5_000 });
    const stats = await statsOf(rig);
    expect(stats.spans).toHaveLength(60);
    expect(stats.since).toBe(new Date(at - 59 * MINUTE).toISOString());
    expect(stats.spans[0]!.at).toBe(stats.since);
    expect(stats.spans.at(-1)).toMatchObject({
      at: new Date(at).toISOString(),
      calls: 4,
      call_errors: 1,
      made: 3,
    });
    expect(stats.spans.at(-2)).toEqual({
      at: new Date(at - MINUTE).toISOString(),
      calls: 0,
      call_errors: 0,
      made: 0,
      delivered: 0,
      failed: 0,
      p50_ms: null,
      p95_ms: null,
    });
    expect(stats.totals).toMatchObject({ calls: 5, delivered: 3, failed: 1, success_rate: 0.75 });
    expect(stats.totals.p95_ms).toBeGreaterThan(stats.totals.p50_ms!);
    expect(stats.backlog).toEqual({ pending: 1, oldest_at: new Date(createdAt).toISOString() });
    expect(stats.failing_hosts).toEqual([
      { host: 'b.example', attempts: 9, failures: 7 },
      { host: 'a.example', attempts: 5, failures: 2 },
    ]);
    expect((await statsOf(rig, '', '/api/v1/stats')).totals.calls).toBe(55);
    expect((await statsOf(rig, '?project=p-else', '/api/v1/stats')).totals.calls).toBe(50);
  });

  it.each([
    ['1h', 60, 60],
    ['24h', 600, 144],
    ['7d', 3600, 168],
  ])('of %s come in steps of %d seconds', async (window, seconds, spans) => {
    const rig = await openRig({}, { clock });
    const stats = await statsOf(rig, `?window=${window}`);
    expect([stats.step_seconds, stats.spans.length]).toEqual([seconds, spans]);
    expect(stats.totals).toMatchObject({ calls: 0, success_rate: null, p50_ms: null });
    expect(stats.backlog).toEqual({ pending: 0 });
    const times = stats.spans.map(({ at }) => Date.parse(at));
    expect(times.every((at, index) => index === 0 || seconds * 1_000 === at - times[index - 1]!)).toBe(true);
    expect(times.at(-1)).toBeGreaterThan(NOW - seconds * 1_000);
  });
});

describe('a percentile', () => {
  const bounds = [1, 2, 4];
  it.each([
    ['of nothing', [0, 0, 0, 0], 0.5, null],
    ['in the first bucket begins at 0', [2, 0, 0, 0], 0.5, 0.5],
    ['lies within its bucket', [0, 4, 0, 0], 0.25, 1.25],
    ['is the upper bound where it is the last of its bucket', [0, 4, 4, 0], 0.5, 2],
    ['passes buckets that have nothing', [1, 0, 1, 0], 0.75, 3],
    ['of the last bucket is all that is known', [0, 0, 0, 5], 0.95, 4],
  ])('%s', (_, counts, share, expected) => {
    expect(percentile(counts, bounds, share)).toBe(expected);
  });

  it('is within the bucket of the time that it stands for, and grows with the share', () => {
    const time = fc.double({ min: 0.1, max: 100_000, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(time, { minLength: 1 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (times, share) => {
          const counts = LATENCY_BOUNDS.map(() => 0).concat(0);
          const bucketOf = (ms: number): number => {
            const index = LATENCY_BOUNDS.findIndex(bound => ms <= bound);
            return index === -1 ? LATENCY_BOUNDS.length : index;
          };
          for (const each of times) counts[bucketOf(each)]! += 1;
          const sorted = times.toSorted((a, b) => a - b);
          const real = sorted[Math.ceil(share * sorted.length) - 1]!;
          const found = percentile(counts, LATENCY_BOUNDS, share)!;
          const index = bucketOf(real);
          expect(found).toBeGreaterThanOrEqual(LATENCY_BOUNDS[index - 1] ?? 0);
          expect(found).toBeLessThanOrEqual(LATENCY_BOUNDS[index] ?? Infinity);
          expect(percentile(counts, LATENCY_BOUNDS, 1)).toBeGreaterThanOrEqual(found);
        },
      ),
    );
  });
});
