/** In which ranges of ids a list is read, and where each filter looks. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeliveryFilter } from '../../../src/store/ledger.ts';
import { rangesOf, scansOf } from '../../../src/store/postgres/ledger-listing.ts';
import { DAY_MS, firstId } from '../../../src/store/postgres/partitions.ts';
import { runIdAt } from '../samples.ts';

const NOW = 1_800_000_000_000;

describe('ranges', () => {
  const time = fc.option(fc.double({ min: -1e9, max: 4e14, noNaN: true }), { nil: undefined });
  const before = fc.option(fc.integer({ min: 0, max: 2 * NOW }).map(runIdAt), { nil: undefined });

  it('follow each other from the newest to the oldest, and leave nothing out', () => {
    fc.assert(
      fc.property(time, time, before, (since, until, last) => {
        const filter = { ...(since !== undefined && { since }), ...(until !== undefined && { until }) };
        const ranges = rangesOf(filter, last, NOW);
        expect(ranges.length).toBeGreaterThan(0);
        for (const [i, range] of ranges.slice(1).entries()) {
          expect(range.before).toBe(ranges[i]!.from);
          expect(range.before > range.from).toBe(true);
        }
        const within = (id: string) => ranges.some(range => id >= range.from && id < range.before);
        const probe = runIdAt(NOW - 9 * DAY_MS);
        const asked =
          (since === undefined || NOW - 9 * DAY_MS >= since) &&
          (until === undefined || NOW - 9 * DAY_MS < until) &&
          (last === undefined || probe < last);
        expect(within(probe)).toBe(asked);
      }),
    );
  });

  it('begin near the newest that is asked for', () => {
    const last = runIdAt(NOW - 100 * DAY_MS);
    const days = (ms: number) => firstId(ms);
    expect(rangesOf({}, undefined, NOW).map(({ from }) => from)).toEqual([
      days(NOW - DAY_MS),
      days(NOW - 8 * DAY_MS),
      firstId(0),
    ]);
    expect(rangesOf({}, last, NOW)[0]).toEqual({ from: days(NOW - 101 * DAY_MS), before: last });
    expect(rangesOf({ since: NOW - 3_600_000 }, undefined, NOW)).toHaveLength(1);
  });
});

describe('a list', () => {
  const RANGE = { from: firstId(0), before: firstId(NOW) };

  it.each<[DeliveryFilter, order: string[]]>([
    [{}, ['afterword_deliveries: id']],
    [{ projectId: 'p' }, ['afterword_deliveries: project, id']],
    [{ projectId: 'p', app: 'a', host: 'h' }, ['afterword_deliveries: project, app, id']],
    [{ projectId: 'p', host: 'h', state: 'delivered' }, ['afterword_deliveries: host, id']],
    [{ app: 'a', status: { from: 200, to: 200 } }, ['afterword_deliveries: id']],
    [{ state: 'pending', projectId: 'p' }, ['afterword_queue: id']],
    [{ state: 'failed', app: 'a' }, ['afterword_settled: state, id']],
    [{ state: 'cancelled', projectId: 'p' }, ['afterword_settled: project, state, id']],
    [{ reason: 'blocked', projectId: 'p', host: 'h' }, ['afterword_settled: host, state, id']],
    [
      { status: { from: 300, to: 599 }, projectId: 'p' },
      [
        'afterword_queue: id',
        'afterword_settled: project, state, id',
        'afterword_settled: project, state, id',
      ],
    ],
    [{ status: { from: 299, to: 300 } }, ['afterword_deliveries: id']],
    [{ state: 'delivered', status: { from: 300, to: 599 } }, []],
    [{ state: 'delivered', reason: 'blocked' }, []],
  ])('of %j is read where it is found soonest', (filter, order) => {
    const read = scansOf(filter, RANGE, 10).map(({ end }) => {
      const [, table] = /FROM (\w+)\n/.exec(end.text)!;
      const [, columns] = /ORDER BY ([\w ,]+?) OFFSET/.exec(end.text)!;
      return `${table}: ${columns!.replaceAll(' DESC', '')}`;
    });
    expect(read).toEqual(order);
  });
});
