CREATE TABLE projects (
  no             INTEGER PRIMARY KEY,
  id             TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  git_common_dir TEXT,
  first_commit   TEXT,
  remote         TEXT,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX projects_by_git_common_dir ON projects (git_common_dir);

CREATE TABLE threads (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  id          TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  kind        TEXT NOT NULL,
  parent_id   TEXT,
  title       TEXT,
  metadata    TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  last_seq    INTEGER NOT NULL DEFAULT 0,
  tokens      INTEGER NOT NULL DEFAULT 0,
  index_rows  INTEGER NOT NULL DEFAULT 0,
  index_terms INTEGER NOT NULL DEFAULT 0,
  UNIQUE (project_no, id)
) STRICT;
CREATE INDEX threads_by_resource ON threads (project_no, resource_id, updated_at);
CREATE INDEX threads_by_update ON threads (project_no, updated_at);

CREATE TABLE messages (
  no            INTEGER PRIMARY KEY,
  project_no    INTEGER NOT NULL REFERENCES projects (no),
  thread_no     INTEGER NOT NULL REFERENCES threads (no),
  seq           INTEGER NOT NULL,
  id            TEXT NOT NULL UNIQUE,
  role          TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
  raw_content   TEXT NOT NULL,
  parts         TEXT,
  token_count   INTEGER NOT NULL,
  token_method  TEXT NOT NULL,
  term_count    INTEGER NOT NULL,
  client_id     TEXT,
  task_id       TEXT,
  created_at    INTEGER NOT NULL,
  sealed_at     INTEGER,
  metadata      TEXT,
  UNIQUE (thread_no, seq)
) STRICT;
CREATE UNIQUE INDEX messages_by_client_id ON messages (thread_no, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX messages_by_task ON messages (project_no, task_id) WHERE task_id IS NOT NULL;
