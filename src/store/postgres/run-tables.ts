/**
 * The tables of runs, a part of the first step of migrations.ts, and the functions that pick runs out of their
 * queue: always by its indexes, in their order, and never further than wanted, as with deliveries.
 */
import { RUN_LOCK_CLASS } from './partitions.ts';
import { FILLERS, QUEUE_STORAGE } from './queue-storage.ts';

/** Those of one app. Equalities would let the planner go by the id alone, and so through all other apps. */
const OF_APP = (project: string, app: string) =>
  `(project, app) >= (${project}, ${app}) AND (project, app) <= (${project}, ${app})`;

/** What is told of claimed runs. Each is looked up by its id, however many the planner takes them for. */
export const DETAILED = (taken: string) => `
  SELECT q.id, q.project, q.app, q.starts, q.cancelled, r.method, r.path, r.query, r.target, r.created_at,
    r.key_id, r.headers, r.sealed
  FROM ${taken} q JOIN afterword_runs r ON r.id = ANY (ARRAY[q.id])`;

/** Runs that are only to be ended; a claim takes no more of them at once. */
const MARKED_AT_ONCE = 500;

export const RUN_TABLES = `
  CREATE TABLE afterword_run_queue (
    id         uuid PRIMARY KEY,
    project    text NOT NULL,
    app        text NOT NULL,
    owner      integer,
    claim      integer NOT NULL DEFAULT 0, -- the owner's claim that took it
    starts     integer NOT NULL DEFAULT 0,
    started_at double precision,           -- when an owner that is gone last began it
    begun_at   double precision,           -- when its owner began it
    cancelled  boolean NOT NULL DEFAULT false, -- it is to be
    key_id     text NOT NULL
  ) WITH (${QUEUE_STORAGE}
  );

  -- For claiming, for taking over and giving up, for the limits of apps, and for what is to be cancelled.
  CREATE INDEX afterword_run_queue_unowned ON afterword_run_queue (project, app, cancelled, id)
    WHERE owner IS NULL;
  CREATE INDEX afterword_run_queue_owned ON afterword_run_queue (owner, id) WHERE owner IS NOT NULL;
  CREATE INDEX afterword_run_queue_busy ON afterword_run_queue (project, app, owner) WHERE owner IS NOT NULL;
  CREATE INDEX afterword_run_queue_marked ON afterword_run_queue (owner, id)
    WHERE cancelled AND owner IS NOT NULL;

  CREATE FUNCTION afterword_unowned_runs(
    keys text[], of_project text, of_app text, marked boolean, wanted integer
  ) RETURNS SETOF afterword_run_queue
    LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      SELECT * FROM afterword_run_queue
      WHERE owner IS NULL AND key_id = ANY (keys)
        AND (project, app, cancelled) >= (of_project, of_app, marked)
        AND (project, app, cancelled) <= (of_project, of_app, marked)
      ORDER BY project, app, cancelled, id LIMIT wanted FOR UPDATE SKIP LOCKED
    $$;

  -- Of each wanted app: as many as there is room for, and those that are only to be ended. Where the limit is
  -- for all nodes together, they take turns at an app; each statement sees what was committed before it, and
  -- so what the node before has taken. Hence the details are read here as well: whoever calls this does not see
  -- a run that came while it waited for its turn. The locks have an order, so that nobody waits in a circle.
  CREATE FUNCTION afterword_claim_runs(
    me integer, number integer, keys text[], projects text[], apps text[], limits integer[], each boolean[]
  ) RETURNS TABLE (
    id uuid, project text, app text, starts integer, cancelled boolean, method text, path text, query text,
    target text, created_at double precision, key_id text, headers bytea, sealed bytea
  ) ROWS 10
    LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      #variable_conflict use_column
      DECLARE
        wanted record;
        room integer;
      BEGIN
        FOR wanted IN
          SELECT w.*, hashtext(format('%s/%s/%s', current_schema(), w.project, w.app)) AS turn
          FROM unnest(projects, apps, limits, each) AS w (project, app, most, each_node)
          CROSS JOIN LATERAL (
            SELECT FROM afterword_run_queue WHERE owner IS NULL AND ${OF_APP('w.project', 'w.app')}
            ORDER BY project, app, cancelled, id LIMIT 1
          ) waiting
          WHERE EXISTS (SELECT FROM afterword_nodes n WHERE n.id = me) -- an owner that nobody knows is never freed
          ORDER BY turn
        LOOP
          IF NOT wanted.each_node THEN
            PERFORM pg_advisory_xact_lock(${RUN_LOCK_CLASS}, wanted.turn);
          END IF;
          SELECT wanted.most - count(*) INTO room FROM afterword_run_queue q
          WHERE q.owner IS NOT NULL AND q.project = wanted.project AND q.app = wanted.app
            AND (q.owner = me OR NOT wanted.each_node) AND (q.begun_at IS NOT NULL OR NOT q.cancelled);
          RETURN QUERY WITH taken AS (
            UPDATE afterword_run_queue SET owner = me, claim = number WHERE id = ANY (ARRAY(
              SELECT m.id FROM afterword_unowned_runs(
                keys, wanted.project, wanted.app, true, ${MARKED_AT_ONCE}) m
              UNION ALL
              SELECT u.id FROM afterword_unowned_runs(
                keys, wanted.project, wanted.app, false, greatest(room, 0)) u
            )) RETURNING *
          ) ${DETAILED('taken')};
        END LOOP;
      END
    $$;

  -- Those of other apps; which apps there are is found by going from the first run of one to that of the next.
  CREATE FUNCTION afterword_stray_runs(
    keys text[], projects text[], apps text[], before uuid, wanted integer
  ) RETURNS SETOF afterword_run_queue
    LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      WITH RECURSIVE waiting AS (
        (SELECT project, app FROM afterword_run_queue WHERE owner IS NULL
         ORDER BY project, app, cancelled, id LIMIT 1)
        UNION ALL
        SELECT next.* FROM waiting w CROSS JOIN LATERAL (
          SELECT project, app FROM afterword_run_queue
          WHERE owner IS NULL AND (project, app) > (w.project, w.app)
          ORDER BY project, app, cancelled, id LIMIT 1
        ) next
      )
      SELECT stray.* FROM waiting w CROSS JOIN LATERAL (
        SELECT * FROM afterword_run_queue
        WHERE owner IS NULL AND key_id = ANY (keys) AND id < before AND ${OF_APP('w.project', 'w.app')}
        ORDER BY project, app, cancelled, id LIMIT wanted FOR UPDATE SKIP LOCKED
      ) stray
      WHERE NOT EXISTS (
        SELECT FROM unnest(projects, apps) AS known (project, app)
        WHERE known.project = w.project AND known.app = w.app
      )
      LIMIT wanted
    $$;

  -- Whether there are runs to claim, or runs of this node to cancel.
  CREATE FUNCTION afterword_runs_waiting(keys text[], me integer) RETURNS boolean
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
      SELECT EXISTS (SELECT FROM afterword_run_queue WHERE owner IS NULL AND key_id = ANY (keys))
        OR EXISTS (SELECT FROM afterword_run_queue WHERE cancelled AND owner = me)
    $$;
  CREATE FUNCTION afterword_owned_runs(whose integer, wanted integer) RETURNS SETOF afterword_run_queue
    LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      SELECT * FROM afterword_run_queue WHERE owner >= whose AND owner <= whose
      ORDER BY owner, id LIMIT wanted FOR UPDATE SKIP LOCKED
    $$;

  INSERT INTO afterword_run_queue (id, project, app, key_id)
    SELECT gen_random_uuid(), filler, '', '' FROM ${FILLERS};
  DELETE FROM afterword_run_queue;

  CREATE TABLE afterword_runs (
    id         uuid PRIMARY KEY,
    project    text NOT NULL,
    app        text NOT NULL,
    method     text NOT NULL,
    path       text NOT NULL,
    query      text,
    target     text,                       -- of its webhook
    created_at double precision NOT NULL,
    key_id     text NOT NULL,
    headers    bytea NOT NULL,             -- sealed
    sealed     bytea,                      -- of its webhook
    body_size  bigint,                     -- the body is in parts
    body       bytea
  );
  CREATE INDEX afterword_runs_of_project ON afterword_runs (project, id);
  CREATE INDEX afterword_runs_of_app ON afterword_runs (project, app, id);
  ALTER TABLE afterword_runs ALTER COLUMN body SET STORAGE EXTERNAL;

  -- When the oldest run that is queued was made: past those that are under way, until the first that is not.
  CREATE FUNCTION afterword_oldest_queued_run() RETURNS double precision
    LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
      SELECT (SELECT created_at FROM afterword_runs WHERE id = q.id)
      FROM afterword_run_queue q WHERE begun_at IS NULL AND NOT cancelled ORDER BY id LIMIT 1
    $$;

  CREATE TABLE afterword_run_ends (
    id          uuid PRIMARY KEY,
    project     text NOT NULL,
    app         text NOT NULL,
    state       smallint NOT NULL,
    status      smallint NOT NULL,
    error       text,
    ended_at    double precision NOT NULL,
    starts      integer NOT NULL,
    started_at  double precision,
    owner       integer NOT NULL,          -- who ended it, and by which claim
    claim       integer NOT NULL,
    result_size bigint,                    -- the result is in parts
    result      bytea                      -- neither: the delivery has it
  );
  CREATE INDEX afterword_run_ends_at ON afterword_run_ends (ended_at);
  CREATE INDEX afterword_run_ends_of_project ON afterword_run_ends (project, state, id);
  ALTER TABLE afterword_run_ends ALTER COLUMN result SET STORAGE EXTERNAL;

  CREATE TABLE afterword_run_parts (
    id    uuid NOT NULL,
    side  smallint NOT NULL,               -- 0: request, 1: result
    part  integer NOT NULL,                -- from 0
    bytes bytea NOT NULL,
    PRIMARY KEY (id, side, part)
  );
  ALTER TABLE afterword_run_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;

  CREATE TABLE afterword_run_keys (
    project     text NOT NULL,
    key         text NOT NULL,
    id          uuid NOT NULL,             -- the run that it stands for
    fingerprint bytea NOT NULL,
    made_at     double precision NOT NULL,
    PRIMARY KEY (project, key)
  );
  CREATE INDEX afterword_run_keys_made_at ON afterword_run_keys (made_at);
`;
