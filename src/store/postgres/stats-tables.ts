/**
 * The tables of the numbers, a part of the first step of migrations.ts. The times of first attempts have a column
 * for each bucket: a database adds up columns ten times as fast as the elements of arrays.
 */
import { LATENCY_BOUNDS } from '../stats.ts';

/** One more than there are bounds. */
export const BUCKETS = Array.from({ length: LATENCY_BOUNDS.length + 1 }, (_, i) => `first_${i}`);

/** What is counted for each project and minute. */
export const MINUTE_COUNTS = ['calls', 'call_errors', 'made', 'delivered', 'failed', ...BUCKETS] as const;

export const HOST_COUNTS = ['attempts', 'failures'] as const;

const COUNTS = (columns: readonly string[]) => columns.map(column => `${column} integer NOT NULL`).join(', ');

export const STATS_TABLES = `
  CREATE TABLE afterword_minutes (
    minute  double precision NOT NULL,     -- when it began
    project text NOT NULL,
    ${COUNTS(MINUTE_COUNTS)},
    PRIMARY KEY (minute, project)
  );
  CREATE INDEX afterword_minutes_of_project ON afterword_minutes (project, minute);

  CREATE TABLE afterword_hosts (
    hour    double precision NOT NULL,     -- when it began
    project text NOT NULL,
    host    text NOT NULL,
    ${COUNTS(HOST_COUNTS)},
    PRIMARY KEY (hour, project, host)
  );
  CREATE INDEX afterword_hosts_of_project ON afterword_hosts (project, hour);

  -- What each node has added so far: after a lost answer it is not added twice.
  CREATE TABLE afterword_counted (
    node  text PRIMARY KEY,
    batch integer NOT NULL,
    at    double precision NOT NULL
  );
`;
