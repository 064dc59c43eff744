-- The code that a memory or an observation names, as it was when that was said or verified. What was verified again
-- keeps its older anchors, with the time at which they were replaced: they are its history.
CREATE TABLE code_anchors (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  owner       TEXT NOT NULL CHECK (owner IN ('memory', 'observation')),
  owner_no    INTEGER NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('file', 'symbol', 'lines')),
  path        TEXT NOT NULL,
  symbol      TEXT NOT NULL,
  first_line  INTEGER,
  last_line   INTEGER,
  hash        BLOB NOT NULL,
  sketch      BLOB NOT NULL,
  twins       BLOB NOT NULL,
  namesakes   BLOB NOT NULL,
  commit_sha  TEXT,
  repository  TEXT NOT NULL,
  named_by    TEXT NOT NULL,
  anchored_at INTEGER NOT NULL,
  replaced_at INTEGER
) STRICT;
CREATE INDEX code_anchors_by_owner ON code_anchors (project_no, owner, owner_no) WHERE replaced_at IS NULL;
CREATE INDEX code_anchors_by_path ON code_anchors (project_no, path) WHERE replaced_at IS NULL;

-- What was looked at for the code it names: without an index of the code, only files were found.
CREATE TABLE code_anchored (
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  owner       TEXT NOT NULL,
  owner_no    INTEGER NOT NULL,
  has_index   INTEGER NOT NULL,
  anchored_at INTEGER NOT NULL,
  PRIMARY KEY (project_no, owner, owner_no)
) STRICT, WITHOUT ROWID;
