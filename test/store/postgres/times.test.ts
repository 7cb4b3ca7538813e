/** Two clocks: what is written in the database's time comes back in the node's. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTimes } from '../../../src/store/postgres/times.ts';

const NODE = 1_800_000_000_000;

describe('times', () => {
  it.each([
    { skews: [], skew: 0 },
    { skews: [200], skew: 0 },
    { skews: [-200, 200], skew: 0 },
    { skews: [3_600_000], skew: 3_600_000 },
    { skews: [-3_600_000, -3_600_100], skew: -3_600_000 },
    { skews: [5_000, 5_300], skew: 5_300 },
    { skews: [5_000, 100], skew: 0 },
  ])('are $skew apart after measuring $skews', ({ skews, skew }) => {
    const times = createTimes();
    for (const each of skews) times.observe(NODE + each, NODE - 10, NODE + 10);
    expect(times.toDatabase(NODE)).toBe(NODE + skew);
    expect(times.toNode(NODE)).toBe(NODE - skew);
  });

  it('learn nothing from an answer that took long', () => {
    const times = createTimes();
    times.observe(NODE + 900, NODE, NODE + 1_000);
    expect(times.toDatabase(NODE)).toBe(NODE);
  });

  it('come back as they were given, whatever was measured', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -1e9, max: 1e9 })),
        fc.integer({ min: 0, max: 2e12 }),
        (skews, ms) => {
          const times = createTimes();
          for (const skew of skews) times.observe(NODE + skew, NODE, NODE);
          expect(times.toNode(times.toDatabase(ms))).toBe(ms);
        },
      ),
    );
  });
});
