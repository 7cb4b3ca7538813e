/** A batch that was committed and whose answer was lost: running it again changes nothing. */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createBatchRunner } from '../../../src/store/sqlite/batch.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createHandlers } from '../../../src/store/sqlite/handlers.ts';
import type { Args, Claimed, Kind, Operation } from '../../../src/store/sqlite/protocol.ts';
import { attempt, newDelivery, temporaryDirectory } from '../samples.ts';
import { KEYRING } from './opening.ts';

function rig() {
  const dir = temporaryDirectory();
  const data = { file: join(dir, 'test.db'), spoolDir: dir, nodeId: 'node', keyring: KEYRING };
  const database = openDatabase(data);
  onTestFinished(() => database.db.close());
  const runBatch = createBatchRunner(database, createHandlers(database.db, data));
  const run = (operations: Operation[], replay: boolean): unknown[] => {
    const answer = runBatch({ operations, replay });
    if ('fault' in answer) throw new Error(answer.fault);
    return answer.outcomes.map(outcome => ('value' in outcome ? outcome.value : outcome));
  };
  /** Everything that the tables hold. */
  const content = () =>
    ['deliveries', 'contents', 'attempts'].map(table => database.db.prepare(`SELECT * FROM ${table}`).all());
  const twice = (...operations: Operation[]) => {
    const first = run(operations, false);
    const before = content();
    const second = run(operations, true);
    expect(second).toEqual(first);
    expect(content()).toEqual(before);
    return first;
  };
  return { run, twice };
}

function operation<K extends Kind>(kind: K, args: Args<K>, blobs: Operation['blobs'] = []): Operation {
  return { kind, args, blobs };
}

function insert(owned: boolean): Operation {
  const { runId, projectId: project, app, target, statusCode: status, createdAt } = newDelivery();
  const args = { runId, project, app, target, status, createdAt, owned };
  return operation('insert', args, [Buffer.from('{}'), Buffer.from('secret')]);
}

describe('a replay', () => {
  it('of inserts', () => {
    const { twice } = rig();
    expect(new Set(twice(insert(true), insert(true), insert(false)))).toHaveLength(3);
  });

  it('of an attempt', () => {
    const { run, twice } = rig();
    const [id] = run([insert(true)], false) as [number];
    const result = attempt(1);
    expect(twice(operation('beginAttempt', { id, startedAt: result.startedAt }))).toEqual([true]);
    const end = { id, attempt: result, next: { state: 'delivered' } as const, now: Date.now() };
    expect(twice(operation('endAttempt', end))).toEqual([true]);
  });

  it('of an attempt that is withdrawn', () => {
    const { run, twice } = rig();
    const [id] = run([insert(true)], false) as [number];
    run([operation('beginAttempt', { id, startedAt: Date.now() })], false);
    expect(twice(operation('withdrawAttempt', { id }))).toEqual([true]);
    run([operation('release', { limit: 10, now: Date.now() })], false);
    expect(run([operation('withdrawAttempt', { id })], true)).toEqual([false]);
  });

  it('of claims, each getting its own again', () => {
    const { run, twice } = rig();
    run([insert(false), insert(false), insert(false)], false);
    const claim = (number: number) => operation('claim', { number, limit: 2, now: Date.now() });
    const [first, second] = twice(claim(1), claim(2)) as [Claimed, Claimed];
    expect([first.deliveries.length, second.deliveries.length]).toEqual([2, 1]);
  });

  it('of what was not committed does it now', () => {
    const { run } = rig();
    const [id] = run([insert(true)], true) as [number];
    const result = attempt(1);
    expect(run([operation('beginAttempt', { id, startedAt: result.startedAt })], true)).toEqual([true]);
    const end = { id, attempt: result, next: { state: 'delivered' } as const, now: Date.now() };
    expect(run([operation('endAttempt', end)], true)).toEqual([true]);
  });
});
