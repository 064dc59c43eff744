-- When each kind of record was last brought down to its rule, and how many rows went since the beginning.
CREATE TABLE retention_state (
  project_no bigint NOT NULL REFERENCES projects (no),
  kind       text NOT NULL,
  kept_at    bigint,
  removed_at bigint,
  removed    bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (project_no, kind)
);
