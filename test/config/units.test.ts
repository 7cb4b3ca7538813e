import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/units.ts';

describe('durations', () => {
  it.each([
    ['0ms', 0],
    ['100ms', 100],
    ['5s', 5_000],
    ['15m', 900_000],
    ['12h', 43_200_000],
    ['30d', 2_592_000_000],
    ['1h30m', 5_400_000],
    ['1m30s', 90_000],
    ['2m5ms', 120_005],
    ['1d2h3m4s5ms', 93_784_005],
    ['90m', 5_400_000],
  ])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    '',
    '5',
    '5x',
    's',
    '1.5s',
    '-1s',
    ' 5s',
    '5 s',
    '5s\n',
    '30m1h',
    '1h1h',
    '5S',
    '1w',
    '9e9s',
    '99999999999999d',
  ])('refuses %j', text => expect(parseDuration(text)).toBeUndefined());

  it.each([
    [0, '0ms'],
    [900_000, '15m'],
    [5_400_000, '1h30m'],
    [86_400_000, '1d'],
    [1_500, '1s500ms'],
  ])('writes %d', (ms, text) => expect(formatDuration(ms)).toBe(text));

  it('reads what it wrote', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), ms => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe('sizes', () => {
  it.each([
    ['0', 0],
    ['1024', 1024],
    ['64KiB', 65_536],
    ['16MiB', 16_777_216],
    ['1GiB', 1_073_741_824],
    ['64KB', 64_000],
    ['16MB', 16_000_000],
    ['1GB', 1_000_000_000],
  ])('reads %s', (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each(['', 'MiB', '1.5MiB', '-1', '1 MiB', '1mib', '1K', '1B', '1TiB', '1e3', '99999999999GiB'])(
    'refuses %j',
    text => expect(parseSize(text)).toBeUndefined(),
  );

  it.each([
    [0, 0],
    [1000, 1000],
    [65_536, '64KiB'],
    [16_777_216, '16MiB'],
    [2_147_483_648, '2GiB'],
  ])('writes %d', (bytes, written) => expect(formatSize(bytes)).toBe(written));

  it('reads what it wrote', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), bytes => {
        expect(parseSize(String(formatSize(bytes)))).toBe(bytes);
      }),
    );
  });
});
