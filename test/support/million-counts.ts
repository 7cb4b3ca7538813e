/**
 * What a service would have counted of very many deliveries, by the minute and by the hour, for as long as such
 * numbers are kept.
 */
import type { DatabaseSync } from 'node:sqlite';
import { packBuckets } from '../../src/store/sqlite/stats/buckets.ts';
import { LATENCY_BOUNDS } from '../../src/store/stats.ts';
import type { Million } from './million.ts';
import { HOSTS } from './million-sql.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const KEPT_MS = 8 * DAY_MS;
/** The rows of all projects together. */
const ALL = '';
/** So many receivers fail now and then. */
const FAILING = 5;

export function addMillionCounts(db: DatabaseSync, { deliveries, from, until, projects }: Million): void {
  const since = Math.max(from, until - KEPT_MS);
  const perMinute = (deliveries / (until - from)) * MINUTE_MS;
  const shares = [
    [projects[0], 0.7],
    [projects[1], 0.3],
    [ALL, 1],
  ] as const;
  for (const [project, share] of shares) {
    addMinutes(db, { project, since, until, perMinute: perMinute * share });
    addHosts(db, { project, since, until, perMinute: perMinute * share });
  }
}

interface Counting {
  readonly project: string;
  readonly since: number;
  readonly until: number;
  /** How many deliveries there are on the average. */
  readonly perMinute: number;
}

/** More by day than by night. */
function addMinutes(db: DatabaseSync, { project, since, until, perMinute }: Counting): void {
  const insert = db.prepare('INSERT INTO minute_counts VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  for (let minute = startOf(since, MINUTE_MS); minute <= until; minute += MINUTE_MS) {
    const chance = chanceOf(minute / MINUTE_MS);
    const wave = 1 + 0.4 * Math.sin((minute / DAY_MS) * 2 * Math.PI) + 0.5 * (chance - 0.5);
    const made = Math.round(perMinute * wave);
    const failed = Math.floor(made * 0.06 * chance + chance);
    const counts = [made * 4, Math.floor(made * 0.1 * chance), made, made - failed, failed] as const;
    insert.run(project, minute, ...counts, latencies(made, chance));
  }
}

function addHosts(db: DatabaseSync, { project, since, until, perMinute }: Counting): void {
  const insert = db.prepare('INSERT INTO host_counts VALUES (?, ?, ?, ?, ?)');
  const attempts = Math.round((perMinute * 60) / HOSTS.length);
  for (let hour = startOf(since, HOUR_MS); hour <= until; hour += HOUR_MS) {
    for (const [place, host] of HOSTS.entries())
      insert.run(project, hour, host, attempts, place < FAILING ? Math.ceil(attempts / (place + 4)) : 0);
  }
}

/** Most first attempts take tens of milliseconds, one in fifteen some hundred. */
function latencies(count: number, chance: number): Uint8Array {
  const buckets = LATENCY_BOUNDS.map(() => 0);
  for (let n = 0; n < count; n += 1) buckets[n % 15 === 0 ? 14 + Math.floor(4 * chance) : 9 + (n % 4)]! += 1;
  return packBuckets([...buckets, 0]);
}

/** Between 0 and 1, the same for the same number. */
function chanceOf(number: number): number {
  return Math.abs(Math.sin(number * 12.9898) * 43758.5453) % 1;
}

function startOf(time: number, length: number): number {
  return Math.floor(time / length) * length;
}
