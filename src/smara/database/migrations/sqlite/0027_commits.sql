CREATE TABLE commits (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  sha        TEXT NOT NULL,
  at         INTEGER NOT NULL,
  author     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  body       TEXT NOT NULL,
  reason     TEXT NOT NULL,
  files      TEXT NOT NULL,
  functions  TEXT NOT NULL,
  renames    TEXT NOT NULL,
  is_named   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (project_no, sha)
) STRICT;
CREATE INDEX commits_by_time ON commits (project_no, at);
CREATE INDEX commits_unnamed ON commits (project_no, at) WHERE is_named = 0;

CREATE TABLE commit_files (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  path       TEXT NOT NULL,
  commit_no  INTEGER NOT NULL REFERENCES commits (no) ON DELETE CASCADE,
  PRIMARY KEY (project_no, path, commit_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX commit_files_by_commit ON commit_files (commit_no);

CREATE TABLE commit_state (
  project_no INTEGER PRIMARY KEY REFERENCES projects (no),
  head       TEXT,
  total      INTEGER NOT NULL DEFAULT 0,
  is_all     INTEGER NOT NULL DEFAULT 1
) STRICT;
