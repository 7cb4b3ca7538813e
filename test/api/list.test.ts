/**
 * The list of a project's runs over HTTP: newest first, filtered, page by page while new ones arrive.
 */
import * as fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { describe, expect, it } from 'vitest';
import { cursorAt, runIdAt } from '../../src/api/cursor.ts';
import { ProblemBody } from '../../src/api/problems.ts';
import { RunList } from '../../src/api/run-contract.ts';
import { envelopeOf, openApi, openRig, PROJECT, type Rig, T } from './rig.ts';

const LIST = `/v4/${PROJECT}/_runs`;

async function list(rig: Rig, query = '') {
  const { status, json } = await rig.get(LIST + query);
  expect(status).toBe(200);
  const { runs, next_cursor: next } = RunList.strict().parse(json);
  return { ids: runs.map(run => run.run_id), next, runs };
}

async function insertMany(rig: Rig, count: number): Promise<string[]> {
  const runs = [];
  for (let i = 0; i < count; i++) runs.push(await rig.insert({ runId: uuidv7() }));
  return runs.map(({ runId }) => runId).reverse();
}

describe('the list of runs', () => {
  it('tells what is known of each, without its answer', async () => {
    const rig = await openRig();
    const [first, second] = [await rig.insert(), await rig.insert({ createdAt: T + 1 })];
    const result = { bytes: Buffer.from(envelopeOf(first, '"status_code":500,"error":{"type":"x"}')) };
    await rig.end(first, { result }, { state: 'failed', statusCode: 500, error: 'x' });
    await rig.insert({ projectId: 'p-other' });
    const time = (ms: number) => new Date(T + ms).toISOString();
    const known = { project_id: PROJECT, app: 'hello' };
    expect((await rig.get(LIST)).json).toEqual({
      runs: [
        { ...known, run_id: second.runId, state: 'queued', created_at: time(1), starts: 0 },
        {
          ...known,
          run_id: first.runId,
          state: 'failed',
          created_at: time(0),
          started_at: time(1_000),
          ended_at: time(2_000),
          starts: 1,
          status_code: 500,
          error: { type: 'x' },
        },
      ],
      next_cursor: null,
    });
  });

  it('is filtered by state and by app', async () => {
    const rig = await openRig();
    const hello = await rig.insert();
    const other = await rig.insert({ app: 'other' });
    const running = await rig.insert({ app: 'third' });
    await rig.begin(running);
    const found = async (query: string) => (await list(rig, query)).ids.sort();
    expect(await found('?state=queued')).toEqual([hello.runId, other.runId].sort());
    expect(await found('?state=queued&app=other')).toEqual([other.runId]);
    expect(await found('?app=third')).toEqual([running.runId]);
    expect(await found('?state=running')).toEqual([running.runId]);
    expect(await found('?state=failed')).toEqual([]);
    expect(await found('?app=nobody')).toEqual([]);
  });

  it('has 50 on a page unless asked for more, or fewer', async () => {
    const rig = await openRig();
    const ids = await insertMany(rig, 51);
    const first = await list(rig);
    expect(first.ids).toEqual(ids.slice(0, 50));
    expect(await list(rig, `?cursor=${first.next}`)).toMatchObject({ ids: ids.slice(50), next: null });
    expect(await list(rig, '?limit=51')).toMatchObject({ ids, next: null });
    expect((await list(rig, '?limit=1')).ids).toEqual(ids.slice(0, 1));
    expect((await list(rig, '?limit=200')).next).toBeNull();
  });

  it('shows each once, in order, whatever arrives meanwhile', async () => {
    const rig = await openRig();
    const ids = await insertMany(rig, 12);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 12 }), async limits => {
        let { ids: seen, next } = await list(rig, '?limit=1');
        for (let page = 0; next !== null; page++) {
          const arriving = rig.insert({ runId: uuidv7() });
          const shown = await list(rig, `?limit=${limits[page % limits.length]}&cursor=${next}`);
          await arriving;
          seen = [...seen, ...shown.ids];
          next = shown.next;
        }
        expect(seen).toEqual([...seen].sort().reverse());
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.slice(-ids.length)).toEqual(ids);
      }),
      { numRuns: 5 },
    );
  });

  const state = 'state must be one of queued, running, succeeded, failed, cancelled';
  const limit = 'limit must be a whole number from 1 to 200';
  const cursor = 'cursor must be a next_cursor as it was given';
  it.each([
    ['?state=done', [state]],
    ['?state=', [state]],
    ['?state=failed&state=queued', ['state must be given once']],
    ['?app=', ['app must be the name of an app']],
    ['?app=a%2Fb', ['app must be the name of an app']],
    ['?limit=0', [limit]],
    ['?limit=201', [limit]],
    ['?limit=-1', [limit]],
    ['?limit=1.5', [limit]],
    ['?limit=1e2', [limit]],
    ['?limit=%201', [limit]],
    ['?limit=99999999999999999999', [limit]],
    ['?cursor=', [cursor]],
    ['?cursor=x', [cursor]],
    [`?cursor=${uuidv7()}`, [cursor]],
    [`?cursor=${cursorAt('0192f0c1-2d3e-4f40-8a5b-6c7d8e9f0a1b')}`, [cursor]],
    ['?__proto__=1', ['there is no parameter "__proto__"']],
    ['?stat=x&limit=x&state=x', [state, limit, 'there is no parameter "stat"']],
    ['?%ff=1', ['there is no parameter']],
  ])('refuses %s, and says what is wrong', async (query, details) => {
    const api = await openApi({ list: () => Promise.reject(new Error('asked the store')) });
    const { status, json } = await api.get(LIST + query);
    expect(status).toBe(400);
    const problem = ProblemBody.strict().parse(json);
    expect(problem.code).toBe('invalid_query');
    for (const detail of details) expect(problem.detail).toContain(detail);
    expect(problem.detail.split('; ')).toHaveLength(details.length);
  });
});

it('a cursor holds the run that it was made of', () => {
  fc.assert(
    fc.property(fc.uuid({ version: 7 }), id => {
      expect(runIdAt(cursorAt(id))).toBe(id);
      expect(cursorAt(id)).toMatch(/^[\w-]+$/);
    }),
  );
});
