/** A database with very many deliveries, and a count of the rows that its statements look at. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import type { DeliveryFilter, LedgerPage, RunIdList } from '../../../../src/store/ledger.ts';
import { CATALOGUE_CHUNK } from '../../../../src/store/sqlite/catalogue.ts';
import { openDatabase } from '../../../../src/store/sqlite/database.ts';
import { createHandlers } from '../../../../src/store/sqlite/handlers.ts';
import { firstKeyAt } from '../../../../src/store/sqlite/key.ts';
import { temporaryDirectory } from '../../samples.ts';
import { KEYRING } from '../opening.ts';

const START = Date.UTC(2026, 0, 1);
/** As many as the catalogue may not have yet. */
const RECENT = 2 * CATALOGUE_CHUNK;

/**
 * One in each millisecond: plainly delivered but for one in a thousand that failed with 503. The oldest are of
 * places that no other is of: one was delivered, one failed, one was cancelled. Some of the newest are pending.
 */
const FILL = `
  INSERT INTO deliveries
    (id, project, app, host, state, reason, last_status, owner, due_at, round, attempts, cause, settled_at)
  SELECT $first + value * 8192,
    CASE WHEN value <= 3 THEN 'p-rare' ELSE 'p-' || (value % 4) END,
    CASE WHEN value <= 3 THEN 'rare' ELSE 'app-' || (value % 10) END,
    CASE WHEN value <= 3 THEN 'rare.example' ELSE 'host-' || (value % 7) || '.example' END,
    CASE WHEN value > $count - 50 THEN 0 WHEN value = 3 THEN 3 WHEN value = 2 OR value % 1000 = 0 THEN 2 ELSE 1 END,
    CASE WHEN value = 2 OR value <= $count - 50 AND value % 1000 = 0 THEN 1 END,
    CASE WHEN value > $count - 50 THEN NULL WHEN value <= 2 OR value % 1000 THEN 200 ELSE 503 END,
    CASE WHEN value > $count - 50 THEN nullif(value % 3, 0) END,
    $start + value, 1, 1, 0, CASE WHEN value <= $count - 50 THEN $start + value END
  FROM numbers`;

const FILL_CONTENTS = `
  INSERT INTO contents (id, run_id, app, target, status, created_at)
  SELECT $first + value * 8192,
    unhex(printf('%012x70008000%012x', $start + value, value)),
    CASE WHEN value <= 3 THEN 'rare' ELSE 'app-' || (value % 10) END,
    'https://host-' || (value % 7) || '.example/', 200, $start + value
  FROM numbers`;

export interface ManyRows {
  readonly db: DatabaseSync;
  list(filter: DeliveryFilter, page: LedgerPage): RunIdList;
  /** How many rows have been looked at since this was asked last. */
  looked(): number;
}

export function openMany(count: number): ManyRows {
  const dir = temporaryDirectory();
  const { db } = openDatabase({ file: join(dir, 'test.db'), nodeId: 'node', keyring: KEYRING });
  onTestFinished(() => db.close());
  const numbers = `WITH RECURSIVE numbers (value) AS
    (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < $count)`;
  const parameters: Record<string, number> = { $count: count, $first: firstKeyAt(START), $start: START };
  db.exec('BEGIN');
  for (const fill of [FILL, FILL_CONTENTS])
    db.prepare(numbers + fill).run(fill === FILL ? parameters : parameters);
  const parts = [
    'INSERT INTO delivery_apps SELECT project, app, id FROM deliveries WHERE id <= ?',
    'INSERT INTO delivery_hosts SELECT host, id FROM deliveries WHERE id <= ?',
    'UPDATE catalogue SET mark = ?',
  ];
  for (const part of parts) db.prepare(part).run(firstKeyAt(START + count - RECENT));
  db.exec('COMMIT');

  let rows = 0;
  db.function('looked_at', () => {
    rows += 1;
    return 1;
  });
  const { listRunIds } = createHandlers(counting(db), { keyring: KEYRING, spoolDir: dir });
  return {
    db,
    list: (filter, page) => listRunIds({ filter, page }, [], false, 1),
    looked() {
      const since = rows;
      rows = 0;
      return since;
    },
  };
}

/** The first thing that is asked of a row is to be counted. */
function counting(db: DatabaseSync): DatabaseSync {
  return new Proxy(db, {
    get(target, name: keyof DatabaseSync) {
      if (name !== 'prepare') return target[name];
      return (sql: string) =>
        target.prepare(
          sql.startsWith('SELECT id FROM deliver') ? sql.replace('WHERE', 'WHERE looked_at() AND') : sql,
        );
    },
  });
}
