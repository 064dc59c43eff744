-- A reflection that was made ahead, at most one for each record. Its notes are buffered observations;
-- this is what they stand for, and by what it is seen whether that is still as it was.
CREATE TABLE buffered_reflections (
  record_no     INTEGER PRIMARY KEY REFERENCES observation_records (no),
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  generation    INTEGER NOT NULL,
  sources       TEXT NOT NULL,
  source_tokens INTEGER NOT NULL,
  notes         INTEGER NOT NULL,
  tokens        INTEGER NOT NULL,
  digest        TEXT NOT NULL,
  created_at    INTEGER NOT NULL
) STRICT;
