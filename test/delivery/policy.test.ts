import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterAttempt, MAX_GAP } from '../../src/delivery/policy.ts';
import { ATTEMPTS_PER_ROUND } from '../../src/store/store.ts';

const now = 1_700_000_000_000;
const middle = () => 0.5;

describe('afterAttempt', () => {
  it.each([
    ['delivered', 1, { state: 'delivered' }],
    ['delivered', 3, { state: 'delivered' }],
    ['rejected', 1, { state: 'failed', reason: 'rejected' }],
    ['rejected', 3, { state: 'failed', reason: 'rejected' }],
    ['blocked', 1, { state: 'failed', reason: 'blocked' }],
    ['blocked', 3, { state: 'failed', reason: 'blocked' }],
    ['retry', 1, { state: 'pending', dueAt: now + 1_000 }],
    ['retry', 2, { state: 'pending', dueAt: now + 4_000 }],
    ['retry', 3, { state: 'failed', reason: 'exhausted' }],
    ['retry', 4, { state: 'failed', reason: 'exhausted' }],
  ] as const)('%s after %i attempts', (verdict, attempts, next) => {
    expect(afterAttempt({ verdict, attempts, now, random: middle })).toEqual(next);
  });

  it.each([
    [1, 0, 800],
    [1, 1 - Number.EPSILON, 1_200],
    [2, 0, 3_200],
    [2, 1 - Number.EPSILON, 4_800],
  ])('after %i attempts, a draw of %d gives a gap of %i ms', (attempts, draw, gap) => {
    const next = afterAttempt({ verdict: 'retry', attempts, now, random: () => draw });
    expect(next).toEqual({ state: 'pending', dueAt: now + gap });
  });

  it('never waits longer than the longest gap, and always waits', () => {
    const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: ATTEMPTS_PER_ROUND - 1 }), draw, (attempts, value) => {
        const next = afterAttempt({ verdict: 'retry', attempts, now, random: () => value });
        if (next.state !== 'pending') throw new Error(`ended as ${next.state}`);
        expect(next.dueAt - now).toBeGreaterThan(0);
        expect(next.dueAt - now).toBeLessThan(MAX_GAP);
      }),
    );
  });
});
