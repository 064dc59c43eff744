CREATE VIRTUAL TABLE message_index USING fts5 (
  prose, code, scope,
  tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'"
);

CREATE TABLE index_state (
  name     TEXT PRIMARY KEY,
  rows     INTEGER NOT NULL,
  analysis INTEGER NOT NULL
) STRICT;
INSERT INTO index_state (name, rows, analysis) VALUES ('message_index', 0, 1);
