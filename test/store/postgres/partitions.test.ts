/** Days and the ids that lie in them. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY_MS, dayOf, firstId } from '../../../src/store/postgres/partitions.ts';
import { runIdAt } from '../samples.ts';

describe('a day', () => {
  it.each([
    ['1970-01-01T00:00:00.000Z', '19700101', '00000000-0000-0000-0000-000000000000'],
    ['2026-02-28T23:59:59.999Z', '20260228', '019ca18b-8000-0000-0000-000000000000'],
    ['2026-03-01T00:00:00.000Z', '20260301', '019ca6b1-dc00-0000-0000-000000000000'],
  ])('of %s is %s and begins with %s', (time, suffix, first) => {
    const day = dayOf(Date.parse(time));
    expect(day.suffix).toBe(suffix);
    expect(firstId(day.start)).toBe(first);
  });

  it('has the run ids of its milliseconds, and no others', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) }), ms => {
        const { start } = dayOf(ms);
        const runId = runIdAt(ms);
        expect(runId >= firstId(start)).toBe(true);
        expect(runId < firstId(start + DAY_MS)).toBe(true);
      }),
    );
  });
});
