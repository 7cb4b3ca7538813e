/**
 * What has been counted: rows by project and minute, and by project, hour and host. What is counted for a project
 * is counted for all together as well, in rows without a project, so that either is told from few rows.
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  type Counts,
  type FailingHost,
  type HostCounts,
  LATENCY_BOUNDS,
  type MinuteCounts,
  type Span,
} from '../../stats.ts';
import type { Once } from '../once.ts';
import type { Handlers } from '../protocol.ts';
import { addBuckets, packBuckets } from './buckets.ts';
import type { StatsOperations } from './protocol.ts';

const ALL = '';
const HOUR_MS = 3_600_000;
const BUCKETS = LATENCY_BOUNDS.length + 1;

interface MinuteRow {
  readonly minute: number;
  readonly calls: number;
  readonly call_errors: number;
  readonly made: number;
  readonly delivered: number;
  readonly failed: number;
  readonly first_attempts: Uint8Array;
}

type Sums = { -readonly [K in keyof Counts]: Counts[K] extends number ? number : number[] };

export function createStatsHandlers(db: DatabaseSync, once: Once): Pick<Handlers, keyof StatsOperations> {
  return {
    addCounts: once<'addCounts'>(addCountsHandler(db)),
    spans: spansHandler(db),
    failingHosts: failingHostsHandler(db),
    pruneCounts: pruneCountsHandler(db),
  };
}

function addCountsHandler(db: DatabaseSync): Handlers['addCounts'] {
  const addMinute = minuteAdder(db);
  const upsertHost = db.prepare(
    `INSERT INTO host_counts (project, hour, host, attempts, failures) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET attempts = attempts + excluded.attempts, failures = failures + excluded.failures`,
  );
  const addHost = (project: string, { hour, host, attempts, failures }: HostCounts) =>
    upsertHost.run(project, hour, host, attempts, failures);
  return ({ minutes, hosts }) => {
    for (const each of minutes) for (const project of [each.projectId, ALL]) addMinute(project, each);
    for (const each of hosts) for (const project of [each.projectId, ALL]) addHost(project, each);
  };
}

function minuteAdder(db: DatabaseSync): (project: string, counts: MinuteCounts) => void {
  const before = db.prepare('SELECT first_attempts FROM minute_counts WHERE project = ? AND minute = ?');
  const upsert = db.prepare(
    `INSERT INTO minute_counts (project, minute, calls, call_errors, made, delivered, failed, first_attempts)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, call_errors = call_errors + excluded.call_errors,
       made = made + excluded.made, delivered = delivered + excluded.delivered,
       failed = failed + excluded.failed, first_attempts = excluded.first_attempts`,
  );
  return (project, { minute, calls, callErrors, made, delivered, failed, firstAttempts }) => {
    const sums = [...firstAttempts];
    const row = before.get(project, minute);
    if (row !== undefined) addBuckets(sums, row['first_attempts'] as Uint8Array);
    upsert.run(project, minute, calls, callErrors, made, delivered, failed, packBuckets(sums));
  };
}

function spansHandler(db: DatabaseSync): Handlers['spans'] {
  const minutes = db.prepare(
    `SELECT minute, calls, call_errors, made, delivered, failed, first_attempts FROM minute_counts
     WHERE project = ? AND minute >= ? ORDER BY minute`,
  );
  return ({ projectId = ALL, since, step }) => {
    const spans = new Map<number, Sums>();
    for (const each of minutes.iterate(projectId, since)) {
      const row = each as unknown as MinuteRow;
      const at = Math.floor(row.minute / step) * step;
      const sums = spans.get(at) ?? nothing();
      spans.set(at, sums);
      addRow(sums, row);
    }
    return Array.from(spans, ([at, sums]): Span => ({ at, ...sums }));
  };
}

function nothing(): Sums {
  const firstAttempts = Array.from({ length: BUCKETS }, () => 0);
  return { calls: 0, callErrors: 0, made: 0, delivered: 0, failed: 0, firstAttempts };
}

function addRow(sums: Sums, row: MinuteRow): void {
  sums.calls += row.calls;
  sums.callErrors += row.call_errors;
  sums.made += row.made;
  sums.delivered += row.delivered;
  sums.failed += row.failed;
  addBuckets(sums.firstAttempts, row.first_attempts);
}

function failingHostsHandler(db: DatabaseSync): Handlers['failingHosts'] {
  const hosts = db.prepare(
    `SELECT host, sum(attempts) AS attempts, sum(failures) AS failures FROM host_counts
     WHERE project = ? AND hour > ? GROUP BY host HAVING sum(failures) > 0
     ORDER BY sum(failures) DESC, host LIMIT ?`,
  );
  return ({ window: { projectId = ALL, since }, limit }) =>
    hosts.all(projectId, since - HOUR_MS, limit).map(row => ({ ...row }) as unknown as FailingHost);
}

function pruneCountsHandler(db: DatabaseSync): Handlers['pruneCounts'] {
  const deletions = [
    db.prepare('DELETE FROM minute_counts INDEXED BY minute_counts_minute WHERE minute < ?'),
    db.prepare('DELETE FROM host_counts INDEXED BY host_counts_hour WHERE hour < ?'),
  ];
  return ({ before }) => {
    for (const deletion of deletions) deletion.run(before);
  };
}
