/**
 * The schema, as numbered steps: step n brings a database from `user_version` n - 1 to n. A step that has
 * been released is never edited.
 *
 * `deliveries` is narrow and changes at every attempt; `contents` is wide and written once. Their common id
 * grows with time (see key.ts). An owner is the small number that `nodes` gives to a process's name. Times are
 * milliseconds since the epoch, REAL because a clock may have fractions.
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
];
