CREATE TABLE intake_events (
  project_no BIGINT NOT NULL REFERENCES projects (no),
  stem       TEXT NOT NULL,
  at_ms      BIGINT NOT NULL,
  session_id TEXT NOT NULL,
  taken_at   BIGINT NOT NULL,
  PRIMARY KEY (project_no, stem, at_ms)
);
CREATE INDEX intake_events_by_age ON intake_events (project_no, taken_at);

CREATE TABLE intake_hosts (
  project_no   BIGINT NOT NULL REFERENCES projects (no),
  agent        TEXT NOT NULL,
  kind         TEXT NOT NULL,
  last_at      BIGINT NOT NULL,
  event_count  BIGINT NOT NULL,
  repeat_count BIGINT NOT NULL,
  PRIMARY KEY (project_no, agent, kind)
);

CREATE TABLE intake_jobs (
  project_no BIGINT NOT NULL REFERENCES projects (no),
  kind       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  facts      TEXT NOT NULL,
  due_at     BIGINT NOT NULL,
  attempts   BIGINT NOT NULL DEFAULT 0,
  error      TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (project_no, kind, session_id)
);
CREATE INDEX intake_jobs_by_due ON intake_jobs (project_no, due_at);
