-- Work in the background: an import with its progress, a round of a worker with what it did. A
-- change of a job is a new row in place of the old one, so that followers see it by its number.
CREATE TABLE jobs (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  id         TEXT NOT NULL,
  kind       TEXT NOT NULL,
  what       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'replaced')),
  done       INTEGER NOT NULL,
  total      INTEGER NOT NULL,
  facts      TEXT NOT NULL,
  error      TEXT,
  owner      TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ended_at   INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_running ON jobs (project_no, kind) WHERE state = 'running';
CREATE INDEX jobs_by_project ON jobs (project_no, no);

-- The newest change of a memory, and the tokens that receipts saved, without reading all of them.
CREATE INDEX memory_events_by_project ON memory_events (project_no, no);
CREATE INDEX moment_items_used ON moment_items (project_no, saved_tokens, tokens)
  WHERE outcome = 'used';
