/** A database of an earlier version is brought up to date with what it has. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { firstKeyAt } from '../../../src/store/sqlite/key.ts';
import { MIGRATIONS } from '../../../src/store/sqlite/migrations.ts';
import { runIdAt, temporaryDirectory } from '../samples.ts';
import { openTestStore } from './opening.ts';

const T = Date.UTC(2026, 0, 1);

function databaseOf(version: number, file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  for (const step of MIGRATIONS.slice(0, version)) db.exec(step);
  db.exec(`PRAGMA user_version = ${version}`);
  return db;
}

it('finds deliveries from before the ledger by what it lists them by', async () => {
  const dir = temporaryDirectory();
  const db = databaseOf(3, join(dir, 'afterword.db'));
  const [failed, pending] = [runIdAt(T), runIdAt(T + 1)];
  const content = db.prepare(
    'INSERT INTO contents (id, run_id, app, target, status, created_at) VALUES (?, ?, ?, ?, 200, ?)',
  );
  const insert = (runId: string, ms: number, app: string, target: string) =>
    content.run(firstKeyAt(ms), Buffer.from(runId.replaceAll('-', ''), 'hex'), app, target, ms);
  insert(failed, T, 'one', 'https://old.example:8443/hook');
  insert(pending, T + 1, 'other', 'http://old.example:80/hook');
  const narrow = db.prepare(
    `INSERT INTO deliveries (id, project, state, reason, due_at, round, attempts, cause, settled_at)
     VALUES (?, 'p', ?, ?, ?, 1, ?, 0, ?)`,
  );
  narrow.run(firstKeyAt(T), 2, 1, T, 2, T + 5);
  narrow.run(firstKeyAt(T + 1), 0, null, T, 0, null);
  const sent = db.prepare(
    `INSERT INTO attempts (delivery, ordinal, round, number, cause, started_at, queue_ms, total_ms, status)
     VALUES (?, ?, 1, ?, 0, ?, 1, 2, ?)`,
  );
  sent.run(firstKeyAt(T), 1, 1, T, 404);
  sent.run(firstKeyAt(T), 2, 2, T, 503);
  db.close();

  const store = await openTestStore({ dir, spoolDir: join(dir, 'spool') });
  const ids = async (filter: object) => (await store.ledger.runIds(filter, { limit: 10 })).runIds;
  expect(await ids({})).toEqual([pending, failed]);
  expect(await ids({ projectId: 'p', app: 'one' })).toEqual([failed]);
  expect(await ids({ host: 'old.example:8443' })).toEqual([failed]);
  expect(await ids({ host: 'old.example' })).toEqual([pending]);
  expect(await ids({ status: { from: 503, to: 503 } })).toEqual([failed]);
  expect(await ids({ status: { from: 404, to: 404 } })).toEqual([]);
  const found = await store.find(failed);
  expect(found).toMatchObject({ state: 'failed', attempts: [{}, { status: 503 }] });
  expect(found!.attempts[1]).not.toHaveProperty('headers');
});
