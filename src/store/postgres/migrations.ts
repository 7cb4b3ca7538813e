/**
 * The schema, as numbered steps: step n brings a database from version n - 1 to n. A step that has been
 * released is never edited, and is such that nodes of the version before can go on working; where that is not
 * possible, `compatibleFrom` names the first version that can.
 *
 * `afterword_queue` is narrow, has what is pending and changes at every attempt. The other tables of a delivery
 * are written once, and lie in partitions by the day of its run id, which retention drops as a whole:
 * `afterword_deliveries` (what came in), `afterword_body_parts` (large bodies), `afterword_attempts`, and
 * `afterword_settled` (how it ended). A new round by hand takes a delivery out of the last and puts it back into
 * the queue. The days' partitions are made in partitions.ts; the default ones are for
 * run ids of days that have none.
 *
 * Runs are kept in the same way, without partitions, since they are kept for a day or so: `afterword_run_queue`
 * has those that have not ended, and changes; `afterword_runs` (what came in), `afterword_run_ends` (how it
 * ended) and `afterword_run_parts` (large bodies of both) are written once. `afterword_run_keys` has the keys of
 * callers. What is there for people, jobs and numbers, is in ledger-tables.ts and stats-tables.ts.
 *
 * An owner is the number that `afterword_nodes` gives to a node. Times are milliseconds since the epoch by the
 * database's clock.
 */
import { LEDGER_TABLES, UNDELIVERED } from './ledger-tables.ts';
import { FILLERS, QUEUE_STORAGE } from './queue-storage.ts';
import { RUN_TABLES } from './run-tables.ts';
import { STATS_TABLES } from './stats-tables.ts';

export interface Migration {
  readonly sql: string;
  /** The first version of the program's schema that can work with the result. */
  readonly compatibleFrom: number;
}

export const MIGRATIONS: readonly Migration[] = [
  {
    compatibleFrom: 1,
    sql: `
  CREATE TABLE afterword_nodes (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text NOT NULL UNIQUE,
    beat_at timestamptz NOT NULL,   -- when it last showed that it lives; -infinity: it says that it does not
    since   timestamptz NOT NULL    -- it has shown so without a gap since then
  );

  -- Embedded stores that were moved here, or still are being: where in each of them the move has come to.
  CREATE TABLE afterword_imports (
    id        uuid PRIMARY KEY,
    source    text NOT NULL,               -- for whoever wonders
    pending   bigint NOT NULL DEFAULT 0,   -- deliveries
    settled   bigint NOT NULL DEFAULT 0,
    waiting   bigint NOT NULL DEFAULT 0,   -- runs, and those that have ended with a result of their own or not
    kept      bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    keys      bigint NOT NULL DEFAULT 0    -- of callers
  );

  CREATE TABLE afterword_queue (
    id        uuid PRIMARY KEY,            -- the run id
    owner     integer,
    claim     integer NOT NULL DEFAULT 0,  -- the owner's claim that took it; 0: inserted by the owner, or free
    round     smallint NOT NULL,
    attempts  smallint NOT NULL,           -- of this round
    cause     smallint NOT NULL,           -- the attempts' trigger
    due_at    double precision NOT NULL,
    in_flight double precision,            -- when the attempt under way began
    key_id    text,                        -- of what is sealed: who has no such key does not claim it
    project   text NOT NULL,
    app       text NOT NULL,
    host      text NOT NULL,               -- of the delivery's own target
    created_at   double precision NOT NULL,
    last_status  smallint,                 -- of the attempt that ended last
    other_target text,                     -- where this round goes, if not to the delivery's own target
    other_sealed bytea                     -- in place of what is sealed in the delivery, for that target
  ) WITH (${QUEUE_STORAGE}
  );

  -- For claiming, and for taking over and giving up; attempts leave them alone. Two, with conditions, so that
  -- they are of no use where a delivery is looked up by its id: there the planner may have the wrong idea.
  CREATE INDEX afterword_queue_unowned ON afterword_queue (owner, id) WHERE owner IS NULL;
  CREATE INDEX afterword_queue_owned ON afterword_queue (owner, id) WHERE owner IS NOT NULL;

  -- Always by these indexes, in their order, and never further than wanted. From counts that are a minute old,
  -- the planner may take it for better to fetch all that there are and to sort them.
  CREATE FUNCTION afterword_unowned(keys text[], wanted integer) RETURNS SETOF afterword_queue
    LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      SELECT * FROM afterword_queue
      WHERE owner IS NULL AND (key_id IS NULL OR key_id = ANY (keys))
      ORDER BY owner, id LIMIT wanted FOR UPDATE SKIP LOCKED
    $$;
  CREATE FUNCTION afterword_waiting(keys text[]) RETURNS boolean
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
      SELECT EXISTS (
        SELECT FROM afterword_queue WHERE owner IS NULL AND (key_id IS NULL OR key_id = ANY (keys))
      )
    $$;
  CREATE FUNCTION afterword_owned(whose integer, wanted integer) RETURNS SETOF afterword_queue
    LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      SELECT * FROM afterword_queue
      WHERE owner >= whose AND owner <= whose -- an equality would leave the order to the primary key as well
      ORDER BY owner, id LIMIT wanted FOR UPDATE SKIP LOCKED
    $$;

  INSERT INTO afterword_queue (id, round, attempts, cause, due_at, project, app, host, created_at)
    SELECT gen_random_uuid(), 0, 0, 0, 0, filler, '', '', 0 FROM ${FILLERS};
  DELETE FROM afterword_queue;

  CREATE TABLE afterword_deliveries (
    id         uuid PRIMARY KEY,
    project    text NOT NULL,
    app        text NOT NULL,
    target     text NOT NULL,
    host       text NOT NULL,              -- of the target
    status     smallint NOT NULL,
    created_at double precision NOT NULL,
    traceparent text,
    key_id     text,
    sealed     bytea,
    body_size  bigint,                     -- the body is in parts
    body       bytea
  ) PARTITION BY RANGE (id);
  -- For lists, newest first.
  CREATE INDEX afterword_deliveries_of_project ON afterword_deliveries (project, id);
  CREATE INDEX afterword_deliveries_of_app ON afterword_deliveries (project, app, id);
  CREATE INDEX afterword_deliveries_of_host ON afterword_deliveries (host, id);
  -- As they are: most bodies are too small to gain by compression, and large ones cost more than they gain.
  ALTER TABLE afterword_deliveries ALTER COLUMN body SET STORAGE EXTERNAL;

  CREATE TABLE afterword_body_parts (
    id    uuid NOT NULL,
    part  integer NOT NULL,                -- from 0
    bytes bytea NOT NULL,
    PRIMARY KEY (id, part)
  ) PARTITION BY RANGE (id);
  ALTER TABLE afterword_body_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;

  CREATE TABLE afterword_attempts (
    id            uuid NOT NULL,
    round         smallint NOT NULL,
    number        smallint NOT NULL,
    cause         smallint NOT NULL,
    started_at    double precision NOT NULL,
    queue_ms      double precision NOT NULL,
    dns_ms        double precision,
    connect_ms    double precision,
    tls_ms        double precision,
    first_byte_ms double precision,
    total_ms      double precision NOT NULL,
    status        smallint,
    error         text,
    target        text,                    -- where it went, if not to the delivery's own
    headers       text,                    -- of the receiver's answer
    excerpt       bytea,
    PRIMARY KEY (id, round, number, started_at)
  ) PARTITION BY RANGE (id);

  CREATE TABLE afterword_settled (
    id         uuid PRIMARY KEY,
    state      smallint NOT NULL,
    reason     smallint,
    round      smallint NOT NULL,
    settled_at double precision NOT NULL,
    project    text NOT NULL,
    app        text NOT NULL,
    host       text NOT NULL,              -- of the delivery's own target
    last_status  smallint,                 -- of the last attempt
    other_target text                      -- where the last round went, if not to the delivery's own target
  ) PARTITION BY RANGE (id);
  CREATE INDEX afterword_settled_at ON afterword_settled (settled_at);
  -- For lists of what was not delivered, which is little beside the rest.
  CREATE INDEX afterword_undelivered ON afterword_settled (state, id) WHERE ${UNDELIVERED};
  CREATE INDEX afterword_undelivered_of_project ON afterword_settled (project, state, id) WHERE ${UNDELIVERED};
  CREATE INDEX afterword_undelivered_of_host ON afterword_settled (host, state, id) WHERE ${UNDELIVERED};

  CREATE TABLE afterword_deliveries_default PARTITION OF afterword_deliveries DEFAULT;
  CREATE TABLE afterword_body_parts_default PARTITION OF afterword_body_parts DEFAULT;
  CREATE TABLE afterword_attempts_default PARTITION OF afterword_attempts DEFAULT;
  CREATE TABLE afterword_settled_default PARTITION OF afterword_settled DEFAULT;
${RUN_TABLES}${LEDGER_TABLES}${STATS_TABLES}
  `,
  },
];
