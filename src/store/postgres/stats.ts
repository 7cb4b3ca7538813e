/**
 * Numbers of all nodes, added up in the database. What a node adds is numbered, and the last number is written
 * along with it: so after a lost answer nothing is added twice.
 */
import type { QueryResultRow } from 'pg';
import type { Clock } from '../../clock.ts';
import type {
  Counts,
  FailingHost,
  HostCounts,
  MinuteCounts,
  Span,
  StatsStore,
  StatsWindow,
} from '../stats.ts';
import type { Database, Statement } from './connection.ts';
import type { Gate } from './gate.ts';
import { createLane } from './lane.ts';
import type { Persistence } from './persistence.ts';
import { BUCKETS, HOST_COUNTS, MINUTE_COUNTS } from './stats-tables.ts';

const HOUR_MS = 3_600_000;

/** In the order of the keys, so that two nodes never wait for each other. */
const ADD = (table: string, keys: readonly string[], counts: readonly string[], rows: string) => `
  INSERT INTO ${table} AS t (${[...keys, ...counts].join(', ')})
  SELECT ${keys.join(', ')}, ${counts.map(count => `sum(${count})`).join(', ')}
  FROM jsonb_populate_recordset(NULL::${table}, ${rows}) WHERE EXISTS (SELECT FROM fresh)
  GROUP BY ${keys.join(', ')} ORDER BY ${keys.join(', ')}
  ON CONFLICT (${keys.join(', ')}) DO UPDATE
    SET ${counts.map(count => `${count} = t.${count} + excluded.${count}`).join(', ')}`;

const ADD_BATCH: Statement = {
  text: `
    WITH fresh AS (
      INSERT INTO afterword_counted AS c (node, batch, at) VALUES ($1::text, $2::int, $3::float8)
      ON CONFLICT (node) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE c.batch < excluded.batch
      RETURNING batch
    ), minutes AS (${ADD('afterword_minutes', ['minute', 'project'], MINUTE_COUNTS, '$4::jsonb')})
    ${ADD('afterword_hosts', ['hour', 'project', 'host'], HOST_COUNTS, '$5::jsonb')}`,
};

const SPANS: Statement = {
  text: `
    SELECT floor(minute / $3::float8) * $3::float8 AS at,
      ${MINUTE_COUNTS.map(count => `sum(${count})::float8 AS ${count}`).join(', ')}
    FROM afterword_minutes WHERE minute >= $2::float8 AND ($1::text IS NULL OR project = $1::text)
    GROUP BY 1 ORDER BY 1`,
};

const FAILING: Statement = {
  text: `
    SELECT host, sum(attempts)::float8 AS attempts, sum(failures)::float8 AS failures
    FROM afterword_hosts WHERE hour > $2::float8 - ${HOUR_MS} AND ($1::text IS NULL OR project = $1::text)
    GROUP BY host HAVING sum(failures) > 0 ORDER BY failures DESC, host LIMIT $3::int`,
};

const PRUNE: readonly Statement[] = [
  { text: 'DELETE FROM afterword_minutes WHERE minute < $1::float8' },
  { text: 'DELETE FROM afterword_hosts WHERE hour < $1::float8' },
  { text: 'DELETE FROM afterword_counted WHERE at < $1::float8' },
];

export interface StatsOptions {
  readonly database: Database;
  readonly persistence: Persistence;
  readonly gate: Gate;
  readonly clock: Clock;
  /** A name that no other start of the process has had. */
  readonly nodeId: string;
}

interface Batch {
  readonly number: number;
  readonly minutes: readonly MinuteCounts[];
  readonly hosts: readonly HostCounts[];
}

export function createStats({ database, persistence, gate, clock, nodeId }: StatsOptions): StatsStore {
  let batches = 0;
  // One after the other, in the order of their numbers.
  const additions = createLane<Batch, void>({
    width: 1,
    length: 1,
    sizeOf: () => 0,
    persistence,
    async run([batch]) {
      const { number, minutes, hosts } = batch!;
      const rows = [minutes.map(minuteRow), hosts.map(hostRow)].map(each => JSON.stringify(each));
      await database.query(ADD_BATCH, [nodeId, number, clock.now(), ...rows]);
      return [undefined];
    },
  });
  const read = <T>(work: () => Promise<T>) => gate.run(() => persistence.persist(work));

  return {
    add: (minutes, hosts) =>
      gate.run(async () => {
        if (minutes.length + hosts.length === 0) return;
        await additions.submit({ number: (batches += 1), minutes, hosts });
      }),
    spans: window => read(() => readSpans(database, window)),
    failingHosts: (window, limit) => read(() => readFailing(database, window, limit)),
    prune: before =>
      read(async () => {
        for (const statement of PRUNE) await database.query(statement, [before]);
      }),
  };
}

function minuteRow({ projectId, minute, callErrors, firstAttempts, ...counts }: MinuteCounts) {
  const buckets = Object.fromEntries(BUCKETS.map((bucket, i) => [bucket, firstAttempts[i] ?? 0]));
  return { project: projectId, minute, call_errors: callErrors, ...counts, ...buckets };
}

function hostRow({ projectId, ...rest }: HostCounts) {
  return { project: projectId, ...rest };
}

type SpanRow = QueryResultRow & Pick<Span, 'at' | Exclude<keyof Counts, 'callErrors' | 'firstAttempts'>>;

async function readSpans(database: Database, { projectId, since, step }: StatsWindow): Promise<Span[]> {
  const { rows } = await database.query<SpanRow>(SPANS, [projectId, since, step]);
  return rows.map(row => ({
    at: row.at,
    calls: row.calls,
    callErrors: row['call_errors'] as number,
    made: row.made,
    delivered: row.delivered,
    failed: row.failed,
    firstAttempts: BUCKETS.map(bucket => row[bucket] as number),
  }));
}

async function readFailing(
  database: Database,
  { projectId, since }: Omit<StatsWindow, 'step'>,
  limit: number,
): Promise<FailingHost[]> {
  return (await database.query<FailingHost & QueryResultRow>(FAILING, [projectId, since, limit])).rows;
}
