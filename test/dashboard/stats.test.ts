/** The numbers of a window as the dashboard draws them: as rates, and without a false fall at their end. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StatsSpan } from '../../dashboard/src/api/shapes.ts';
import {
  createTimeNames,
  isQuiet,
  loneIndexes,
  perMinute,
  rate,
  seriesOf,
  windowOf,
  wordsOf,
} from '../../dashboard/src/stats.ts';

const START = Date.parse('2027-01-15T08:00:00Z');
const MINUTE = 60_000;

const NOTHING = { calls: 0, call_errors: 0, made: 0, delivered: 0, failed: 0, p50_ms: null, p95_ms: null };

function span(after: number, counts: Partial<StatsSpan> = {}): StatsSpan {
  return { ...NOTHING, ...counts, at: new Date(START + after).toISOString() };
}

describe('a window', () => {
  it.each([
    [undefined, '1h'],
    ['1h', '1h'],
    ['24h', '24h'],
    ['7d', '7d'],
    ['30d', '1h'],
    ['', '1h'],
  ] as const)('%j in an address is %s', (asked, window) => expect(windowOf(asked)).toBe(window));

  it('has words', () => expect(wordsOf('7d')).toBe('the last 7 days'));
});

describe('spans become rates', () => {
  it('per minute, whatever the step', () => {
    const counts = { calls: 600, made: 300, delivered: 60, failed: 30, p50_ms: 12, p95_ms: 80 };
    const drawn = seriesOf({ step_seconds: 600, spans: [span(0, counts)] }, START + 20 * MINUTE);
    expect(drawn).toEqual({
      times: [START / 1000],
      calls: [60],
      made: [30],
      delivered: [6],
      failed: [3],
      p50: [12],
      p95: [80],
    });
  });

  it('and latencies stay absent where there were no attempts', () => {
    const drawn = seriesOf({ step_seconds: 60, spans: [span(0)] }, START + 5 * MINUTE);
    expect(drawn).toMatchObject({ calls: [0], p50: [null], p95: [null] });
  });

  it.each<[what: string, step: number, passed: number, calls: number[]]>([
    ['of a minute, while it lasts, is left out', 60, 59_000, []],
    ['of a minute, just over, may lack what nodes have not told yet', 60, 69_999, []],
    ['of a minute, told by all nodes, is whole', 60, 70_000, [90]],
    ['of an hour, with less than a minute, is left out', 3600, 69_999, []],
    ['of an hour, with two minutes, counts by these', 3600, 130_000, [45]],
    ['of an hour, long over, counts by the hour', 3600, 9_000_000, [1.5]],
  ])('the last one, %s', (_what, step_seconds, passed, calls) => {
    const drawn = seriesOf({ step_seconds, spans: [span(0, { calls: 90 })] }, START + passed);
    expect(drawn.calls).toEqual(calls);
    expect(drawn.times).toHaveLength(calls.length);
  });

  it('so that what is steady is drawn level, whenever it is read', () => {
    const steps = fc.constantFrom(60, 600, 3600);
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 40_000_000 }), (step, passed) => {
        const perSecond = 2;
        const spans = Array.from({ length: Math.ceil(passed / (step * 1000)) }, (_, index) => {
          const from = index * step * 1000;
          const told = Math.max(0, Math.min(step * 1000, passed - 10_000 - from));
          return span(from, { calls: (told / 1000) * perSecond });
        });
        const { calls } = seriesOf({ step_seconds: step, spans }, START + passed);
        for (const each of calls) expect(each).toBeCloseTo(perSecond * 60, 6);
        expect(calls.length).toBeGreaterThanOrEqual(spans.length - 2);
      }),
    );
  });
});

describe('a rate', () => {
  const since = new Date(START).toISOString();

  it.each([
    ['is of the time since then', 120, START + 60 * MINUTE, 2],
    ['is of a minute at least', 120, START + 1_000, 120],
  ])('%s', (_what, counted, now, expected) => expect(perMinute(counted, { since, now })).toBe(expected));

  it.each([
    [0, '0'],
    [0.0001, '< 0.01'],
    [0.25, '0.25'],
    [0.999, '1'],
    [1.25, '1.3'],
    [7, '7'],
    [12.34, '12.3'],
    [1204, '1,204'],
    [12_500, '12.5 k'],
  ])('of %d is read as %s', (value, text) => expect(rate(value)).toBe(text));
});

it('a window is quiet only where nothing happened in it', () => {
  const totals = { ...NOTHING, success_rate: null };
  expect(isQuiet({ totals })).toBe(true);
  expect(isQuiet({ totals: { ...totals, calls: 1 } })).toBe(false);
  expect(isQuiet({ totals: { ...totals, failed: 1 } })).toBe(false);
});

it.each([
  [[], []],
  [[5], [0]],
  [[5, 6], []],
  [
    [null, 5, null, 6, 7, null, undefined, 8],
    [1, 7],
  ],
  [[null, null], []],
])('of %j those without a neighbour are %j', (values, lone) => expect(loneIndexes(values)).toEqual(lone));

describe('moments have names', () => {
  const names = createTimeNames('Europe/Berlin');
  const at = (time: string): number => Date.parse(time) / 1000;

  it.each([
    ['2027-01-15T08:05:00Z', '09:05', 'Fri 15, 09:05'],
    ['2027-01-15T23:00:00Z', 'Sat 16', 'Sat 16, 00:00'],
    ['2027-01-15T00:00:00Z', '01:00', 'Fri 15, 01:00'],
  ])('%s', (time, short, full) => {
    expect(names.short(at(time))).toBe(short);
    expect(names.full(at(time))).toBe(full);
  });
});
