/** The filter of a list of deliveries: in the address, and judged on the page as the service judges it. */
import { z } from '@hono/zod-openapi';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CLEARED,
  changesBy,
  DELIVERY_STATES,
  FAILURE_REASONS,
  type Filter,
  filterOf,
  isNarrowed,
  matches,
  streamed,
} from '../../dashboard/src/filters.ts';
import * as service from '../../src/api/delivery-filter.ts';
import type { DeliverySummary } from '../../src/store/ledger.ts';
import { delivery } from './deliveries.ts';

describe('the address', () => {
  it.each<[string, Filter]>([
    ['', {}],
    ['state=failed&live=off&cursor=abc', { state: 'failed' }],
    ['state=&host=receiver.example%3A8443', { host: 'receiver.example:8443' }],
    [
      'project=shop&since=24h&until=1h&status=5xx',
      { project: 'shop', since: '24h', until: '1h', status: '5xx' },
    ],
    ['state=nonsense', { state: 'nonsense' }],
  ])('%s holds a filter', (query, filter) => {
    expect(filterOf(new URLSearchParams(query))).toEqual(filter);
  });

  it('has every name of the API', () => {
    const query = new URLSearchParams(Object.keys(service.FILTER).map(name => [name, 'x']));
    expect(Object.keys(filterOf(query)).sort()).toEqual(Object.keys(service.FILTER).sort());
    expect(DELIVERY_STATES).toEqual(service.DELIVERY_STATES);
    expect(FAILURE_REASONS).toEqual(service.FAILURE_REASONS);
  });
});

describe('what is chosen', () => {
  it.each([
    ['host', ' receiver.example ', { host: 'receiver.example' }],
    ['host', '  ', { host: undefined }],
    ['reason', 'rejected', { reason: 'rejected' }],
    ['state', 'failed', { state: 'failed' }],
    ['state', '', { state: undefined }],
    ['state', 'delivered', { state: 'delivered', reason: undefined }],
  ] as const)('%s: %j', (name, text, changes) => {
    expect(changesBy(name, text)).toStrictEqual(changes);
  });

  it('is cleared but for the project', () => {
    const all = filterOf(new URLSearchParams(Object.keys(service.FILTER).map(name => [name, 'x'])));
    expect(isNarrowed(all)).toBe(true);
    expect(filterOf(new URLSearchParams({ ...all, ...blank(CLEARED) }))).toEqual({ project: 'x' });
    expect(isNarrowed({ project: 'x' })).toBe(false);
  });
});

describe('a change that the stream tells', () => {
  const filters = fc.record(
    {
      state: fc.constantFrom(...DELIVERY_STATES),
      reason: fc.constantFrom(...FAILURE_REASONS),
      status: fc.constantFrom('500', '503', '5xx', '4xx', '2xx', '200'),
      app: fc.constantFrom('hello', 'other'),
      project: fc.constantFrom('p-demo', 'p-other'),
      host: fc.constantFrom('receiver.example', 'Receiver.Example', 'receiver.example:8443', 'other.example'),
    },
    { requiredKeys: [] },
  );
  const states = fc.record({
    state: fc.constantFrom(...DELIVERY_STATES),
    reason: fc.option(fc.constantFrom(...FAILURE_REASONS), { nil: undefined }),
    last_status: fc.option(fc.constantFrom(200, 404, 500, 503, 599), { nil: undefined }),
    target: fc.constantFrom('https://receiver.example:443/a', 'https://receiver.example:8443/a'),
  });

  it('is found exactly where the service would list it', () => {
    fc.assert(
      fc.property(filters, states, (asked, facts) => {
        const told = delivery(0, facts);
        const summary: DeliverySummary = {
          ...told,
          runId: told.run_id,
          projectId: told.project_id,
          lastStatus: told.last_status,
        } as never;
        const listed = service.matches(read(asked), summary);
        const isTold = service.matches(read(streamed(asked)), summary);
        expect(isTold && matches(asked, told)).toBe(listed);
      }),
    );
  });

  it('is told whatever its state has become, and wherever it goes', () => {
    const host = 'receiver.example';
    expect(
      streamed({ state: 'failed', reason: 'rejected', host, status: '5xx', app: 'hello', since: '1h' }),
    ).toEqual({
      app: 'hello',
      since: '1h',
    });
  });
});

function read(asked: Filter) {
  const parsed = z.object(service.FILTER).parse(asked);
  return service.filterOf(parsed, { projectId: parsed.project, now: Date.now() });
}

function blank(names: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.keys(names).map(name => [name, '']));
}
