/** Which indexes a list may be read by: a table of filters. */
import { expect, it } from 'vitest';
import type { DeliveryFilter } from '../../../../src/store/ledger.ts';
import { partsOf } from '../../../../src/store/sqlite/ledger/plan.ts';

const PLACE = { projectId: 'p', app: 'a', host: 'h' };
const REFUSED = { status: { from: 500, to: 599 } };

/** Parts are read together; of those in one string any has all that is wanted. */
const CASES: [DeliveryFilter, string[]][] = [
  [{}, ['NOT INDEXED']],
  [{ app: 'a' }, ['NOT INDEXED']],
  [{ projectId: 'p' }, ['project']],
  [{ projectId: 'p', app: 'a' }, ['NOT INDEXED', 'delivery_apps']],
  [{ host: 'h' }, ['NOT INDEXED', 'delivery_hosts']],
  [{ host: 'h', projectId: 'p' }, ['NOT INDEXED', 'delivery_hosts']],
  [PLACE, ['NOT INDEXED', 'delivery_hosts delivery_apps']],
  [{ ...PLACE, state: 'delivered' }, ['NOT INDEXED', 'delivery_hosts delivery_apps']],
  [{ ...PLACE, state: 'pending' }, ['pending']],
  [{ state: 'failed' }, ['trouble']],
  [{ reason: 'blocked' }, ['trouble']],
  [{ state: 'cancelled', projectId: 'p' }, ['trouble_project']],
  [{ ...PLACE, state: 'failed' }, ['trouble_project']],
  [{ reason: 'blocked', state: 'failed' }, ['trouble']],
  [{ reason: 'blocked', state: 'delivered' }, []],
  [REFUSED, ['trouble', 'pending']],
  [{ ...REFUSED, state: 'delivered' }, ['trouble']],
  [{ ...REFUSED, state: 'failed' }, ['trouble']],
  [{ ...REFUSED, state: 'pending' }, ['pending']],
  [{ status: { from: 100, to: 199 } }, ['trouble', 'pending']],
  [{ status: { from: 100, to: 200 } }, ['NOT INDEXED']],
  [{ status: { from: 299, to: 500 } }, ['NOT INDEXED']],
];

it.each(CASES)('reads %j by %j', (filter, expected) => {
  const names = partsOf(filter).map(alternatives =>
    alternatives.map(({ from }) => from.replace(/^deliveries (?:INDEXED BY deliveries_)?/, '')).join(' '),
  );
  expect(names).toEqual(expected);
});

it.each<DeliveryFilter>([
  { ...PLACE, state: 'failed', reason: 'blocked', ...REFUSED },
  { ...PLACE, state: 'delivered', status: { from: 200, to: 204 } },
  { ...PLACE, state: 'pending', status: { from: 404, to: 404 } },
])('asks for everything in %j, be it of the index or of each delivery', filter => {
  const asked = ['p', 'a', 'h', filter.status!.from, filter.status!.to];
  for (const { by, rest } of partsOf(filter).flat()) {
    const parameters = [...by, ...rest].flatMap(([, ...values]) => values);
    expect(parameters).toEqual(expect.arrayContaining(asked));
  }
});
