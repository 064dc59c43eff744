-- Copies that were made into this store; the one without an end is under way.
CREATE TABLE copies (
  id          TEXT PRIMARY KEY,
  source      TEXT NOT NULL,
  facts       TEXT NOT NULL,
  progress    TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER
) STRICT;
