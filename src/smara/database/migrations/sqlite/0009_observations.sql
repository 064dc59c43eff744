CREATE TABLE observation_records (
  no                INTEGER PRIMARY KEY,
  project_no        INTEGER NOT NULL REFERENCES projects (no),
  id                TEXT NOT NULL,
  lookup_key        TEXT NOT NULL,
  scope             TEXT NOT NULL CHECK (scope IN ('thread', 'resource')),
  resource_id       TEXT NOT NULL,
  thread_no         INTEGER REFERENCES threads (no),
  version           INTEGER NOT NULL DEFAULT 0,
  generation        INTEGER NOT NULL DEFAULT 0,
  observed_tokens   INTEGER NOT NULL DEFAULT 0,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  last_observed_at  INTEGER,
  last_reflected_at INTEGER,
  UNIQUE (project_no, lookup_key)
) STRICT;
CREATE INDEX observation_records_by_resource ON observation_records (project_no, resource_id);

CREATE TABLE observation_cursors (
  record_no       INTEGER NOT NULL REFERENCES observation_records (no),
  thread_no       INTEGER NOT NULL REFERENCES threads (no),
  project_no      INTEGER NOT NULL REFERENCES projects (no),
  observed_seq    INTEGER NOT NULL DEFAULT 0,
  observed_tokens INTEGER NOT NULL DEFAULT 0,
  buffered_seq    INTEGER NOT NULL DEFAULT 0,
  buffered_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (record_no, thread_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE observation_batches (
  no                 INTEGER PRIMARY KEY,
  project_no         INTEGER NOT NULL REFERENCES projects (no),
  record_no          INTEGER NOT NULL REFERENCES observation_records (no),
  thread_no          INTEGER NOT NULL REFERENCES threads (no),
  id                 TEXT NOT NULL UNIQUE,
  state              TEXT NOT NULL CHECK (state IN ('buffered', 'active')),
  first_seq          INTEGER NOT NULL,
  last_seq           INTEGER NOT NULL,
  message_tokens     INTEGER NOT NULL,
  mode               TEXT NOT NULL,
  method             TEXT NOT NULL,
  taint              TEXT NOT NULL,
  current_task       TEXT,
  suggested_response TEXT,
  thread_title       TEXT,
  extracted          TEXT NOT NULL,
  created_at         INTEGER NOT NULL,
  UNIQUE (record_no, thread_no, first_seq)
) STRICT;
CREATE INDEX observation_batches_by_state ON observation_batches (record_no, state, thread_no, first_seq);

CREATE TABLE observations (
  no             INTEGER PRIMARY KEY,
  project_no     INTEGER NOT NULL REFERENCES projects (no),
  record_no      INTEGER NOT NULL REFERENCES observation_records (no),
  thread_no      INTEGER REFERENCES threads (no),
  id             TEXT NOT NULL UNIQUE,
  kind           TEXT NOT NULL CHECK (kind IN ('observation', 'reflection')),
  state          TEXT NOT NULL CHECK (state IN ('buffered', 'active', 'reflected')),
  generation     INTEGER NOT NULL,
  reflected_into INTEGER,
  batch_no       INTEGER REFERENCES observation_batches (no),
  mode           TEXT NOT NULL,
  priority       TEXT NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
  category       TEXT NOT NULL,
  text           TEXT NOT NULL,
  details        TEXT NOT NULL,
  files          TEXT NOT NULL,
  lines          TEXT NOT NULL,
  mode_specific  TEXT NOT NULL,
  taint          TEXT NOT NULL,
  said_at        INTEGER NOT NULL,
  refers_to      TEXT,
  tokens         INTEGER NOT NULL,
  first_seq      INTEGER NOT NULL,
  last_seq       INTEGER NOT NULL,
  method         TEXT NOT NULL,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX observations_by_record ON observations (record_no, state, kind, said_at, no);
CREATE INDEX observations_by_thread ON observations (thread_no, first_seq) WHERE thread_no IS NOT NULL;
CREATE INDEX observations_by_batch ON observations (batch_no) WHERE batch_no IS NOT NULL;

CREATE TABLE observation_failures (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  record_no   INTEGER NOT NULL REFERENCES observation_records (no),
  thread_no   INTEGER NOT NULL,
  operation   TEXT NOT NULL,
  first_seq   INTEGER NOT NULL,
  attempts    INTEGER NOT NULL,
  code        TEXT NOT NULL,
  message     TEXT NOT NULL,
  is_dead     INTEGER NOT NULL DEFAULT 0,
  failed_at   INTEGER NOT NULL,
  retry_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX observation_failures_by_job ON observation_failures (record_no, thread_no, operation, first_seq);
