/** A batch with runs that was committed and whose answer was lost: running it again changes nothing. */
import { describe, expect, it } from 'vitest';
import { type ClaimedRun, IDEMPOTENCY_MS, type RunEnd } from '../../../../src/store/runs.ts';
import type { Args, Operation } from '../../../../src/store/sqlite/protocol.ts';
import { parseRef } from '../../../../src/store/sqlite/runs/ref.ts';
import { newDelivery, newRun } from '../../samples.ts';
import { batchRig, operation } from '../batch-rig.ts';

const END: RunEnd = { state: 'succeeded', endedAt: 1_800_000_000_000, statusCode: 200 };
const WANTED = { projectId: 'p-demo', app: 'hello', limit: 2, each: false };

function insert(overrides: Partial<Args<'insertRun'>> = {}, fingerprint = 'a'): Operation {
  const { runId, projectId: project, app, createdAt, method, path, headers } = newRun();
  const args = { runId, project, app, createdAt, method, path, headers, ...overrides };
  return operation('insertRun', args, [Buffer.from('{}'), undefined, Buffer.from(fingerprint)]);
}

function claim(number: number, limit = 2, owner?: number): Operation {
  return operation('claimRuns', { number, wanted: [{ ...WANTED, limit }] }, [], owner);
}

function deliveryOf(runId: string): Args<'insert'> {
  const { projectId: project, app, target, statusCode: status, createdAt, owned } = newDelivery();
  return { runId, project, app, target, status, createdAt, owned };
}

/** A rig with one run that was claimed. */
function claimed() {
  const rig = batchRig();
  const [, runs] = rig.run([insert(), claim(1)], false) as [unknown, ClaimedRun[]];
  const { runId, ...held } = parseRef(runs[0]!.ref);
  return { ...rig, runId, held };
}

describe('a replay', () => {
  it('of inserts', () => {
    const { run, twice } = batchRig();
    expect(twice(insert(), insert())).toEqual([{ outcome: 'inserted' }, { outcome: 'inserted' }]);
    expect(run([claim(1, 10)], false)[0]).toHaveLength(2);
  });

  it('of inserts with keys, new, repeated, in conflict and expired', () => {
    const { run, twice } = batchRig();
    const now = Date.now();
    const old = insert({ key: 'expired', createdAt: now - IDEMPOTENCY_MS });
    run([old], false);
    const outcomes = twice(
      insert({ key: 'new' }),
      insert({ key: 'new' }),
      insert({ key: 'new' }, 'b'),
      insert({ key: 'expired', createdAt: now }),
    );
    expect(outcomes).toMatchObject(
      ['inserted', 'repeated', 'conflict', 'inserted'].map(outcome => ({ outcome })),
    );
    expect(run([claim(1, 10)], false)[0]).toHaveLength(3);
  });

  it('of claims, each getting its own again', () => {
    const { run, twice } = batchRig();
    run([insert(), insert(), insert(), insert({ app: 'stray' })], false);
    const strays = { known: [WANTED], before: Date.now() + 1_000, limit: 10 };
    const claims = twice(claim(1), claim(2, 10), operation('claimStrayRuns', { number: 3, ...strays }));
    expect(claims.map(runs => (runs as ClaimedRun[]).length)).toEqual([2, 1, 1]);
  });

  it('of a beginning, also where the run is to be cancelled by now', () => {
    const { twice, held, runId } = claimed();
    const begin = operation('beginRun', { ...held, startedAt: Date.now() });
    expect(twice(begin)).toEqual(['begun']);
    expect(twice(operation('cancelRun', { project: 'p-demo', runId }))).toEqual([true]);
    const other = claimed();
    const cancel = operation('cancelRun', { project: 'p-demo', runId: other.runId });
    expect(other.twice(operation('beginRun', { ...other.held, startedAt: 1 }), cancel)).toEqual([
      'begun',
      true,
    ]);
  });

  it.each([true, false])('of a withdrawal (begun: %s), also where another node has the run by now', begun => {
    const { run, twice, held } = claimed();
    if (begun) run([operation('beginRun', { ...held, startedAt: Date.now() })], false);
    const [withdrawn, taken] = twice(operation('withdrawRun', held), claim(1, 2, 77));
    expect(withdrawn).toBe(true);
    expect(taken).toMatchObject([{ starts: 0 }]);
    expect(run([operation('withdrawRun', held)], false)).toEqual([false]);
  });

  it('of an end with a result', () => {
    const { twice, held } = claimed();
    expect(twice(operation('endRun', { ...held, end: END }, [Buffer.from('{}')]))).toEqual([
      { spooled: false },
    ]);
  });

  it('of an end with a delivery, which is made once', () => {
    const { run, twice, held, runId } = claimed();
    const end = operation('endRun', { ...held, end: END, delivery: deliveryOf(runId) }, [Buffer.from('{}')]);
    const [ended] = twice(end) as [{ delivery: number }];
    expect(ended.delivery).toEqual(expect.any(Number));
    expect(run([operation('backlog', {})], false)).toEqual([{ pending: new Map([['p-demo', 1]]) }]);
  });

  it('of an end that came too late still says so', () => {
    const { run, twice, held, runId } = claimed();
    const end = (held: { id: number; claim: number }, owner?: number) =>
      operation('endRun', { ...held, end: END, delivery: deliveryOf(runId) }, [Buffer.from('{}')], owner);
    run([operation('release', { limit: 10, now: Date.now() }), claim(1, 2, 77)], false);
    expect(twice(end(held))).toEqual([undefined]);
    expect(twice(end(held, 77))).toMatchObject([{ delivery: expect.any(Number) }]);
    expect(twice(end(held))).toEqual([undefined]);
  });

  it('of what was not committed does it now', () => {
    const { run } = batchRig();
    const [inserted, runs] = run([insert(), claim(1)], true) as [unknown, ClaimedRun[]];
    expect(inserted).toEqual({ outcome: 'inserted' });
    const { runId: _, ...held } = parseRef(runs[0]!.ref);
    expect(run([operation('beginRun', { ...held, startedAt: 1 })], true)).toEqual(['begun']);
    expect(run([operation('withdrawRun', held)], true)).toEqual([true]);
    const [[again]] = run([claim(2)], true) as [ClaimedRun[]];
    const { runId: __, ...heldAgain } = parseRef(again!.ref);
    expect(run([operation('endRun', { ...heldAgain, end: END }, [Buffer.from('{}')])], true)).toEqual([
      { spooled: false },
    ]);
  });
});
