/** Only so many at once, in the order in which they came. */
import { describe, expect, it } from 'vitest';
import { createLimit } from '../../../src/store/postgres/limit.ts';

/** Works that end when they are told to. */
function works(count: number) {
  const begun: number[] = [];
  const ends = Array.from({ length: count }, () => Promise.withResolvers<number>());
  const work = (i: number) => () => {
    begun.push(i);
    return ends[i]!.promise;
  };
  return { begun, ends, work };
}

const settle = () => new Promise<void>(resolve => setImmediate(resolve));

describe('a limit', () => {
  it('lets in as many as it allows, and the next when one has come out, however', async () => {
    const { begun, ends, work } = works(5);
    const limit = createLimit(2);
    const results = Promise.allSettled([0, 1, 2, 3, 4].map(i => limit(work(i))));
    await settle();
    expect(begun).toEqual([0, 1]);
    ends[1]!.reject(new Error('failed'));
    await settle();
    expect(begun).toEqual([0, 1, 2]);
    ends[0]!.resolve(0);
    ends[2]!.resolve(2);
    await settle();
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    ends[3]!.resolve(3);
    ends[4]!.resolve(4);
    expect((await results).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
  });

  it('has all its places again when all have come out', async () => {
    const limit = createLimit(2);
    await Promise.all([1, 2, 3].map(i => limit(async () => i)));
    const { begun, work } = works(3);
    for (const i of [0, 1, 2]) void limit(work(i));
    await settle();
    expect(begun).toEqual([0, 1]);
  });
});
