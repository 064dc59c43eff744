-- Who may ask the servers of this store: named keys, codes that open a browser once, sessions of browsers. Hashes, and
-- no secret. They are of the whole store; the projects that a key is limited to are rows of their own.
CREATE TABLE access (
  hash       TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('key', 'code', 'session')),
  name       TEXT NOT NULL,
  may_write  INTEGER NOT NULL,
  is_person  INTEGER NOT NULL,
  is_limited INTEGER NOT NULL,
  made_at    INTEGER NOT NULL,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX access_by_name ON access (name) WHERE kind = 'key';
CREATE TABLE access_projects (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  hash       TEXT NOT NULL REFERENCES access (hash) ON DELETE CASCADE,
  PRIMARY KEY (project_no, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_projects_by_hash ON access_projects (hash);
-- The oldest schema whose code may go on with a store that has a step; NULL is the step itself.
ALTER TABLE migrations ADD COLUMN opened_by BIGINT;
