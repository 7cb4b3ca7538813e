/**
 * Whatever two nodes do in whatever order, and with each answer lost once: no app has more runs under way than
 * its limit, the oldest go first, starts are counted exactly, old references do nothing, and a run ends once.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ClaimedRun, RunRecord } from '../../../../src/store/runs.ts';
import { parseRef } from '../../../../src/store/sqlite/runs/ref.ts';
import { newRun } from '../../samples.ts';
import { batchRig, operation } from '../batch-rig.ts';

const LIMIT = 2;
const OWNERS = [101, 102];
const START = 1_800_000_000_000;

type Step =
  | { readonly kind: 'insert' }
  | { readonly kind: 'claim' | 'release'; readonly owner: number }
  /** `pick` says which of the references that were ever given out, or which run. */
  | { readonly kind: 'begin' | 'withdraw' | 'end' | 'cancel'; readonly pick: number };

const owners = fc.constantFrom(...OWNERS);
const picks = fc.nat(1_000);
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: 'insert' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), owner: owners }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), owner: owners }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('begin' as const), pick: picks }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('withdraw' as const), pick: picks }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), pick: picks }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: picks }) },
);

/** What is expected of a run. */
interface Expected {
  readonly runId: string;
  starts: number;
  begun: boolean;
  cancelled: boolean;
  ended: boolean;
  /** The reference that holds now, and whose it is. */
  held: { readonly ref: string; readonly owner: number } | undefined;
}

function world() {
  const { run, twice } = batchRig();
  const runs: Expected[] = [];
  const given: { readonly ref: string; readonly owner: number; readonly of: Expected }[] = [];
  let now = START;

  const free = (each: Expected) => Object.assign(each, { held: undefined, begun: false });
  const underWay = () => runs.filter(({ held, begun, cancelled }) => held && (begun || !cancelled));

  function insert(): void {
    now += 1;
    const { runId, projectId: project, app, createdAt, method, path, headers } = newRun({ createdAt: now });
    const args = { runId, project, app, createdAt, method, path, headers };
    expect(twice(operation('insertRun', args))).toEqual([{ outcome: 'inserted' }]);
    runs.push({ runId, starts: 0, begun: false, cancelled: false, ended: false, held: undefined });
  }

  function claim(owner: number, number: number): void {
    const waiting = runs.filter(({ held, ended }) => !held && !ended);
    const room = Math.max(0, LIMIT - underWay().length);
    const oldest = new Set(waiting.filter(({ cancelled }) => !cancelled).slice(0, room));
    const expected = waiting.filter(each => each.cancelled || oldest.has(each));
    const wanted = [{ projectId: 'p-demo', app: 'hello', limit: LIMIT, each: false }];
    const [claimed] = twice(operation('claimRuns', { number, wanted }, [], owner)) as [ClaimedRun[]];
    expect(claimed.map(({ runId, starts, cancelled }) => ({ runId, starts, cancelled }))).toEqual(
      expected.map(({ runId, starts, cancelled }) => ({ runId, starts, cancelled })),
    );
    for (const [index, each] of expected.entries()) {
      each.held = { ref: String(claimed[index]!.ref), owner };
      given.push({ ...each.held, of: each });
    }
  }

  /** With any reference that was ever given out and not used up. */
  function use(kind: 'begin' | 'withdraw' | 'end', pick: number): void {
    if (given.length === 0) return;
    const at = pick % given.length;
    const { ref, owner, of } = given[at]!;
    const { runId: _, ...held } = parseRef(ref);
    const holds = of.held?.ref === ref && of.held.owner === owner;
    if (kind === 'begin') {
      const expected = holds ? (of.cancelled ? 'cancelled' : 'begun') : 'lost';
      now += 1;
      expect(twice(operation('beginRun', { ...held, startedAt: now }, [], owner))).toEqual([expected]);
      if (expected === 'begun') Object.assign(of, { begun: true, starts: of.starts + 1 });
      return;
    }
    given.splice(at, 1);
    if (kind === 'withdraw') {
      expect(twice(operation('withdrawRun', held, [], owner))).toEqual([holds]);
      if (holds) free(Object.assign(of, { starts: of.starts - Number(of.begun) }));
    } else {
      const end = { state: 'succeeded', endedAt: now, statusCode: 200 } as const;
      const expected = holds ? { spooled: false } : undefined;
      expect(twice(operation('endRun', { ...held, end }, [Buffer.from('{}')], owner))).toEqual([expected]);
      if (holds) free(Object.assign(of, { ended: true }));
    }
  }

  function cancel(pick: number): void {
    if (runs.length === 0) return;
    const each = runs[pick % runs.length]!;
    const args = { project: 'p-demo', runId: each.runId };
    expect(twice(operation('cancelRun', args))).toEqual([!each.ended]);
    if (!each.ended) each.cancelled = true;
  }

  function release(owner: number): void {
    const held = runs.filter(each => each.held?.owner === owner);
    expect(run([operation('release', { limit: 500, now }, [], owner)], false)).toEqual([
      { count: held.length, interrupted: [] },
    ]);
    held.forEach(free);
  }

  function stateOf({ ended, begun, cancelled }: Expected): RunRecord['state'] {
    if (ended) return 'succeeded';
    if (begun) return 'running';
    return cancelled ? 'cancelled' : 'queued';
  }

  function check(): void {
    const list = operation('listRuns', { filter: { projectId: 'p-demo' }, page: { limit: 1_000 } });
    const [records] = run([list], false) as [RunRecord[]];
    expect(records.map(({ runId, state, starts }) => ({ runId, state, starts }))).toEqual(
      runs.map(each => ({ runId: each.runId, state: stateOf(each), starts: each.starts })).toReversed(),
    );
  }

  function take(step: Step, number: number): void {
    if (step.kind === 'insert') insert();
    else if ('owner' in step && step.kind === 'claim') claim(step.owner, number);
    else if ('owner' in step) release(step.owner);
    else if (step.kind === 'cancel') cancel(step.pick);
    else use(step.kind, step.pick);
    expect(underWay().length).toBeLessThanOrEqual(LIMIT);
  }

  return { take, check };
}

it('holds the laws of runs', () => {
  const holds = fc.property(fc.array(steps, { minLength: 30, maxLength: 80, size: 'max' }), taken => {
    const { take, check } = world();
    taken.forEach(take);
    check();
  });
  expect(() => fc.assert(holds, { numRuns: 60 })).not.toThrow();
});
