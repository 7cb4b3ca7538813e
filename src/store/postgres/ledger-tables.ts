/**
 * The tables for what people do to deliveries by hand, a part of the first step of migrations.ts. None of them
 * is on the way of a delivery, and all of them are small.
 */
import { STATES } from '../codes.ts';

/** Of rows of afterword_settled: what the partial indexes on it have. */
export const UNDELIVERED = `state <> ${STATES.indexOf('delivered')}`;

export const LEDGER_TABLES = `
  -- Many deliveries that are to have a new round.
  CREATE TABLE afterword_jobs (
    id          text PRIMARY KEY,
    project     text,                      -- who asked for it; null: all projects
    filter      jsonb NOT NULL,
    created_at  double precision NOT NULL,
    total       integer NOT NULL,
    seen        integer NOT NULL DEFAULT 0,
    redelivered integer NOT NULL DEFAULT 0,
    before      uuid,                      -- it goes on with runs older than this one
    ended_at    double precision,
    owner       integer,
    claim       integer NOT NULL DEFAULT 0 -- the owner's claim that took it
  );
  CREATE INDEX afterword_jobs_running ON afterword_jobs (created_at) WHERE ended_at IS NULL;
  CREATE INDEX afterword_jobs_ended ON afterword_jobs (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX afterword_jobs_owned ON afterword_jobs (owner) WHERE owner IS NOT NULL;

  -- The keys of whoever asked for a redelivery or a job.
  CREATE TABLE afterword_action_keys (
    kind        smallint NOT NULL,
    project     text NOT NULL,             -- empty: of no one project
    key         text NOT NULL,
    subject     text NOT NULL,             -- the run or the job that it came with
    round       smallint,                  -- that it made
    fingerprint bytea NOT NULL,
    made_at     double precision NOT NULL,
    PRIMARY KEY (kind, project, key)
  );
  CREATE INDEX afterword_action_keys_made_at ON afterword_action_keys (made_at);

  -- Nodes on which somebody follows the deliveries of all nodes.
  CREATE TABLE afterword_followers (
    node  text PRIMARY KEY,
    until timestamptz NOT NULL
  );
`;
