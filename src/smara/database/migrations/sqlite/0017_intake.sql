CREATE TABLE intake_events (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  stem       TEXT NOT NULL,
  at_ms      INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  taken_at   INTEGER NOT NULL,
  PRIMARY KEY (project_no, stem, at_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX intake_events_by_age ON intake_events (project_no, taken_at);

CREATE TABLE intake_hosts (
  project_no   INTEGER NOT NULL REFERENCES projects (no),
  agent        TEXT NOT NULL,
  kind         TEXT NOT NULL,
  last_at      INTEGER NOT NULL,
  event_count  INTEGER NOT NULL,
  repeat_count INTEGER NOT NULL,
  PRIMARY KEY (project_no, agent, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE intake_jobs (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  kind       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  facts      TEXT NOT NULL,
  due_at     INTEGER NOT NULL,
  attempts   INTEGER NOT NULL DEFAULT 0,
  error      TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (project_no, kind, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX intake_jobs_by_due ON intake_jobs (project_no, due_at);
