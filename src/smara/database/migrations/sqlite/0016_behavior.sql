-- Sessions of agents as they are watched. `version` changes with every write: who decides on what was read, and finds
-- another version when it writes, begins again.
CREATE TABLE behavior_sessions (
  no             INTEGER PRIMARY KEY,
  project_no     INTEGER NOT NULL REFERENCES projects (no),
  session_id     TEXT NOT NULL,
  agent          TEXT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('open', 'ended', 'final')),
  version        INTEGER NOT NULL DEFAULT 0,
  events         INTEGER NOT NULL DEFAULT 0,
  started_at     INTEGER NOT NULL,
  last_event_at  INTEGER NOT NULL,
  finalized_at   INTEGER,
  stated_type    TEXT,
  type           TEXT,
  outcome        TEXT,
  why            TEXT NOT NULL DEFAULT '',
  methodology    TEXT NOT NULL DEFAULT 'native',
  work_unit      TEXT,
  subtasks       INTEGER NOT NULL DEFAULT 0,
  steps          INTEGER NOT NULL DEFAULT 0,
  promoted       INTEGER NOT NULL DEFAULT 0,
  model_calls    INTEGER NOT NULL DEFAULT 0,
  UNIQUE (project_no, session_id)
) STRICT;
CREATE INDEX behavior_sessions_by_state ON behavior_sessions (project_no, state, last_event_at);

-- What is held of a session until it is decided on: one scratchpad for the agent and one for each of its helpers.
CREATE TABLE behavior_pads (
  session_no INTEGER NOT NULL REFERENCES behavior_sessions (no),
  part       TEXT NOT NULL,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  pad        BLOB NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (session_no, part)
) STRICT, WITHOUT ROWID;

-- The events that were taken in, by the hash of their keys: each counts once, whoever tells it.
CREATE TABLE behavior_seen (
  session_no INTEGER NOT NULL REFERENCES behavior_sessions (no),
  key        BLOB NOT NULL,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  PRIMARY KEY (session_no, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE behavior_signals (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  kind        TEXT NOT NULL,
  key         TEXT NOT NULL,
  subject     TEXT NOT NULL,
  first_at    INTEGER NOT NULL,
  last_at     INTEGER NOT NULL,
  promoted_at INTEGER,
  memory_id   TEXT,
  UNIQUE (project_no, kind, key)
) STRICT;

-- Where a signal was found, and what came of it there.
CREATE TABLE behavior_findings (
  signal_no  INTEGER NOT NULL REFERENCES behavior_signals (no),
  session_no INTEGER NOT NULL REFERENCES behavior_sessions (no),
  project_no INTEGER NOT NULL REFERENCES projects (no),
  value      REAL NOT NULL,
  step       INTEGER NOT NULL,
  counts_as  INTEGER NOT NULL,
  is_valid   INTEGER NOT NULL,
  taint      TEXT NOT NULL,
  data       TEXT NOT NULL,
  verdict    TEXT NOT NULL,
  why        TEXT NOT NULL,
  memory_id  TEXT,
  found_at   INTEGER NOT NULL,
  PRIMARY KEY (signal_no, session_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX behavior_findings_by_session ON behavior_findings (session_no);

CREATE TABLE observer_file_nodes (
  project_no         INTEGER NOT NULL REFERENCES projects (no),
  file_path          TEXT NOT NULL,
  access_count       INTEGER NOT NULL DEFAULT 0,
  edit_count         INTEGER NOT NULL DEFAULT 0,
  session_count      INTEGER NOT NULL DEFAULT 0,
  edit_session_count INTEGER NOT NULL DEFAULT 0,
  last_accessed_at   INTEGER NOT NULL,
  PRIMARY KEY (project_no, file_path)
) STRICT, WITHOUT ROWID;

-- Files that were touched close together. `directional` is the difference between how often the first and the second
-- came first: above 0 file_a leads, below 0 file_b.
CREATE TABLE observer_co_access_edges (
  project_no          INTEGER NOT NULL REFERENCES projects (no),
  file_a              TEXT NOT NULL,
  file_b              TEXT NOT NULL,
  weight              REAL NOT NULL DEFAULT 0.0,
  raw_count           INTEGER NOT NULL DEFAULT 0,
  session_count       INTEGER NOT NULL DEFAULT 0,
  edit_session_count  INTEGER NOT NULL DEFAULT 0,
  avg_time_delta_ms   REAL,
  directional         INTEGER NOT NULL DEFAULT 0,
  task_type_breakdown TEXT NOT NULL DEFAULT '{}',
  last_observed_at    INTEGER NOT NULL,
  promoted_at         INTEGER,
  PRIMARY KEY (project_no, file_a, file_b)
) STRICT, WITHOUT ROWID;
CREATE INDEX observer_co_access_by_weight ON observer_co_access_edges (project_no, weight DESC);

CREATE TABLE observer_error_patterns (
  project_no        INTEGER NOT NULL REFERENCES projects (no),
  error_fingerprint TEXT NOT NULL,
  id                TEXT NOT NULL UNIQUE,
  tool_name         TEXT NOT NULL,
  command           TEXT NOT NULL,
  error_message     TEXT NOT NULL,
  occurrence_count  INTEGER NOT NULL DEFAULT 1,
  session_count     INTEGER NOT NULL DEFAULT 1,
  first_seen_at     INTEGER NOT NULL,
  last_seen_at      INTEGER NOT NULL,
  resolved_how      TEXT,
  resolved_count    INTEGER NOT NULL DEFAULT 0,
  module            TEXT,
  sessions          TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (project_no, error_fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX observer_error_patterns_by_command ON observer_error_patterns (project_no, command);

CREATE TABLE observer_module_session_counts (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  module     TEXT NOT NULL,
  count      INTEGER NOT NULL DEFAULT 0,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (project_no, module)
) STRICT, WITHOUT ROWID;

-- In how many sessions on a module a file was read.
CREATE TABLE observer_module_files (
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  module        TEXT NOT NULL,
  file_path     TEXT NOT NULL,
  session_count INTEGER NOT NULL DEFAULT 0,
  last_at       INTEGER NOT NULL,
  PRIMARY KEY (project_no, module, file_path)
) STRICT, WITHOUT ROWID;

-- Steps taken against steps planned, per module and method.
CREATE TABLE observer_calibrations (
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  module        TEXT NOT NULL,
  methodology   TEXT NOT NULL,
  sample_count  INTEGER NOT NULL DEFAULT 0,
  planned_steps INTEGER NOT NULL DEFAULT 0,
  actual_steps  INTEGER NOT NULL DEFAULT 0,
  last_at       INTEGER NOT NULL,
  PRIMARY KEY (project_no, module, methodology)
) STRICT, WITHOUT ROWID;

CREATE TABLE observer_synthesis_log (
  project_no         INTEGER NOT NULL REFERENCES projects (no),
  module             TEXT NOT NULL,
  trigger_count      INTEGER NOT NULL,
  mode               TEXT NOT NULL CHECK (mode IN ('threshold', 'weekly')),
  synthesized_at     INTEGER NOT NULL,
  memories_generated INTEGER NOT NULL DEFAULT 0,
  method             TEXT NOT NULL,
  detail             TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (project_no, module, trigger_count)
) STRICT, WITHOUT ROWID;

CREATE TABLE behavior_jobs (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  name       TEXT NOT NULL,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (project_no, name)
) STRICT, WITHOUT ROWID;
