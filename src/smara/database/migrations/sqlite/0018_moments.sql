-- What a project has chosen about being told things unasked: whether its sessions take part in an experiment.
CREATE TABLE moment_state (
  project_no INTEGER PRIMARY KEY REFERENCES projects (no),
  has_arms   INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL
) STRICT;

-- Sessions that something was found for. `epoch` counts how often a session's context was emptied: what was said before
-- is said again. `statements` counts what was said besides the start.
CREATE TABLE moment_sessions (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  session_id TEXT NOT NULL,
  arm        TEXT CHECK (arm IN ('control', 'passive', 'full')),
  epoch      INTEGER NOT NULL DEFAULT 0,
  statements INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (project_no, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE moment_receipts (
  no           INTEGER PRIMARY KEY,
  project_no   INTEGER NOT NULL REFERENCES projects (no),
  id           TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  epoch        INTEGER NOT NULL,
  point        TEXT NOT NULL,
  source       TEXT NOT NULL,
  agent        TEXT NOT NULL,
  arm          TEXT,
  is_said      INTEGER NOT NULL,
  text         TEXT NOT NULL,
  tokens       INTEGER NOT NULL,
  elapsed_ms   INTEGER NOT NULL,
  made_at      INTEGER NOT NULL,
  delivered_at INTEGER,
  used_at      INTEGER,
  used_how     TEXT NOT NULL DEFAULT '',
  UNIQUE (project_no, id)
) STRICT;
CREATE INDEX moment_receipts_by_session ON moment_receipts (project_no, session_id, no);
CREATE INDEX moment_receipts_by_age ON moment_receipts (project_no, made_at);

-- `signs` is what would show that an item is used; `ran_at` when the command that it warns of ran first, warned of or not.
CREATE TABLE moment_items (
  receipt_no   INTEGER NOT NULL REFERENCES moment_receipts (no),
  position     INTEGER NOT NULL,
  project_no   INTEGER NOT NULL REFERENCES projects (no),
  kind         TEXT NOT NULL,
  item_id      TEXT NOT NULL,
  key          TEXT NOT NULL,
  why          TEXT NOT NULL,
  text         TEXT NOT NULL,
  tokens       INTEGER NOT NULL,
  saved_tokens INTEGER NOT NULL,
  saved_how    TEXT NOT NULL,
  signs        TEXT NOT NULL,
  ran_at       INTEGER,
  outcome      TEXT CHECK (outcome IN ('used', 'repeated')),
  how          TEXT NOT NULL DEFAULT '',
  settled_at   INTEGER,
  PRIMARY KEY (receipt_no, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX moment_items_by_item ON moment_items (project_no, kind, item_id);

-- A session begins with what a person pinned or confirmed, however much else is remembered.
CREATE INDEX memories_pinned ON memories (project_no, no) WHERE is_pinned = 1 AND deprecated_at IS NULL;
CREATE INDEX memories_verified ON memories (project_no, no) WHERE is_verified = 1 AND deprecated_at IS NULL;
