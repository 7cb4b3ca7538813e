/** Which rows of a list are selected. */
import { describe, expect, it } from 'vitest';
import {
  kept,
  NONE_SELECTED,
  type Selection,
  toggled,
  toggledAll,
  toggledTo,
} from '../../dashboard/src/selection.ts';

const SHOWN = ['a', 'b', 'c', 'd', 'e'];
const select = (ids: string, last?: string): Selection => ({ ids: new Set(ids), last: last ?? ids.at(-1) });

describe('selecting', () => {
  it.each<[string, Selection, string]>([
    ['one', toggled(NONE_SELECTED, 'b'), 'b'],
    ['another', toggled(select('b'), 'd'), 'bd'],
    ['one no more', toggled(select('bd'), 'b'), 'd'],
    ['a range downwards', toggledTo(select('b'), 'd', SHOWN), 'bcd'],
    ['a range upwards', toggledTo(select('d'), 'b', SHOWN), 'bcd'],
    ['a range no more', toggledTo(select('bcde', 'b'), 'd', SHOWN), 'e'],
    ['no range without a start', toggledTo(NONE_SELECTED, 'd', SHOWN), 'd'],
    ['no range from what is not shown any more', toggledTo(select('x'), 'd', SHOWN), 'dx'],
    ['all', toggledAll(select('b'), SHOWN), 'abcde'],
    ['none, where all are', toggledAll(select('abcde'), SHOWN), ''],
    ['what is still shown', kept(select('abx'), SHOWN), 'ab'],
  ])('%s', (_, { ids }, expected) => {
    expect([...ids].sort().join('')).toBe(expected);
  });

  it('goes on from the row chosen last', () => {
    const first = toggled(toggled(NONE_SELECTED, 'a'), 'c');
    expect([...toggledTo(first, 'e', SHOWN).ids].sort()).toEqual(['a', 'c', 'd', 'e']);
  });

  it('is the same where nothing is to be left out', () => {
    const selection = select('ab');
    expect(kept(selection, SHOWN)).toBe(selection);
  });
});
