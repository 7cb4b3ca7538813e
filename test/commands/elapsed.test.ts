import { expect, it } from 'vitest';
import { readableTime } from '../../src/commands/elapsed.ts';

it.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [999.6, '1.0 s'],
  [1_000, '1.0 s'],
  [9_999, '9.9 s'],
  [10_000, '10 s'],
  [59_999, '59 s'],
  [60_000, '1 min 0 s'],
  [3_599_999, '59 min 59 s'],
  [3_600_000, '1 h 0 min'],
  [100 * 3_600_000, '100 h 0 min'],
])('%d ms reads %s', (ms, text) => {
  expect(readableTime(ms)).toBe(text);
});
