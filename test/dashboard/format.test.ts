/**
 * Numbers as people read them.
 */
import { describe, expect, it } from 'vitest';
import { ago, bytes, count, duration, percent, span } from '../../dashboard/src/format.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('a duration', () => {
  it.each([
    [0, '0 ms'],
    [0.412, '0.41 ms'],
    [4.25, '4.3 ms'],
    [34.6, '35 ms'],
    [999.4, '999 ms'],
    [1250, '1.25 s'],
    [59_940, '59.9 s'],
    [125_000, '2 min 5 s'],
  ])('%d ms is %s', (ms, text) => expect(duration(ms)).toBe(text));
});

describe('a span', () => {
  it.each([
    [0, '0 s'],
    [900, '0 s'],
    [45 * SECOND, '45 s'],
    [MINUTE, '1 min'],
    [3 * HOUR + 10 * MINUTE + 59 * SECOND, '3 h 10 min'],
    [2 * DAY + 4 * HOUR, '2 d 4 h'],
  ])('of %d ms is %s', (ms, text) => expect(span(ms)).toBe(text));
});

describe('a moment', () => {
  it.each([
    [-2 * SECOND, 'just now'], // clocks differ
    [4 * SECOND, 'just now'],
    [59 * SECOND, '59 s ago'],
    [59 * MINUTE, '59 min ago'],
    [23 * HOUR, '23 h ago'],
    [8 * DAY, '8 d ago'],
  ])('%d ms before now is %s', (passed, text) =>
    expect(ago(1_800_000_000_000 - passed, 1_800_000_000_000)).toBe(text),
  );
});

describe('a count', () => {
  it.each([
    [0, '0'],
    [0.25, '0.3'],
    [12.5, '12.5'],
    [1204, '1,204'],
    [12_500, '12.5 k'],
    [3_100_000, '3.1 M'],
  ])('%d is %s', (value, text) => expect(count(value)).toBe(text));
});

describe('a ratio', () => {
  it.each([
    [1, '100 %'],
    [0.999_999, '99.99 %'], // one that failed among a million is not none
    [0.9995, '99.95 %'],
    [0.5, '50 %'],
    [0.000_001, '0.01 %'],
    [0, '0 %'],
  ])('%d is %s', (ratio, text) => expect(percent(ratio)).toBe(text));
});

describe('a size', () => {
  it.each([
    [199, '199 B'],
    [1536, '1.5 KiB'],
    [3 * 1024 * 1024, '3 MiB'],
  ])('%d is %s', (size, text) => expect(bytes(size)).toBe(text));
});
