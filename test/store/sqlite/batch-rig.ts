/** The database without its thread: batches are run, and run again as after a lost answer. */
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createBatchRunner } from '../../../src/store/sqlite/batch.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createHandlers } from '../../../src/store/sqlite/handlers.ts';
import type { Args, Kind, Operation } from '../../../src/store/sqlite/protocol.ts';
import { temporaryDirectory } from '../samples.ts';
import { KEYRING } from './opening.ts';

/** Everything but the keys that seal, and the nodes. */
const TABLES = [
  'deliveries',
  'contents',
  'attempts',
  'traces',
  'overrides',
  'jobs',
  'ledger_keys',
  'answers',
  'minute_counts',
  'host_counts',
  'live_runs',
  'run_requests',
  'ended_runs',
  'run_keys',
];

export function batchRig() {
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
  const content = () => TABLES.map(table => database.db.prepare(`SELECT * FROM ${table}`).all());
  /** The second time changes nothing and answers the same. */
  const twice = (...operations: Operation[]) => {
    const first = run(operations, false);
    const before = content();
    const second = run(operations, true);
    expect(second).toEqual(first);
    expect(content()).toEqual(before);
    return first;
  };
  return { db: database.db, run, twice };
}

export function operation<K extends Kind>(
  kind: K,
  args: Args<K>,
  blobs: Operation['blobs'] = [],
  owner?: number,
): Operation {
  return { kind, args, blobs, owner };
}
