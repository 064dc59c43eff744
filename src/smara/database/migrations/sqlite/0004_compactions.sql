CREATE TABLE compactions (
  no            INTEGER PRIMARY KEY,
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  thread_no     INTEGER NOT NULL REFERENCES threads (no),
  id            TEXT NOT NULL UNIQUE,
  level         INTEGER NOT NULL CHECK (level IN (1, 2)),
  start_seq     INTEGER NOT NULL,
  end_seq       INTEGER NOT NULL,
  message_count INTEGER NOT NULL,
  summary       TEXT NOT NULL,
  code          TEXT NOT NULL,
  method        TEXT NOT NULL,
  parent_no     INTEGER,
  created_at    INTEGER NOT NULL,
  undone_at     INTEGER
) STRICT;
CREATE INDEX compactions_by_thread ON compactions (thread_no, start_seq);
CREATE INDEX compactions_in_force ON compactions (thread_no, start_seq) WHERE parent_no IS NULL AND undone_at IS NULL;
