CREATE TABLE message_index (
  no         BIGINT NOT NULL,
  chunk      INTEGER NOT NULL,
  project_no BIGINT NOT NULL,
  thread_no  BIGINT NOT NULL,
  resource   TEXT NOT NULL,
  role       TEXT NOT NULL,
  prose      TEXT NOT NULL,
  code       TEXT NOT NULL,
  terms      TSVECTOR NOT NULL,
  PRIMARY KEY (no, chunk)
);
CREATE INDEX message_index_by_terms ON message_index USING gin (terms);
CREATE INDEX message_index_by_thread ON message_index (thread_no);

CREATE TABLE index_state (
  name     TEXT PRIMARY KEY,
  rows     BIGINT NOT NULL,
  analysis BIGINT NOT NULL
);
INSERT INTO index_state (name, rows, analysis) VALUES ('message_index', 0, 1);
