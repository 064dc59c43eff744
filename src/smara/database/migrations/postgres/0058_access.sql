-- Who may ask the servers of this store: named keys, codes that open a browser once, sessions of browsers. Hashes, and
-- no secret. They are of the whole store; the projects that a key is limited to are rows of their own. What a key opened
-- ends with it: key_hash is that of the named key (of a key, its own), or of the key that the server was given; it is
-- empty where the server had a random one.
CREATE TABLE access (
  hash       TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('key', 'code', 'session')),
  key_hash   TEXT NOT NULL,
  name       TEXT NOT NULL,
  may_write  BIGINT NOT NULL,
  is_person  BIGINT NOT NULL,
  is_limited BIGINT NOT NULL,
  made_at    BIGINT NOT NULL,
  expires_at BIGINT
);
CREATE UNIQUE INDEX access_by_name ON access (name) WHERE kind = 'key';
CREATE TABLE access_projects (
  project_no BIGINT NOT NULL REFERENCES projects (no),
  hash       TEXT NOT NULL REFERENCES access (hash) ON DELETE CASCADE,
  PRIMARY KEY (project_no, hash)
);
CREATE INDEX access_projects_by_hash ON access_projects (hash);
-- The oldest schema whose code may go on with a store that has a step; NULL is the step itself.
ALTER TABLE migrations ADD COLUMN opened_by BIGINT;
