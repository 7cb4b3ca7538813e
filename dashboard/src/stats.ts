/**
 * The numbers of a window as they are drawn: counts become rates, so that a minute, ten and an hour compare. The
 * last span of a window is still being counted, and must not look like a fall.
 */
import type { Stats, StatsSpan, WindowName } from './api/shapes.ts';
import { count } from './format.ts';

/** Each with its name on the page, and in a sentence. */
export const WINDOWS: readonly (readonly [window: WindowName, name: string, words: string])[] = [
  ['1h', '1 h', 'the last hour'],
  ['24h', '24 h', 'the last 24 hours'],
  ['7d', '7 d', 'the last 7 days'],
];

/** What an address asks for; the shortest where it asks for none that there is. */
export function windowOf(asked: string | undefined): WindowName {
  return WINDOWS.find(([window]) => window === asked)?.[0] ?? '1h';
}

export function wordsOf(window: WindowName): string {
  return WINDOWS.find(([each]) => each === window)![2];
}

/** Numbers, with what was asked for and when: they are shown while those of another window are read. */
export interface Told {
  readonly window: WindowName;
  readonly project: string | undefined;
  readonly stats: Stats;
  /** By the service's clock, in milliseconds. */
  readonly readAt: number;
}

/** One value for each of `times`, which are the beginnings of spans in seconds since the epoch. */
export interface Series {
  readonly times: readonly number[];
  /** Per minute. */
  readonly calls: readonly number[];
  readonly made: readonly number[];
  readonly delivered: readonly number[];
  readonly failed: readonly number[];
  /** In milliseconds; null where there was no first attempt. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
}

const MINUTE_MS = 60_000;
/** Nodes count in memory, and add what they have to the store so much later at most. */
const LATE_MS = 10_000;

/**
 * A span that is not over counts by the time that has been counted of it, once that is a minute: of less, a rate
 * is chance.
 */
export function seriesOf(
  { spans, step_seconds }: Pick<Stats, 'spans' | 'step_seconds'>,
  now: number,
): Series {
  const known = spans.flatMap(span => {
    const counted = Math.min(step_seconds * 1000, now - LATE_MS - Date.parse(span.at));
    return counted < MINUTE_MS ? [] : [{ span, minutes: counted / MINUTE_MS }];
  });
  const rates = (of: (span: StatsSpan) => number): number[] =>
    known.map(({ span, minutes }) => of(span) / minutes);
  return {
    times: known.map(({ span }) => Date.parse(span.at) / 1000),
    calls: rates(span => span.calls),
    made: rates(span => span.made),
    delivered: rates(span => span.delivered),
    failed: rates(span => span.failed),
    p50: known.map(({ span }) => span.p50_ms),
    p95: known.map(({ span }) => span.p95_ms),
  };
}

/** So many since then, as a rate. */
export function perMinute(counted: number, { since, now }: { since: string; now: number }): number {
  return counted / Math.max(1, (now - Date.parse(since)) / MINUTE_MS);
}

/** A rate as people read it: a small one is not nothing. */
export function rate(value: number): string {
  if (value >= 10 || value === 0) return count(value);
  if (value < 0.01) return '< 0.01';
  return String(Number(value.toFixed(value < 1 ? 2 : 1)));
}

/** Whether anything happened at all. */
export function isQuiet({ totals: { calls, made, delivered, failed } }: Pick<Stats, 'totals'>): boolean {
  return calls + made + delivered + failed === 0;
}

/** Values that have no neighbour to be joined with by a line. */
export function loneIndexes(values: readonly (number | null | undefined)[]): number[] {
  const isThere = (index: number): boolean => typeof values[index] === 'number';
  return [...values.keys()].filter(index => isThere(index) && !isThere(index - 1) && !isThere(index + 1));
}

/** Names of moments for the axis of a chart and for its legend. */
export interface TimeNames {
  /** `14:05`, and where a day begins `Mon 15`. */
  readonly short: (seconds: number) => string;
  /** `Mon 15, 14:05`. */
  readonly full: (seconds: number) => string;
}

/** In the reader's time unless a zone is given. */
export function createTimeNames(timeZone?: string): TimeNames {
  const zone = timeZone === undefined ? {} : { timeZone };
  const clock = new Intl.DateTimeFormat('en-GB', { ...zone, hour: '2-digit', minute: '2-digit' });
  const calendar = new Intl.DateTimeFormat('en-GB', { ...zone, weekday: 'short', day: 'numeric' });
  return {
    short(seconds) {
      const time = clock.format(seconds * 1000);
      return time === '00:00' ? calendar.format(seconds * 1000) : time;
    },
    full: seconds => `${calendar.format(seconds * 1000)}, ${clock.format(seconds * 1000)}`,
  };
}
