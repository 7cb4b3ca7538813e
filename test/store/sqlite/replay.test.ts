/** A batch that was committed and whose answer was lost: running it again changes nothing. */
import { describe, expect, it } from 'vitest';
import type { Claimed, Operation } from '../../../src/store/sqlite/protocol.ts';
import { attempt, newDelivery } from '../samples.ts';
import { batchRig, operation } from './batch-rig.ts';

function insert(owned: boolean): Operation {
  const { runId, projectId: project, app, target, statusCode: status, createdAt } = newDelivery();
  const args = { runId, project, app, target, status, createdAt, owned };
  return operation('insert', args, [Buffer.from('{}'), Buffer.from('secret')]);
}

describe('a replay', () => {
  it('of inserts', () => {
    const { twice } = batchRig();
    expect(new Set(twice(insert(true), insert(true), insert(false)))).toHaveLength(3);
  });

  it('of an attempt', () => {
    const { run, twice } = batchRig();
    const [id] = run([insert(true)], false) as [number];
    const result = attempt(1);
    expect(twice(operation('beginAttempt', { id, round: 1, startedAt: result.startedAt }))).toEqual([true]);
    const end = { id, round: 1, attempt: result, next: { state: 'delivered' } as const, now: Date.now() };
    expect(twice(operation('endAttempt', end))).toEqual([true]);
  });

  it('of an attempt that is withdrawn', () => {
    const { run, twice } = batchRig();
    const [id] = run([insert(true)], false) as [number];
    run([operation('beginAttempt', { id, round: 1, startedAt: Date.now() })], false);
    expect(twice(operation('withdrawAttempt', { id, round: 1 }))).toEqual([true]);
    run([operation('release', { limit: 10, now: Date.now() })], false);
    expect(run([operation('withdrawAttempt', { id, round: 1 })], true)).toEqual([false]);
  });

  it('of claims, each getting its own again', () => {
    const { run, twice } = batchRig();
    run([insert(false), insert(false), insert(false)], false);
    const claim = (number: number) => operation('claim', { number, limit: 2, now: Date.now() });
    const [first, second] = twice(claim(1), claim(2)) as [Claimed, Claimed];
    expect([first.deliveries.length, second.deliveries.length]).toEqual([2, 1]);
  });

  it('of what was not committed does it now', () => {
    const { run } = batchRig();
    const [id] = run([insert(true)], true) as [number];
    const result = attempt(1);
    expect(run([operation('beginAttempt', { id, round: 1, startedAt: result.startedAt })], true)).toEqual([
      true,
    ]);
    const end = { id, round: 1, attempt: result, next: { state: 'delivered' } as const, now: Date.now() };
    expect(run([operation('endAttempt', end)], true)).toEqual([true]);
  });
});
