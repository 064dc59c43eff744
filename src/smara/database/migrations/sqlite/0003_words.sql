CREATE TABLE words (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  word       TEXT NOT NULL,
  UNIQUE (project_no, word)
) STRICT;

-- Filled from behind: index_state says up to which word.
CREATE VIRTUAL TABLE word_trigrams USING fts5 (
  word, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);
INSERT INTO index_state (name, rows, analysis) VALUES ('words', 0, 1), ('word_trigrams', 0, 1);
