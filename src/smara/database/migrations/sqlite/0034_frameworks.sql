-- What agent frameworks keep here as it is: sessions as streams of entries, and values under names.
CREATE TABLE framework_streams (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  id         TEXT NOT NULL,
  framework  TEXT NOT NULL,
  key        TEXT NOT NULL,
  thread_no  INTEGER NOT NULL REFERENCES threads (no) ON DELETE CASCADE,
  data       TEXT NOT NULL,
  last_seq   INTEGER NOT NULL DEFAULT 0,
  read_seq   INTEGER NOT NULL DEFAULT 0,
  revision   INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_no, id),
  UNIQUE (project_no, framework, key)
) STRICT;
CREATE INDEX framework_streams_of_thread ON framework_streams (thread_no);

CREATE TABLE framework_entries (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  id         TEXT NOT NULL,
  stream_no  INTEGER NOT NULL REFERENCES framework_streams (no) ON DELETE CASCADE,
  seq        INTEGER NOT NULL,
  key        TEXT,
  entry      TEXT NOT NULL,
  message_no INTEGER REFERENCES messages (no) ON DELETE SET NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (project_no, id),
  UNIQUE (stream_no, seq)
) STRICT;
CREATE UNIQUE INDEX framework_entries_by_key ON framework_entries (stream_no, key) WHERE key IS NOT NULL;
CREATE INDEX framework_entries_of_message ON framework_entries (message_no) WHERE message_no IS NOT NULL;

CREATE TABLE framework_items (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  id          TEXT NOT NULL,
  framework   TEXT NOT NULL,
  namespace   TEXT NOT NULL,
  name        TEXT NOT NULL,
  item        TEXT NOT NULL,
  searched_fields TEXT,
  revision    INTEGER NOT NULL DEFAULT 1,
  ttl_seconds REAL,
  expires_at  INTEGER,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (project_no, id),
  UNIQUE (project_no, framework, namespace, name)
) STRICT;
CREATE INDEX framework_items_by_expiry ON framework_items (project_no, expires_at) WHERE expires_at IS NOT NULL;

-- Made by the framework's own embedder, and never compared with ours.
CREATE TABLE framework_vectors (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  item_no    INTEGER NOT NULL REFERENCES framework_items (no) ON DELETE CASCADE,
  space      TEXT NOT NULL,
  field      TEXT NOT NULL,
  position   INTEGER NOT NULL,
  vector     BLOB NOT NULL,
  PRIMARY KEY (item_no, field, position)
) STRICT, WITHOUT ROWID;

-- Where the runs of a framework stand: opaque parts that belong to a thread, and go with it.
CREATE TABLE framework_states (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  id         TEXT NOT NULL,
  thread_no  INTEGER NOT NULL REFERENCES threads (no) ON DELETE CASCADE,
  framework  TEXT NOT NULL,
  key        TEXT NOT NULL,
  kind       TEXT NOT NULL,
  namespace  TEXT NOT NULL,
  name       TEXT NOT NULL,
  part       TEXT NOT NULL,
  entry      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (project_no, id),
  UNIQUE (project_no, framework, key, kind, namespace, name, part)
) STRICT;
CREATE INDEX framework_states_of_thread ON framework_states (thread_no);
