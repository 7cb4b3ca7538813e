/** Which traces are kept. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { SamplerName } from '../../src/config/config.ts';
import { createIds } from '../../src/trace/ids.ts';
import { isSampled } from '../../src/trace/sampling.ts';

const LOW = '0'.repeat(31).concat('1');
const HIGH = 'f'.repeat(32);

it.each<[SamplerName, ...boolean[]]>([
  // without a parent and a low or high id; with one that is not kept, or is
  ['always_on', true, true, true, true],
  ['always_off', false, false, false, false],
  ['traceidratio', true, false, true, true],
  ['parentbased_always_on', true, true, false, true],
  ['parentbased_always_off', false, false, false, true],
  ['parentbased_traceidratio', true, false, false, true],
])('%s', (name, ...expected) => {
  const sampler = { name, ratio: 0.5 };
  const parents = [undefined, undefined, { sampled: false }, { sampled: true }];
  const ids = [LOW, HIGH, LOW, LOW];
  expect(parents.map((parent, i) => isSampled(sampler, ids[i]!, parent))).toEqual(expected);
});

it('keeps, of two ratios, with the larger all that it keeps with the smaller', () => {
  const ids = createIds();
  const ratio = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(ratio, ratio, (one, other) => {
      const id = ids.traceId();
      const kept = (by: number) => isSampled({ name: 'traceidratio', ratio: by }, id, undefined);
      expect(kept(Math.min(one, other)) && !kept(Math.max(one, other))).toBe(false);
    }),
  );
});
