/** Deliveries are put in order thousands at a time, and lists have them before and after. */
import { expect, it } from 'vitest';
import { CATALOGUE_CHUNK } from '../../../src/store/sqlite/catalogue.ts';
import type { Operation } from '../../../src/store/sqlite/protocol.ts';
import type { RunIdList } from '../../../src/store/ledger.ts';
import { newDelivery, runIdAt } from '../samples.ts';
import { batchRig, operation } from './batch-rig.ts';

const T = Date.UTC(2026, 5, 1);

function insert(runId: string, i: number): Operation {
  const { projectId: project, target, statusCode: status, createdAt } = newDelivery();
  const app = i % 2 === 0 ? 'even' : 'odd';
  return operation('insert', { runId, project, app, target, status, createdAt, owned: true }, [
    Buffer.from('{}'),
  ]);
}

function rig() {
  const { db, run } = batchRig();
  const number = (sql: string) => Object.values(db.prepare(sql).get()!)[0] as number;
  const all = (filter: object) => {
    const runIds: string[] = [];
    let before: string | undefined;
    do {
      const page = { limit: 1_000, ...(before !== undefined && { before }) };
      const [list] = run([operation('listRunIds', { filter, page })], false) as [RunIdList];
      runIds.push(...list.runIds);
      before = list.next;
    } while (before !== undefined);
    return runIds;
  };
  return { run, number, all };
}

it('has each once, whether it is in order yet or not, and however late it came', () => {
  const { run, number, all } = rig();
  const runIds = Array.from({ length: 2.5 * CATALOGUE_CHUNK }, (_, i) => runIdAt(T + i));
  // One comes after all others of its time, as that of a very long call does.
  const [late, ...inTime] = runIds.map((runId, i) => insert(runId, i));
  for (let start = 0; start < inTime.length; start += 500) run(inTime.slice(start, start + 500), false);
  expect(number('SELECT count(*) FROM delivery_apps')).toBe(CATALOGUE_CHUNK);
  run([late!], false);
  expect(number('SELECT count(*) FROM delivery_apps')).toBe(CATALOGUE_CHUNK + 1);

  const newest = runIds.toReversed();
  const even = newest.filter((_, i) => i % 2 === 1);
  expect(all({ projectId: 'p-demo', app: 'even' })).toEqual(even);
  expect(all({ host: 'receiver.example' })).toEqual(newest);
  expect(all({ host: 'receiver.example', projectId: 'p-demo', app: 'even' })).toEqual(even);
});

it('puts nothing in order that was undone', () => {
  const { run, number, all } = rig();
  const runIds = Array.from({ length: 2 * CATALOGUE_CHUNK }, (_, i) => runIdAt(T + i));
  const operations = runIds.map((runId, i) => insert(runId, i));
  // One that fails makes the batch begin again.
  run([...operations, insert('no-run-id', 0)], false);
  expect(number('SELECT count(*) FROM delivery_hosts')).toBeLessThanOrEqual(CATALOGUE_CHUNK);
  expect(all({ host: 'receiver.example' })).toEqual(runIds.toReversed());
});
