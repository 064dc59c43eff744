-- Every call of a model. Until it has ended, its tokens and cost are the most that it can use.
CREATE TABLE model_calls (
  no                 INTEGER PRIMARY KEY,
  project_no         INTEGER NOT NULL REFERENCES projects (no),
  id                 TEXT NOT NULL UNIQUE,
  model              TEXT NOT NULL,
  purpose            TEXT NOT NULL,
  outcome            TEXT,
  reason             TEXT,
  input_tokens       INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  cached_tokens      INTEGER NOT NULL,
  cost_microdollars  INTEGER,
  is_measured        INTEGER NOT NULL,
  started_at         INTEGER NOT NULL,
  ended_at           INTEGER,
  expires_at         INTEGER NOT NULL
) STRICT;

-- The budget is that of the store, whatever the project.
CREATE INDEX model_calls_by_time ON model_calls (started_at);

-- One row: who asks for a call holds it, so that calls are admitted one after the other.
CREATE TABLE model_switch (
  no        INTEGER PRIMARY KEY CHECK (no = 1),
  paused_at INTEGER,
  reason    TEXT,
  actor     TEXT
) STRICT;

INSERT INTO model_switch (no) VALUES (1);
