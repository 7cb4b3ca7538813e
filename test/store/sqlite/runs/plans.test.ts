/**
 * No operation on runs costs more when many wait or many have ended: SQLite is asked how it would carry out
 * each statement that the handlers prepare.
 */
import type { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { RUN_STATES } from '../../../../src/store/codes.ts';
import { openDatabase } from '../../../../src/store/sqlite/database.ts';
import { createHandlers } from '../../../../src/store/sqlite/handlers.ts';
import { newRun, temporaryDirectory } from '../../samples.ts';
import { KEYRING } from '../opening.ts';

const RUN_TABLES = /\b(live_runs|run_requests|ended_runs|run_keys)\b/;
/** These indexes have only runs that are under way, or are to be cancelled: they may be gone through whole. */
const FEW = /INDEX live_runs_(owned|cancelled)\b/;
/** Tells how many wait in each project, once in a while. */
const BACKLOG = /\bGROUP BY project\b/;

function noting(db: DatabaseSync, prepared: Set<string>): DatabaseSync {
  return new Proxy(db, {
    get(target, name: keyof DatabaseSync) {
      if (name !== 'prepare') return target[name];
      return (sql: string) => {
        prepared.add(sql);
        return target.prepare(sql);
      };
    },
  });
}

function statements(): { db: DatabaseSync; prepared: string[] } {
  const dir = temporaryDirectory();
  const { db } = openDatabase({ file: join(dir, 'test.db'), nodeId: 'node', keyring: KEYRING });
  onTestFinished(() => db.close());
  const prepared = new Set<string>();
  const { listRuns, insertRun } = createHandlers(noting(db, prepared), { keyring: KEYRING, spoolDir: dir });
  const { runId, projectId: project, app, createdAt, method, path, headers } = newRun();
  insertRun({ runId, project, app, createdAt, method, path, headers }, [], false, 1);
  for (const projectId of [undefined, project])
    for (const name of [undefined, app])
      for (const state of [undefined, ...RUN_STATES]) {
        const filter = {
          ...(projectId !== undefined && { projectId }),
          ...(name !== undefined && { app: name }),
          ...(state !== undefined && { state }),
        };
        listRuns({ filter, page: { limit: 10 } }, [], false, 1);
      }
  return { db, prepared: [...prepared].filter(sql => RUN_TABLES.test(sql) && !BACKLOG.test(sql)) };
}

it('finds what it wants by an index, in the order that it wants', () => {
  const { db, prepared } = statements();
  expect(prepared.length).toBeGreaterThan(40);
  const slow = prepared.flatMap(sql => {
    const steps = db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(row => String(row['detail']));
    const few = steps.some(step => FEW.test(step));
    const costly = steps.filter(step => /^SCAN (?!CONSTANT ROW)|TEMP B-TREE/.test(step) && !few);
    return costly.map(step => ({ step, sql }));
  });
  expect(slow).toEqual([]);
});
