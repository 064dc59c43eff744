-- A reflection that was made ahead, at most one for each record. Its notes are buffered observations;
-- this is what they stand for, and by what it is seen whether that is still as it was.
CREATE TABLE buffered_reflections (
  record_no     BIGINT PRIMARY KEY REFERENCES observation_records (no),
  project_no    BIGINT NOT NULL REFERENCES projects (no),
  generation    BIGINT NOT NULL,
  sources       TEXT NOT NULL,
  source_tokens BIGINT NOT NULL,
  notes         BIGINT NOT NULL,
  tokens        BIGINT NOT NULL,
  digest        TEXT NOT NULL,
  created_at    BIGINT NOT NULL
);
