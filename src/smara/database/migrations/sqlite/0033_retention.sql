-- When each kind of record was last brought down to its rule, and how many rows went since the beginning.
CREATE TABLE retention_state (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  kind       TEXT NOT NULL,
  kept_at    INTEGER,
  removed_at INTEGER,
  removed    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_no, kind)
) STRICT, WITHOUT ROWID;
