/** What was done by hand and whose answer was lost: running it again changes nothing and answers the same. */
import { describe, expect, it } from 'vitest';
import type { Operation } from '../../../../src/store/sqlite/protocol.ts';
import { attempt, newDelivery } from '../../samples.ts';
import { batchRig, operation } from '../batch-rig.ts';

const AT = 1_800_000_000_000;
const DONE = { state: 'delivered' } as const;

function rig() {
  const { run, twice } = batchRig();
  let number = 0;
  const next = () => (number += 1);
  /** One that has ended, or has an attempt under way. */
  const make = (ended: boolean) => {
    const { runId, projectId: project, app, target, statusCode: status, createdAt } = newDelivery();
    const args = { runId, project, app, target, status, createdAt, owned: true, begunAt: AT };
    const [id] = run([operation('insert', args, [Buffer.from('{}'), Buffer.from('secret')])], false);
    const held = { id: id as number, round: 1 };
    const end = operation('endAttempt', {
      ...held,
      attempt: attempt(1, { startedAt: AT }),
      next: DONE,
      now: AT,
    });
    if (ended) run([end], false);
    return { runId, end };
  };
  const redeliver = (runId: string, more: object = {}, fingerprint?: string): Operation =>
    operation('redeliver', { runId, at: AT, number: next(), ...more }, [
      fingerprint ? Buffer.from(fingerprint) : undefined,
    ]);
  const cancel = (runId: string) => operation('cancelDelivery', { runId, at: AT, number: next() });
  const step = (runIds: string[], more: object) =>
    operation('stepJob', { id: 'job', claim: 1, at: AT, number: next(), runIds, ...more });
  return { run, twice, next, make, redeliver, cancel, step };
}

describe('a replay', () => {
  it('of redeliveries, of which one made the round', () => {
    const { twice, make, redeliver } = rig();
    const { runId } = make(true);
    const to = { to: { target: 'https://elsewhere.example/' } };
    expect(twice(redeliver(runId, to), redeliver(runId), redeliver(runId, { projectId: 'p-other' }))).toEqual(
      [{ outcome: 'redelivered', round: 2 }, { outcome: 'pending' }, { outcome: 'not_found' }],
    );
  });

  it('of redeliveries with the same key', () => {
    const { twice, make, redeliver } = rig();
    const { runId } = make(true);
    const key = { key: 'a key' };
    const operations = ['one', 'one', 'other'].map(fingerprint => redeliver(runId, key, fingerprint));
    expect(twice(...operations)).toEqual([
      { outcome: 'redelivered', round: 2 },
      { outcome: 'repeated', round: 2 },
      { outcome: 'conflict' },
    ]);
  });

  it('of cancellations, and of the end that came too late', () => {
    const { twice, make, cancel } = rig();
    const { runId, end } = make(false);
    expect(twice(cancel(runId), end, cancel(runId))).toEqual(['cancelled', false, 'settled']);
  });

  it('of a cancellation and the round after it', () => {
    const { twice, make, cancel, redeliver } = rig();
    const { runId } = make(false);
    expect(twice(cancel(runId), redeliver(runId))).toEqual([
      'cancelled',
      { outcome: 'redelivered', round: 2 },
    ]);
  });

  it('of a job, from its beginning to its end', () => {
    const { twice, next, make, step } = rig();
    const [one, other] = [make(true), make(true)];
    const job = { id: 'job', filter: {}, createdAt: AT, total: 2 };
    const claim = operation('claimJob', { number: next() });
    twice(operation('addJob', { ...job, number: next() }));
    expect(twice(claim, operation('claimJob', { number: next() }))).toMatchObject([{ id: 'job' }, undefined]);
    expect(
      twice(step([one.runId], { next: one.runId }), step([other.runId], {}), step([], {})),
    ).toMatchObject([
      { seen: 1, redelivered: 1, state: 'running' },
      { seen: 2, redelivered: 2, state: 'done' },
      undefined,
    ]);
  });

  it('of numbers that were added', () => {
    const { run, twice, next } = rig();
    const minute = {
      projectId: 'p',
      minute: 60_000,
      calls: 1,
      callErrors: 0,
      made: 0,
      delivered: 0,
      failed: 0,
    };
    const minutes = [{ ...minute, firstAttempts: Array.from({ length: 37 }, () => 1) }];
    twice(operation('addCounts', { number: next(), minutes, hosts: [] }));
    const [spans] = run([operation('spans', { since: 0, step: 60_000 })], false) as [{ calls: number }[]];
    expect(spans.map(({ calls }) => calls)).toEqual([1]);
  });

  it('does now what was not committed', () => {
    const { run, make, redeliver } = rig();
    expect(run([redeliver(make(true).runId)], true)).toEqual([{ outcome: 'redelivered', round: 2 }]);
  });

  it('has few answers to look through, however many were given', () => {
    const { run, twice, make, cancel, redeliver } = rig();
    const { runId } = make(true);
    for (let times = 0; times < 30; times += 1)
      run(Array.from({ length: 50 }, () => [redeliver(runId), cancel(runId)]).flat(), false);
    expect(twice(redeliver(runId))).toEqual([{ outcome: 'redelivered', round: 1_502 }]);
  });
});
