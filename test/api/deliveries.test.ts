/**
 * The list of deliveries over HTTP: newest first, filtered, page by page while new ones arrive.
 */
import * as fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { describe, expect, it } from 'vitest';
import { DeliveryList } from '../../src/api/delivery-contract.ts';
import { matches } from '../../src/api/delivery-filter.ts';
import { ProblemBody } from '../../src/api/problems.ts';
import type { DeliverySummary } from '../../src/store/ledger.ts';
import { newDelivery } from '../store/samples.ts';
import { openApi, openRig, PROJECT, type Rig } from './rig.ts';

const LIST = `/v4/${PROJECT}/_deliveries`;
const ADMIN = '/api/v1/deliveries';

async function list(rig: Rig, query = '', path = LIST) {
  const { status, json } = await rig.get(path + query);
  expect([status, json]).toMatchObject([200, {}]);
  const { deliveries, next_cursor: next } = DeliveryList.strict().parse(json);
  return { ids: deliveries.map(({ run_id }) => run_id), next, deliveries };
}

/** Page after page, until the last. */
async function all(rig: Rig, query: string, path?: string): Promise<string[]> {
  const ids: string[] = [];
  for (let page = await list(rig, query, path); ; ) {
    ids.push(...page.ids);
    if (page.next === null) return ids;
    page = await list(rig, `${query}${query === '' ? '?' : '&'}cursor=${page.next}`, path);
  }
}

describe('the list of deliveries', () => {
  it('tells where each stands', async () => {
    const rig = await openRig();
    const due = Date.now() + 60_000;
    const failed = await rig.attempted({ state: 'failed', reason: 'rejected' }, { status: 500 });
    const waiting = await rig.attempted({ state: 'pending', dueAt: due }, { error: 'timeout' });
    const settled_at = expect.stringMatching(/Z$/);
    const known = {
      project_id: PROJECT,
      app: 'hello',
      target: 'https://receiver.example/hook?a=1',
      status_code: 200,
      round: 1,
      attempt_count: 1,
    };
    expect((await rig.get(LIST)).json).toEqual({
      deliveries: [
        {
          ...known,
          run_id: waiting.runId,
          state: 'pending',
          last_error: 'timeout',
          created_at: new Date(waiting.createdAt).toISOString(),
          next_attempt_at: new Date(due).toISOString(),
        },
        {
          ...known,
          run_id: failed.runId,
          state: 'failed',
          reason: 'rejected',
          last_status: 500,
          created_at: new Date(failed.createdAt).toISOString(),
          settled_at,
        },
      ],
      next_cursor: null,
    });
  });

  it('is filtered by each of its names, and by several together', async () => {
    const rig = await openRig();
    const failed = { state: 'failed', reason: 'rejected' } as const;
    const a = await rig.attempted(failed, { status: 503 }, { app: 'one', target: 'https://a.example/x' });
    const b = await rig.attempted(failed, { status: 400 }, { app: 'two', target: 'https://b.example:8443/' });
    const c = await rig.attempted({ state: 'delivered' }, { status: 204 }, { app: 'one' });
    const d = await rig.deliver({ app: 'two' });
    const foreign = await rig.deliver({ projectId: 'p-else' });
    const cases: readonly [string, readonly { runId: string }[]][] = [
      ['', [a, b, c, d]],
      ['?app=one', [a, c]],
      ['?state=failed', [a, b]],
      ['?state=pending', [d]],
      ['?reason=rejected', [a, b]],
      ['?reason=exhausted', []],
      ['?host=a.example', [a]],
      ['?host=B.example%3A8443', [b]],
      ['?host=b.example', []],
      ['?status=503', [a]],
      ['?status=4xx', [b]],
      ['?status=5xx&app=two', []],
      ['?state=failed&app=two&status=400&host=b.example:8443&reason=rejected&since=1h', [b]],
      ['?since=1h', [a, b, c, d]],
      ['?until=1h', []],
      [`?since=${new Date(Date.now() + 60_000).toISOString()}`, []],
      ['?until=2000-01-01T00:00:00%2B02:00', []],
    ];
    for (const [query, found] of cases) {
      const expected = found.map(({ runId }) => runId).sort();
      expect([query, (await all(rig, query)).sort()]).toEqual([query, expected]);
    }
    expect((await all(rig, '', ADMIN)).sort()).toEqual(
      [a, b, c, d, foreign].map(({ runId }) => runId).sort(),
    );
    expect(await all(rig, '?project=p-else', ADMIN)).toEqual([foreign.runId]);
  });

  it('shows each once, in order, whatever arrives meanwhile', async () => {
    const rig = await openRig();
    const insert = async (): Promise<string> => (await rig.deliver({ runId: uuidv7() })).runId;
    const there: string[] = [];
    for (let i = 0; i < 15; i++) there.unshift(await insert());
    // What arrives has to be gone through the next time: were there no end to it, the list would grow and grow.
    const rest = { limit: 200, arriving: 0 };
    const steps = fc.record({
      limit: fc.integer({ min: 1, max: 6 }),
      arriving: fc.integer({ min: 0, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 10, maxLength: 20 }), async plan => {
        const seen: string[] = [];
        let cursor: string | null = null;
        for (let page = 0; page === 0 || cursor !== null; page++) {
          const { limit, arriving } = plan[page] ?? rest;
          const query: string = `?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`;
          const [shown] = await Promise.all([list(rig, query), ...Array.from({ length: arriving }, insert)]);
          expect(shown.ids.length).toBeLessThanOrEqual(limit);
          seen.push(...shown.ids);
          cursor = shown.next;
        }
        expect(seen).toEqual([...seen].sort().reverse());
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.slice(-there.length)).toEqual(there);
      }),
      { numRuns: 8 },
    );
  }, 60_000);

  const limit = 'limit must be a whole number from 1 to 200';
  const moment = (name: string) =>
    `${name} must be a time in ISO 8601 with its zone, or a duration such as 24h`;
  it.each([
    ['?state=done', ['state must be one of pending, delivered, failed, cancelled']],
    ['?reason=no', ['reason must be one of exhausted, rejected, blocked']],
    ['?status=20', ['status must be a status such as 503, or a class such as 5xx']],
    ['?status=5xx&status=4xx', ['status must be given once']],
    ['?host=a%2Fb', ['host must be a host as in a URL, with its port where that is not the usual one']],
    ['?since=yesterday', [moment('since')]],
    ['?until=2026-01-01', [moment('until')]],
    ['?until=2026-01-01T00:00:00', [moment('until')]],
    ['?project=a%20b', ['project must be the name of a project']],
    ['?limit=201', [limit]],
    ['?cursor=x', ['cursor must be a next_cursor as it was given']],
    ['?exclude=body&limit=0', [limit, 'there is no parameter "exclude"']],
  ])('refuses %s, and says what is wrong', async (query, details) => {
    const api = await openApi();
    const { status, json } = await api.get(LIST + query);
    const problem = ProblemBody.strict().parse(json);
    expect([status, problem.code]).toEqual([400, 'invalid_query']);
    expect(problem.detail).toBe(`The query is not acceptable: ${details.join('; ')}`);
  });
});

it('a delivery matches a filter as the store finds it', async () => {
  const rig = await openRig();
  const { ledger } = rig.store;
  const one = (of: Partial<DeliverySummary>) =>
    newDelivery({ app: of.app ?? 'x', target: of.target ?? 'https://a.example/' });
  for (const app of ['x', 'y']) {
    for (const target of ['https://a.example/', 'https://b.example:1/']) {
      await rig.deliver(one({ app, target }));
      await rig.attempted({ state: 'delivered' }, { status: 200 }, one({ app, target }));
      await rig.attempted({ state: 'failed', reason: 'rejected' }, { status: 500 }, one({ app, target }));
    }
  }
  const { deliveries } = await ledger.list({}, { limit: 100 });
  const now = Date.now();
  const filter = fc.record(
    {
      projectId: fc.constantFrom(PROJECT, 'p-else'),
      app: fc.constantFrom('x', 'y'),
      state: fc.constantFrom('pending', 'delivered', 'failed'),
      reason: fc.constantFrom('rejected', 'blocked'),
      host: fc.constantFrom('a.example', 'b.example:1'),
      status: fc.constantFrom({ from: 200, to: 299 }, { from: 500, to: 500 }),
      since: fc.constantFrom(0, now - 60_000, now + 60_000),
      until: fc.constantFrom(0, now + 60_000),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(filter, async given => {
      const found = await ledger.list(given, { limit: 100 });
      const matching = deliveries.filter(each => matches(given, each));
      expect(matching.map(each => each.runId)).toEqual(found.deliveries.map(each => each.runId));
    }),
    { numRuns: 60 },
  );
});
