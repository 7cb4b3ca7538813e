/**
 * An embedded store with very many deliveries, runs and counts in it, spread over the last weeks, as a service
 * that has worked for long would have left them. Written by SQL past the store: it is there within seconds.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { loadKeyring } from '../../src/store/keys.ts';
import { hostOf } from '../../src/store/ledger.ts';
import { seal } from '../../src/store/seal.ts';
import { CATALOGUE_CHUNK } from '../../src/store/sqlite/catalogue.ts';
import { DATABASE_FILE, openDatabase } from '../../src/store/sqlite/database.ts';
import { firstKeyAt, KEYS_PER_MS } from '../../src/store/sqlite/key.ts';
import { addMillionCounts } from './million-counts.ts';
import { FATES, fateOf, FILL, isPending, runIdAt } from './million-sql.ts';

/** So many, at equal distances. */
export interface Span {
  readonly deliveries: number;
  readonly from: number;
  readonly until: number;
}

export interface Million extends Span {
  /** The data directory; made where it is not there. */
  readonly data: string;
  /** Every so many deliveries come from an asynchronous call. */
  readonly runEvery: number;
  /** Where those go that have not ended: whoever opens the store sends them. */
  readonly pendingTarget: string;
  /** Most of it is of the first. */
  readonly projects: readonly [string, string];
}

const SECRET = Buffer.from('a secret of the past');

/** The run of one of them, counted from the oldest, which is 1. */
export function runIdOf({ deliveries, from, until }: Span, n: number): string {
  return runIdAt(from + Math.floor(n * ((until - from) / deliveries)));
}

/** The run of the newest that ended so. */
export function newestOf(span: Span, fate: keyof typeof FATES): string {
  const { deliveries } = span;
  const names = Object.keys(FATES) as (keyof typeof FATES)[];
  const nameOf = (n: number) => names.find(name => fateOf(n, deliveries) < FATES[name].below);
  let n = deliveries;
  while (isPending(n, deliveries) || nameOf(n) !== fate) n -= 1;
  return runIdOf(span, n);
}

export function fillMillion(million: Million): void {
  const { data, deliveries, from, until, runEvery, pendingTarget, projects } = million;
  mkdirSync(data, { recursive: true });
  const keyring = loadKeyring({ dir: data });
  const { db } = openDatabase({ file: join(data, DATABASE_FILE), nodeId: randomUUID(), keyring });
  db.function('sealed_for', runId => seal({ secret: SECRET }, String(runId), keyring)!.sealed);
  const gap = (until - from) / deliveries;
  const key = firstKeyAt(from);
  const catalogued = Math.max(0, deliveries - CATALOGUE_CHUNK);
  const values = {
    count: deliveries,
    from,
    gap,
    key,
    mark: key + Math.floor(catalogued * gap) * KEYS_PER_MS,
    project: projects[0],
    other: projects[1],
    keyId: keyring.newest,
    pendingTarget,
    pendingHost: hostOf(pendingTarget),
    runEvery,
  };
  try {
    withoutCare(db, () => {
      for (const sql of FILL) run(db, sql, values);
      addMillionCounts(db, million);
    });
  } finally {
    db.close();
  }
}

function run(db: DatabaseSync, sql: string, values: Record<string, string | number>): void {
  const statement = db.prepare(sql);
  statement.setAllowUnknownNamedParameters(true);
  statement.run(values);
}

/** Nothing of it needs to survive a crash: no journal, and no waiting for a disk. */
function withoutCare(db: DatabaseSync, fill: () => void): void {
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN');
  fill();
  db.exec('COMMIT; PRAGMA journal_mode = WAL');
}
