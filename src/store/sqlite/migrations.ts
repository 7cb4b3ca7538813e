/**
 * The schema, as numbered steps: step n brings a database from `user_version` n - 1 to n. A step that has
 * been released is never edited.
 *
 * `deliveries` is narrow and changes at every attempt; `contents` is wide and written once. Their common id
 * grows with time (see key.ts). An owner is the small number that `nodes` gives to a process's name. Times are
 * milliseconds since the epoch, REAL because a clock may have fractions.
 *
 * What of a delivery changes has indexes only over rows that were not simply delivered: those are few, and a
 * delivery that meets no trouble never touches them. They have in them, behind the id that they are in the order
 * of, all that a list may ask of a delivery. What never changes is put in order later (see catalogue.ts).
 *
 * A run that has not ended is a row of `live_runs`, narrow and changing, and one of `run_requests`, wide and
 * written once. Its end deletes both and writes one of `ended_runs`. The three have the same id.
 */

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE nodes (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  ) STRICT;

  -- Every key that ever sealed a row: the start asks here before it looks through the rows.
  CREATE TABLE seal_keys (
    key_id TEXT NOT NULL PRIMARY KEY
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY,
    project    TEXT NOT NULL,
    state      INTEGER NOT NULL,
    reason     INTEGER,
    owner      INTEGER,
    claim      INTEGER,            -- the owner's claim that took it
    due_at     REAL NOT NULL,
    round      INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,   -- of this round
    in_flight  REAL,               -- when the attempt under way began
    cause      INTEGER NOT NULL,   -- the attempts' trigger
    settled_at REAL
  ) STRICT;

  -- One index for claiming (no owner), recovering (another owner) and counting; attempts leave it alone.
  CREATE INDEX deliveries_pending ON deliveries (owner) WHERE state = 0;
  CREATE INDEX deliveries_project ON deliveries (project); -- and, as in every index, the id
  CREATE INDEX deliveries_settled ON deliveries (settled_at) WHERE settled_at IS NOT NULL;

  CREATE TABLE contents (
    id         INTEGER PRIMARY KEY,
    run_id     BLOB NOT NULL,
    app        TEXT NOT NULL,
    target     TEXT NOT NULL,
    status     INTEGER NOT NULL,
    created_at REAL NOT NULL,
    key_id     TEXT,
    sealed     BLOB,
    file_size  INTEGER,            -- the body is the spool file named by the run id
    body       BLOB                -- last, so that the rest is read without it
  ) STRICT;

  CREATE TABLE attempts (
    delivery      INTEGER NOT NULL,
    ordinal       INTEGER NOT NULL,
    round         INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    cause         INTEGER NOT NULL,
    started_at    REAL NOT NULL,
    queue_ms      REAL NOT NULL,
    dns_ms        REAL,
    connect_ms    REAL,
    tls_ms        REAL,
    first_byte_ms REAL,
    total_ms      REAL NOT NULL,
    status        INTEGER,
    error         TEXT,
    excerpt       BLOB,
    PRIMARY KEY (delivery, ordinal)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- At most one row: where \`afterword migrate\` moves this store to. Who finds it must not send anything.
  CREATE TABLE moved (
    import TEXT NOT NULL,          -- the name that the other store knows the move by
    place  TEXT NOT NULL,
    at     REAL NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE live_runs (
    id              INTEGER PRIMARY KEY,
    project         TEXT NOT NULL,
    app             TEXT NOT NULL,
    owner           INTEGER,
    claim           INTEGER,          -- the owner's claim that took it
    starts          INTEGER NOT NULL,
    started_at      REAL,             -- when it was last begun
    begun           INTEGER NOT NULL, -- by its present owner
    cancelled       INTEGER NOT NULL, -- it is to be
    withdrawn_by    INTEGER,          -- whose withdrawal gave it up last, and of which claim: by these a
    withdrawn_claim INTEGER           -- withdrawal knows itself whose answer was lost
  ) STRICT;

  -- Never touched between the first and the last of a run. Claims pass over the few that have an owner.
  CREATE INDEX live_runs_app ON live_runs (project, app);
  CREATE INDEX live_runs_project ON live_runs (project);
  CREATE INDEX live_runs_owned ON live_runs (project, app, owner) WHERE owner IS NOT NULL;
  CREATE INDEX live_runs_cancelled ON live_runs (project, app) WHERE cancelled = 1;

  CREATE TABLE run_requests (
    id         INTEGER PRIMARY KEY,
    run_id     BLOB NOT NULL,
    created_at REAL NOT NULL,
    target     TEXT,               -- of its webhook
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    query      TEXT,
    key_id     TEXT NOT NULL,
    sealed     BLOB,               -- what is confidential of the webhook
    headers    BLOB NOT NULL,      -- sealed as well
    file_size  INTEGER,            -- the body is a spool file
    body       BLOB
  ) STRICT;

  CREATE TABLE ended_runs (
    id         INTEGER PRIMARY KEY,
    run_id     BLOB NOT NULL,
    project    TEXT NOT NULL,
    app        TEXT NOT NULL,
    created_at REAL NOT NULL,
    target     TEXT,
    starts     INTEGER NOT NULL,
    started_at REAL,
    state      INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    error      TEXT,
    ended_at   REAL NOT NULL,
    owner      INTEGER NOT NULL,   -- who ended it, and by which claim: by these an end knows itself whose
    claim      INTEGER NOT NULL,   -- answer was lost
    had_file   INTEGER NOT NULL,   -- its request was in a spool file
    delivery   INTEGER,            -- which has the result
    file_size  INTEGER,            -- the result is the spool file named by the run id
    body       BLOB
  ) STRICT;

  CREATE INDEX ended_runs_project ON ended_runs (project);
  CREATE INDEX ended_runs_state ON ended_runs (project, state);
  CREATE INDEX ended_runs_app ON ended_runs (project, app, state);
  CREATE INDEX ended_runs_ended ON ended_runs (ended_at);

  -- A key outlives its run where that is deleted within a day.
  CREATE TABLE run_keys (
    project     TEXT NOT NULL,
    key         TEXT NOT NULL,
    run_id      BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    made_at     REAL NOT NULL,
    PRIMARY KEY (project, key)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX run_keys_made ON run_keys (made_at);
  `,
  `
  ALTER TABLE deliveries ADD COLUMN app TEXT NOT NULL DEFAULT '';
  ALTER TABLE deliveries ADD COLUMN host TEXT NOT NULL DEFAULT ''; -- of its own target
  ALTER TABLE deliveries ADD COLUMN last_status INTEGER;           -- of the last attempt that has ended
  ALTER TABLE attempts ADD COLUMN target TEXT;                     -- where it is not the delivery's own

  UPDATE deliveries SET app = c.app, host = host_of(c.target),
    last_status = (SELECT status FROM attempts WHERE delivery = deliveries.id ORDER BY ordinal DESC LIMIT 1)
  FROM contents c WHERE c.id = deliveries.id;

  -- Kept up by catalogue.ts, not at every insert.
  CREATE TABLE delivery_apps (
    of_project TEXT NOT NULL,
    name       TEXT NOT NULL,
    id         INTEGER NOT NULL,
    PRIMARY KEY (of_project, name, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE delivery_hosts (
    name TEXT NOT NULL,
    id   INTEGER NOT NULL,
    PRIMARY KEY (name, id)
  ) STRICT, WITHOUT ROWID;

  -- One row: the last delivery that the two above have in order.
  CREATE TABLE catalogue (
    mark INTEGER NOT NULL
  ) STRICT;

  INSERT INTO delivery_apps SELECT project, app, id FROM deliveries ORDER BY project, app, id;
  INSERT INTO delivery_hosts SELECT host, id FROM deliveries ORDER BY host, id;
  INSERT INTO catalogue SELECT coalesce(max(id), 0) FROM deliveries;

  CREATE INDEX deliveries_trouble ON deliveries (id, project, app, host, state, reason, last_status)
    WHERE state > 1 OR state = 1 AND last_status NOT BETWEEN 200 AND 299;
  CREATE INDEX deliveries_trouble_project ON deliveries (project, id, app, host, state, reason, last_status)
    WHERE state > 1 OR state = 1 AND last_status NOT BETWEEN 200 AND 299;

  -- Beside contents, whose body must stay last: of the deliveries whose call had a trace.
  CREATE TABLE traces (
    id          INTEGER PRIMARY KEY,
    traceparent TEXT NOT NULL
  ) STRICT;

  -- Where the present or last round of a delivery goes, if elsewhere.
  CREATE TABLE overrides (
    id     INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    key_id TEXT,
    sealed BLOB
  ) STRICT;

  CREATE TABLE jobs (
    id          TEXT NOT NULL PRIMARY KEY,
    project     TEXT,
    filter      TEXT NOT NULL,     -- JSON
    created_at  REAL NOT NULL,
    total       INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    redelivered INTEGER NOT NULL,
    before      TEXT,              -- the run that it goes on from
    ended_at    REAL,
    owner       INTEGER,
    claim       INTEGER            -- the owner's claim that took it
  ) STRICT;

  CREATE INDEX jobs_running ON jobs (created_at) WHERE ended_at IS NULL;
  CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;

  CREATE TABLE ledger_keys (
    asker       TEXT NOT NULL,     -- a project; empty: whoever may act for all
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    made_at     REAL NOT NULL,
    round       INTEGER,           -- what it made: a round of a delivery,
    job         TEXT,              -- or a job
    PRIMARY KEY (asker, key)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX ledger_keys_made ON ledger_keys (made_at);

  -- What was answered last to each node, for where that was lost.
  CREATE TABLE answers (
    owner  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answer TEXT NOT NULL,          -- JSON
    PRIMARY KEY (owner, number)
  ) STRICT, WITHOUT ROWID;

  -- For each project, and with an empty one for all together.
  CREATE TABLE minute_counts (
    project        TEXT NOT NULL,
    minute         INTEGER NOT NULL,
    calls          INTEGER NOT NULL,
    call_errors    INTEGER NOT NULL,
    made           INTEGER NOT NULL,
    delivered      INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    first_attempts BLOB NOT NULL,
    PRIMARY KEY (project, minute)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX minute_counts_minute ON minute_counts (minute);

  CREATE TABLE host_counts (
    project  TEXT NOT NULL,
    hour     INTEGER NOT NULL,
    host     TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (project, hour, host)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX host_counts_hour ON host_counts (hour);
  `,
  `
  ALTER TABLE attempts ADD COLUMN headers TEXT; -- of the receiver's answer
  `,
];
