/** Connections are evened out where one worker has far more than its share, and left alone otherwise. */
import { array, assert, nat, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { surplusOf } from '../../src/workers/balance.ts';

describe('the surplus of connections', () => {
  it.each([
    { has: [0, 0], gives: [0, 0] },
    { has: [5, 0], gives: [0, 0] },
    { has: [30, 34], gives: [0, 0] },
    { has: [64, 0], gives: [32, 0] },
    { has: [7, 8, 43, 6], gives: [0, 0, 27, 0] },
    { has: [100, 100, 0, 0], gives: [50, 50, 0, 0] },
    { has: [12], gives: [0] },
  ])('of $has is $gives', ({ has, gives }) => {
    expect(surplusOf(has)).toEqual(gives);
  });

  it('never brings anybody below the share of all', () => {
    const counts = array(nat({ max: 10_000 }), { minLength: 1, maxLength: 64 });
    assert(
      property(counts, has => {
        const share = has.reduce((sum, count) => sum + count, 0) / has.length;
        const gives = surplusOf(has);
        const left = has.map((count, index) => count - gives[index]!);
        expect(left.filter((count, index) => gives[index]! > 0 && count < share)).toEqual([]);
      }),
    );
  });
});
