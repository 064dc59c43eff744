CREATE TABLE words (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  word       TEXT NOT NULL,
  UNIQUE (project_no, word)
) STRICT;

CREATE VIRTUAL TABLE word_trigrams USING fts5 (
  word, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);
