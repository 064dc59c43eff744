-- Each erase: when, by whom, what kind of thing, how many rows; never what it was. No reference to projects: a project
-- may be what was erased.
CREATE TABLE erasures (
  no        INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  erased_at INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  target    TEXT NOT NULL,
  counts    TEXT NOT NULL,
  outcome   TEXT NOT NULL
) STRICT;

-- Salted hashes of what was erased, so that no import brings it back. The row of kind 'salt' holds the salt.
CREATE TABLE tombstones (
  kind      TEXT NOT NULL,
  hash      BLOB NOT NULL,
  erased_at INTEGER NOT NULL,
  PRIMARY KEY (kind, hash)
) STRICT, WITHOUT ROWID;
