CREATE TABLE tasks (
  no               INTEGER PRIMARY KEY,
  project_no       INTEGER NOT NULL REFERENCES projects (no),
  id               TEXT NOT NULL,
  short_id         TEXT NOT NULL,
  key              TEXT NOT NULL,
  bare_key         TEXT NOT NULL,
  title            TEXT NOT NULL,
  description      TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status IN ('open', 'in_progress', 'closed')),
  priority         INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
  type             TEXT NOT NULL,
  assignee         TEXT,
  session_id       TEXT,
  claimed_at       INTEGER,
  created_at       INTEGER NOT NULL,
  created_by       TEXT,
  updated_at       INTEGER NOT NULL,
  closed_at        INTEGER,
  close_reason     TEXT,
  summary          TEXT,
  compaction_level INTEGER NOT NULL DEFAULT 0,
  compacted_at     INTEGER,
  original_content TEXT,
  metadata         TEXT NOT NULL,
  UNIQUE (project_no, id),
  UNIQUE (project_no, key)
) STRICT;
CREATE INDEX tasks_by_bare_key ON tasks (project_no, bare_key);
CREATE INDEX tasks_by_status ON tasks (project_no, status, priority, created_at, no);
CREATE INDEX tasks_unfinished ON tasks (no) WHERE status <> 'closed';
CREATE INDEX tasks_held ON tasks (project_no, session_id) WHERE status = 'in_progress';
CREATE INDEX tasks_closed ON tasks (project_no, closed_at, no) WHERE status = 'closed';
CREATE INDEX tasks_to_compact ON tasks (project_no, compaction_level, closed_at) WHERE status = 'closed';

CREATE TABLE task_dependencies (
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  task_no       INTEGER NOT NULL REFERENCES tasks (no),
  depends_on_no INTEGER NOT NULL REFERENCES tasks (no),
  type          TEXT NOT NULL CHECK (type IN ('blocks', 'parent-child', 'related')),
  created_at    INTEGER NOT NULL,
  created_by    TEXT,
  PRIMARY KEY (task_no, type, depends_on_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_dependents ON task_dependencies (depends_on_no, type, task_no);

CREATE TABLE task_labels (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  task_no    INTEGER NOT NULL REFERENCES tasks (no),
  label      TEXT NOT NULL,
  PRIMARY KEY (task_no, label)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_labels_by_label ON task_labels (project_no, label, task_no);

CREATE TABLE task_events (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  task_no    INTEGER NOT NULL REFERENCES tasks (no),
  id         TEXT NOT NULL,
  kind       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  session_id TEXT,
  at         INTEGER NOT NULL,
  before     TEXT NOT NULL,
  after      TEXT NOT NULL,
  undone_by  INTEGER
) STRICT;
CREATE INDEX task_events_by_task ON task_events (task_no, no);
CREATE INDEX task_events_by_time ON task_events (project_no, no);

CREATE TABLE task_messages (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  task_no    INTEGER NOT NULL REFERENCES tasks (no),
  message_no INTEGER NOT NULL REFERENCES messages (no),
  relation   TEXT NOT NULL CHECK (relation IN ('output', 'reference', 'created_from')),
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  PRIMARY KEY (task_no, message_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_messages_by_message ON task_messages (message_no, task_no);

CREATE TABLE task_totals (
  project_no  INTEGER PRIMARY KEY REFERENCES projects (no),
  open        INTEGER NOT NULL DEFAULT 0,
  in_progress INTEGER NOT NULL DEFAULT 0,
  closed      INTEGER NOT NULL DEFAULT 0,
  ready       INTEGER NOT NULL DEFAULT 0,
  blocked     INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  id         TEXT NOT NULL,
  seen_at    INTEGER NOT NULL,
  ended_at   INTEGER,
  PRIMARY KEY (project_no, id)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE record_index USING fts5 (
  head, body, scope,
  tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'"
);
INSERT INTO index_state (name, rows, analysis) VALUES ('record_index', 0, 1);
