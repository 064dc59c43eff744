CREATE TABLE working_memory (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  id          TEXT NOT NULL,
  scope       TEXT NOT NULL CHECK (scope IN ('resource', 'thread')),
  resource_id TEXT NOT NULL,
  thread_id   TEXT NOT NULL,
  format      TEXT NOT NULL CHECK (format IN ('markdown', 'json')),
  template    TEXT,
  schema      TEXT,
  content     TEXT NOT NULL,
  version     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;

-- A thread has one working memory, whoever asks for it: its resource is noted, and no part of the key.
CREATE UNIQUE INDEX working_memory_of_resource ON working_memory (project_no, resource_id) WHERE scope = 'resource';
CREATE UNIQUE INDEX working_memory_of_thread ON working_memory (project_no, thread_id) WHERE scope = 'thread';

CREATE TABLE working_memory_versions (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  memory_no  INTEGER NOT NULL REFERENCES working_memory (no),
  version    INTEGER NOT NULL,
  format     TEXT NOT NULL,
  template   TEXT,
  schema     TEXT,
  content    TEXT NOT NULL,
  actor      TEXT NOT NULL,
  reason     TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (memory_no, version)
) STRICT, WITHOUT ROWID;
