CREATE TABLE memories (
  no                   INTEGER PRIMARY KEY,
  project_no           INTEGER NOT NULL REFERENCES projects (no),
  id                   TEXT NOT NULL,
  short_id             TEXT NOT NULL,
  key                  TEXT NOT NULL,
  bare_key             TEXT NOT NULL,
  type                 TEXT NOT NULL,
  content              TEXT NOT NULL,
  fingerprint          TEXT NOT NULL,
  subject_key          TEXT,
  confidence           REAL NOT NULL,
  tags                 TEXT NOT NULL,
  files                TEXT NOT NULL,
  modules              TEXT NOT NULL,
  scope                TEXT NOT NULL,
  source               TEXT NOT NULL,
  visibility           TEXT NOT NULL CHECK (visibility IN ('personal', 'project', 'team', 'organization')),
  created_at           INTEGER NOT NULL,
  created_by           TEXT NOT NULL,
  updated_at           INTEGER NOT NULL,
  version              INTEGER NOT NULL DEFAULT 1,
  session_id           TEXT,
  session_ids          TEXT NOT NULL,
  commit_sha           TEXT,
  evidence             TEXT NOT NULL,
  work_unit            TEXT,
  methodology          TEXT,
  target_node_id       TEXT,
  impacted_node_ids    TEXT NOT NULL,
  half_life_days       REAL,
  citation             TEXT,
  chunk_type           TEXT,
  chunk_start_line     INTEGER,
  chunk_end_line       INTEGER,
  context_prefix       TEXT,
  data                 TEXT NOT NULL,
  taint                TEXT NOT NULL,
  is_pinned            INTEGER NOT NULL DEFAULT 0,
  is_verified          INTEGER NOT NULL DEFAULT 0,
  verified_at          INTEGER,
  verified_by          TEXT,
  needs_review         INTEGER NOT NULL DEFAULT 0,
  review_reasons       TEXT NOT NULL,
  verified_uses        INTEGER NOT NULL DEFAULT 0,
  uses_since_wrong     INTEGER NOT NULL DEFAULT 0,
  corrections          INTEGER NOT NULL DEFAULT 0,
  last_verified_use_at INTEGER,
  stale_at             INTEGER,
  stale_because        TEXT,
  deprecated_at        INTEGER,
  deprecated_because   TEXT CHECK (deprecated_because IN ('forgotten', 'pruned', 'superseded', 'merged', 'rejected')),
  replaced_by_no       INTEGER REFERENCES memories (no),
  UNIQUE (project_no, id),
  UNIQUE (project_no, key)
) STRICT;
CREATE INDEX memories_by_bare_key ON memories (project_no, bare_key);
CREATE INDEX memories_by_fingerprint ON memories (project_no, fingerprint);
CREATE INDEX memories_by_subject ON memories (project_no, subject_key) WHERE subject_key IS NOT NULL;
CREATE INDEX memories_by_type ON memories (project_no, type, no) WHERE deprecated_at IS NULL;
CREATE INDEX memories_active ON memories (project_no, no) WHERE deprecated_at IS NULL;
CREATE INDEX memories_to_review ON memories (project_no, no) WHERE needs_review = 1 AND deprecated_at IS NULL;
CREATE INDEX memories_deprecated ON memories (project_no, deprecated_at, no) WHERE deprecated_at IS NOT NULL;
CREATE INDEX memories_by_session ON memories (project_no, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_replaced ON memories (replaced_by_no) WHERE replaced_by_no IS NOT NULL;

-- What memories are looked up by: files, modules, tags, sessions, messages, observations.
CREATE TABLE memory_keys (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  kind       TEXT NOT NULL,
  value      TEXT NOT NULL,
  memory_no  INTEGER NOT NULL REFERENCES memories (no),
  PRIMARY KEY (project_no, kind, value, memory_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_keys_by_memory ON memory_keys (memory_no);

CREATE TABLE memory_relations (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  memory_no  INTEGER NOT NULL REFERENCES memories (no),
  target_no  INTEGER REFERENCES memories (no),
  path       TEXT,
  type       TEXT NOT NULL CHECK (type IN ('required_with', 'conflicts_with', 'validates', 'derived_from')),
  confidence REAL NOT NULL,
  is_auto    INTEGER NOT NULL,
  CHECK ((target_no IS NULL) <> (path IS NULL))
) STRICT;
CREATE INDEX memory_relations_by_memory ON memory_relations (memory_no, no);
CREATE INDEX memory_relations_by_target ON memory_relations (target_no, type) WHERE target_no IS NOT NULL;

CREATE TABLE memory_events (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  memory_no  INTEGER NOT NULL REFERENCES memories (no),
  id         TEXT NOT NULL,
  operation  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  acted_as   TEXT NOT NULL CHECK (acted_as IN ('person', 'agent', 'system')),
  session_id TEXT,
  at         INTEGER NOT NULL,
  before     TEXT NOT NULL,
  after      TEXT NOT NULL,
  undone_by  INTEGER
) STRICT;
CREATE INDEX memory_events_by_memory ON memory_events (memory_no, no);
CREATE INDEX memory_events_by_operation ON memory_events (project_no, operation);
CREATE INDEX memory_events_by_kind ON memory_events (project_no, kind, no);

-- A memory that was removed for good leaves its fingerprint, so that it is not learned again.
CREATE TABLE memory_tombstones (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  id          TEXT NOT NULL,
  short_id    TEXT NOT NULL,
  type        TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  because     TEXT NOT NULL,
  deleted_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_tombstones_by_fingerprint ON memory_tombstones (project_no, fingerprint);

CREATE TABLE memory_sessions (
  project_no   INTEGER NOT NULL REFERENCES projects (no),
  session_id   TEXT NOT NULL,
  level        INTEGER NOT NULL,
  first_at     INTEGER NOT NULL,
  ended_at     INTEGER,
  is_declined  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_no, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sessions_by_time ON memory_sessions (project_no, first_at);

CREATE TABLE memory_trust_events (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  at         INTEGER NOT NULL,
  actor      TEXT NOT NULL,
  acted_as   TEXT NOT NULL,
  from_level INTEGER NOT NULL,
  to_level   INTEGER NOT NULL,
  because    TEXT NOT NULL
) STRICT;
CREATE INDEX memory_trust_events_by_project ON memory_trust_events (project_no, no);

-- One row per project, held by whoever changes its memories.
CREATE TABLE memory_state (
  project_no  INTEGER PRIMARY KEY REFERENCES projects (no),
  total       INTEGER NOT NULL DEFAULT 0,
  active      INTEGER NOT NULL DEFAULT 0,
  to_review   INTEGER NOT NULL DEFAULT 0,
  trust_level INTEGER NOT NULL DEFAULT 1 CHECK (trust_level BETWEEN 1 AND 4),
  level_since INTEGER NOT NULL DEFAULT 0,
  pruned_at   INTEGER NOT NULL DEFAULT 0
) STRICT;
