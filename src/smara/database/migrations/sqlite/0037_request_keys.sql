-- Which requests were done, by the key that a client gave them: hashes, and none of their words.
CREATE TABLE request_keys (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  key        TEXT NOT NULL,
  request    TEXT NOT NULL,
  begun_at   INTEGER NOT NULL,
  done_at    INTEGER,
  call       TEXT,
  record_id  TEXT,
  PRIMARY KEY (project_no, key)
) STRICT, WITHOUT ROWID;
