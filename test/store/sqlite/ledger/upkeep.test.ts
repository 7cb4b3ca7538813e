/** What the ledger keeps for a while does not pile up. */
import { expect, it } from 'vitest';
import { IDEMPOTENCY_MS } from '../../../../src/store/runs.ts';
import { attempt, newDelivery } from '../../samples.ts';
import { batchRig, operation } from '../batch-rig.ts';

const AT = 1_800_000_000_000;

function rig() {
  const { db, run } = batchRig();
  let number = 0;
  const count = (table: string) => db.prepare(`SELECT count(*) AS count FROM ${table}`).get()!['count'];
  const addJob = (id: string, createdAt: number) =>
    operation('addJob', { id, filter: {}, createdAt, total: 0, key: id, number: (number += 1) }, [
      Buffer.from('a digest'),
    ]);
  /** Claims the oldest and ends it. */
  const endJob = (id: string, at: number) => {
    number += 1;
    const claim = number;
    run([operation('claimJob', { number: claim })], false);
    number += 1;
    run([operation('stepJob', { id, claim, runIds: [], at, number })], false);
  };
  return { db, run, count, addJob, endJob };
}

it('deletes jobs that ended long ago, but none whose key still stands, and keys after their day', () => {
  const { run, count, addJob, endJob } = rig();
  const prune = (before: number, keysBefore: number) =>
    run([operation('pruneLedger', { before, keysBefore })], false);
  run([addJob('old', AT), addJob('running', AT + 1)], false);
  endJob('old', AT + 10);
  prune(AT + 1_000, AT - 1);
  expect([count('jobs'), count('ledger_keys')]).toEqual([2, 2]);
  prune(AT + 1_000, AT);
  expect([count('jobs'), count('ledger_keys')]).toEqual([2, 1]);
  prune(AT + 1_000, AT + IDEMPOTENCY_MS);
  expect([count('jobs'), count('ledger_keys')]).toEqual([1, 0]);
});

it('forgets the answers of nodes that are gone', () => {
  const { run, count, addJob } = rig();
  run([{ ...addJob('a', AT), owner: 77 }, addJob('b', AT)], false);
  expect(count('answers')).toBe(2);
  run([operation('recover', { limit: 10, now: AT })], false);
  expect(count('answers')).toBe(1);
});

it('deletes with a delivery all that belongs to it', () => {
  const { run, count } = rig();
  const { runId, projectId: project, app, target, statusCode: status, createdAt } = newDelivery();
  const args = { runId, project, app, target, status, createdAt, owned: true, traceparent: '00-a-b-01' };
  const [id] = run([operation('insert', args, [Buffer.from('{}')])], false) as [number];
  const end = (round: number) => {
    const next = { state: 'delivered' } as const;
    return operation('endAttempt', { id, round, attempt: attempt(1), next, now: AT });
  };
  run([end(1)], false);
  run([operation('redeliver', { runId, at: AT, to: { target: `${target}2` }, number: 1_000 })], false);
  run([operation('claim', { number: 1, limit: 1, now: AT })], false);
  run([end(2)], false);
  const tables = ['deliveries', 'contents', 'attempts', 'overrides', 'traces'];
  expect(tables.map(count)).toEqual([1, 1, 2, 1, 1]);
  run([operation('prune', { before: AT + 1, limit: 10 })], false);
  expect(tables.map(count)).toEqual([0, 0, 0, 0, 0]);
});
