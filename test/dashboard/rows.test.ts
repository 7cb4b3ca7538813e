/** The rows of the list of deliveries, made of pages and of changes that overtake each other. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Delivery } from '../../dashboard/src/api/shapes.ts';
import {
  endOf,
  isFull,
  MOST_ROWS,
  NO_ROWS,
  released,
  reread,
  type Row,
  type Rows,
  timeIn,
  withChanges,
  withPage,
} from '../../dashboard/src/views/deliveries/rows.ts';
import { delivery, deliveredAgain, pendingAgain, runId } from './deliveries.ts';

const FAILED = { state: 'failed' } as const;
const shown = { filter: FAILED, hold: false };
const held = { filter: FAILED, hold: true };
const quiet = { hold: false, told: new Set<string>() };

const page = (afters: readonly number[], next: string | null = null) => ({
  deliveries: afters.map(after => delivery(after)),
  next_cursor: next,
});
const list = (afters: readonly number[], next: string | null = null): Rows =>
  withPage(NO_ROWS, page(afters, next));
const ids = (rows: readonly Row[]): string[] => rows.map(row => row.delivery.run_id);
const idsOf = (afters: readonly number[]): string[] => afters.map(runId);
const down = (from: number, to: number): number[] =>
  Array.from({ length: from - to + 1 }, (_, index) => from - index);

describe('pages', () => {
  it('follow each other, and are in one order whatever came in between', () => {
    const rows = withPage(withChanges(list([9, 8], 'c'), [delivery(12)], shown), page([8, 7], null));
    expect(ids(rows.shown)).toEqual(idsOf([12, 9, 8, 7]));
    expect(rows.next).toBeNull();
  });

  it('do not take back what the stream has told of one', () => {
    const rows = withChanges(list([9], 'c'), [delivery(9, deliveredAgain)], shown);
    expect(withPage(rows, page([9, 8])).shown[0]!.delivery.state).toBe('delivered');
  });
});

describe('a change', () => {
  it.each<[string, Rows, Delivery, readonly number[]]>([
    ['the newest comes first', list([9, 8], 'c'), delivery(10), [10, 9, 8]],
    ['one that matches only now goes to its place', list([9, 7], 'c'), delivery(8), [9, 8, 7]],
    ['what is older comes with its page', list([9, 8], 'c'), delivery(1), [9, 8]],
    ['or is the last where no page is to come', list([9, 8], null), delivery(1), [9, 8, 1]],
    ['the first of all', list([], 'c'), delivery(1), [1]],
    ['what does not match is not shown', list([9], 'c'), delivery(10, deliveredAgain), [9]],
  ])('%s', (_, rows, change, expected) => {
    expect(ids(withChanges(rows, [change], shown).shown)).toEqual(idsOf(expected));
  });

  it('leaves a row that matches no more in its place, marked, until the list is read again', () => {
    const rows = withChanges(list([9, 8, 7]), [delivery(8, pendingAgain)], shown);
    expect(rows.shown.map(row => row.stray)).toEqual([false, true, false]);
    const later = withChanges(rows, [delivery(8, { round: 2, attempt_count: 2 })], shown);
    expect(later.shown.map(row => row.stray)).toEqual([false, false, false]);
    expect(ids(reread(rows, page([9, 7]), quiet).shown)).toEqual(idsOf([9, 7]));
  });

  it('changes nothing about the rows that it is not of', () => {
    const rows = list([9, 8]);
    expect(withChanges(rows, [delivery(8, pendingAgain)], shown).shown[0]).toBe(rows.shown[0]);
  });

  it('ends the same in whatever order its news come', () => {
    const news = [pendingAgain, { ...pendingAgain, attempt_count: 2, last_status: 404 }, deliveredAgain].map(
      facts => delivery(9, { attempt_count: 1, ...facts }),
    );
    fc.assert(
      fc.property(fc.shuffledSubarray(news, { minLength: 3 }), order => {
        const rows = order.reduce((sofar, each) => withChanges(sofar, [each], shown), list([9, 8]));
        expect(rows.shown[0]!.delivery).toEqual(delivery(9, deliveredAgain));
        expect(rows.shown[0]!.stray).toBe(true);
      }),
    );
  });
});

describe('what is held back', () => {
  it('waits until it is asked for', () => {
    const rows = withChanges(list([9, 7], 'c'), [delivery(10), delivery(8)], held);
    expect(ids(rows.shown)).toEqual(idsOf([9, 7]));
    expect(ids(rows.held)).toEqual(idsOf([10, 8]));
    expect(ids(released(rows).shown)).toEqual(idsOf([10, 9, 8, 7]));
    expect(released(rows).held).toEqual([]);
  });

  it('comes with the next change once nothing is held back any more', () => {
    const rows = withChanges(list([9]), [delivery(10)], held);
    expect(ids(withChanges(rows, [delivery(11)], shown).shown)).toEqual(idsOf([11, 10, 9]));
  });

  it('is gone where it matches no more', () => {
    const rows = withChanges(list([9]), [delivery(10)], held);
    expect(withChanges(rows, [delivery(10, pendingAgain)], held).held).toEqual([]);
  });

  it('is what a reading finds anew, too', () => {
    const rows = reread(list([9, 8]), page([11, 10, 9, 8]), { ...quiet, hold: true });
    expect([ids(rows.shown), ids(rows.held)]).toEqual([idsOf([9, 8]), idsOf([11, 10])]);
  });
});

describe('reading again', () => {
  it.each<[string, Rows, ReturnType<typeof page>, readonly number[], string | null]>([
    ['finds the same', list([9, 8], 'c'), page([9, 8], 'c'), [9, 8], 'c'],
    ['finds what is new', list([9, 8], 'c'), page([10, 9], 'd'), [10, 9, 8], 'c'],
    ['drops all where some may have been passed over', list([9, 8], 'c'), page([20, 19], 'd'), [20, 19], 'd'],
    ['drops what is not there any more', list([9, 8, 7], null), page([9], null), [9], null],
    ['keeps what it did not get to', list([5, 4], 'c'), page([], 'd'), [5, 4], 'c'],
    ['keeps what is behind what it read', list([9, 8, 3], 'c'), page([9], 'd'), [9, 8, 3], 'c'],
  ])('%s', (_, rows, again, expected, next) => {
    const found = reread(rows, again, quiet);
    expect(ids(found.shown)).toEqual(idsOf(expected));
    expect(found.next).toBe(next);
  });

  it('keeps what the stream has told since, of which the answer may know nothing yet', () => {
    const told = new Set(idsOf([10, 8]));
    const rows = withChanges(list([9, 8]), [delivery(10), delivery(8, pendingAgain)], shown);
    const found = reread(rows, page([9]), { hold: false, told }).shown;
    expect(ids(found)).toEqual(idsOf([10, 9, 8]));
    expect(found.map(row => row.stray)).toEqual([false, false, true]);
    const waiting = withChanges(list([9]), [delivery(10)], held);
    expect(ids(reread(waiting, page([9]), { hold: true, told }).held)).toEqual(idsOf([10]));
  });

  it('does not take back what the stream has told meanwhile', () => {
    const rows = withChanges(list([9]), [delivery(9, deliveredAgain)], shown);
    const [row] = reread(rows, page([9]), quiet).shown;
    expect([row!.delivery.state, row!.stray]).toEqual(['delivered', true]);
  });
});

describe('the page', () => {
  it('never has more rows than it can bear', () => {
    const full = list(down(600, 101), 'c');
    expect(isFull(full)).toBe(true);
    const more = withChanges(full, [delivery(700), delivery(1)], shown);
    expect(more.shown).toHaveLength(MOST_ROWS);
    expect(more.shown[0]!.delivery.run_id).toBe(runId(700));
    expect(
      withChanges(
        full,
        down(2_000, 700).map(each => delivery(each)),
        held,
      ).held,
    ).toHaveLength(MOST_ROWS);
  });

  it('says where its list goes on', () => {
    expect(Date.parse(endOf(list([9, 8])))).toBe(timeIn(runId(8)) + 1);
  });

  it('has each run once, the newest first', () => {
    const steps = fc.array(
      fc.record({ afters: fc.array(fc.nat(30), { maxLength: 5 }), hold: fc.boolean(), read: fc.boolean() }),
    );
    fc.assert(
      fc.property(steps, all => {
        const rows = all.reduce(
          (sofar, { afters, hold, read }) =>
            read
              ? withPage(sofar, page(afters, 'c'))
              : withChanges(sofar, page(afters).deliveries, { filter: FAILED, hold }),
          NO_ROWS,
        );
        const found = ids(rows.shown);
        expect(found).toEqual([...new Set(found)].sort().reverse());
      }),
    );
  });
});
