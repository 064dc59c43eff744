-- One checked-out folder: a repository's main folder, or one of its worktrees.
CREATE TABLE code_trees (
  no          INTEGER PRIMARY KEY,
  project_no  INTEGER NOT NULL REFERENCES projects (no),
  root        TEXT NOT NULL,
  branch      TEXT,
  head        TEXT,
  state       TEXT NOT NULL CHECK (state IN ('building', 'ready')),
  revision    INTEGER NOT NULL DEFAULT 0,
  version     INTEGER NOT NULL,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER,
  counts      TEXT NOT NULL DEFAULT '{}',
  history     TEXT,
  UNIQUE (project_no, root)
) STRICT;

-- A file as it was when it was last read. One that is not indexed says why in skip, so that it is not read again
-- before it changes. Its edges stand together in one value of 16 bytes each: a graph is walked in memory, and reading
-- two thousand values is quicker than reading half a million rows.
CREATE TABLE code_files (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  path       TEXT NOT NULL,
  language   TEXT,
  kind       TEXT NOT NULL,
  hash       BLOB NOT NULL,
  size       INTEGER NOT NULL,
  mtime_ns   INTEGER NOT NULL,
  lines      INTEGER NOT NULL DEFAULT 0,
  is_test    INTEGER NOT NULL DEFAULT 0,
  stale_at   INTEGER,
  indexed_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL,
  skip       TEXT,
  edges      BLOB,
  UNIQUE (tree_no, path)
) STRICT;
CREATE INDEX code_files_by_revision ON code_files (tree_no, revision);
CREATE INDEX code_files_stale ON code_files (tree_no, stale_at) WHERE stale_at IS NOT NULL;

-- What a file says by itself, so that its edges can be made again without reading it: its imports, bases and types
-- (outline), the names it uses, and what was asked about other files to make its edges.
CREATE TABLE code_facts (
  file_no    INTEGER PRIMARY KEY REFERENCES code_files (no),
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  outline    BLOB NOT NULL,
  uses       BLOB NOT NULL,
  asked      BLOB NOT NULL
) STRICT;
CREATE INDEX code_facts_by_tree ON code_facts (tree_no);

-- A file, or something it defines. Its number stays as long as path, name, kind and ordinal do.
CREATE TABLE code_nodes (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  file_no    INTEGER NOT NULL REFERENCES code_files (no),
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  qualname   TEXT NOT NULL,
  ordinal    INTEGER NOT NULL DEFAULT 0,
  parent_no  INTEGER,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  body_hash  BLOB NOT NULL,
  sketch     BLOB NOT NULL,
  signature  TEXT NOT NULL,
  doc        TEXT NOT NULL
) STRICT;
CREATE INDEX code_nodes_by_file ON code_nodes (file_no);
CREATE INDEX code_nodes_by_name ON code_nodes (tree_no, name);
CREATE INDEX code_nodes_by_body ON code_nodes (tree_no, body_hash);

-- A piece of a file that is searched as one; redacted.
CREATE TABLE code_chunks (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  file_no    INTEGER NOT NULL REFERENCES code_files (no),
  node_no    INTEGER,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  prefix     TEXT NOT NULL,
  text       TEXT NOT NULL
) STRICT;
CREATE INDEX code_chunks_by_file ON code_chunks (file_no);

-- Code has a text index of its own: among its many rows, every look for a task or a memory would take long.
CREATE VIRTUAL TABLE code_index USING fts5 (
  head, body, scope,
  tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'",
  detail = none
);
INSERT INTO index_state (name, rows, analysis) VALUES ('code_index', 0, 1);

-- The next number of each kind. A number is never given twice: an edge or a vector that outlived its node by a moment
-- would otherwise belong to another one.
CREATE TABLE code_numbers (
  kind    TEXT PRIMARY KEY,
  next_no INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO code_numbers (kind, next_no) VALUES ('file', 1), ('node', 1), ('chunk', 1);

-- The parts of a tree that belong together, what they are for and what goes from one to another.
CREATE TABLE code_modules (
  no             INTEGER PRIMARY KEY,
  project_no     INTEGER NOT NULL REFERENCES projects (no),
  tree_no        INTEGER NOT NULL REFERENCES code_trees (no),
  path           TEXT NOT NULL,
  purpose        TEXT NOT NULL,
  flows          TEXT NOT NULL DEFAULT '[]',
  source         TEXT NOT NULL,
  model          TEXT,
  prompt_version INTEGER,
  fingerprint    TEXT NOT NULL,
  made_at        INTEGER NOT NULL,
  UNIQUE (tree_no, path)
) STRICT;

-- How often a file changed, and which files changed together, from the history of the repository.
CREATE TABLE code_churn (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  path       TEXT NOT NULL,
  commits    INTEGER NOT NULL,
  counted    INTEGER NOT NULL,
  authors    INTEGER NOT NULL,
  first_at   INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (tree_no, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE code_cochange (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  tree_no    INTEGER NOT NULL REFERENCES code_trees (no),
  path       TEXT NOT NULL,
  other      TEXT NOT NULL,
  together   INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (tree_no, path, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_cochange_by_other ON code_cochange (tree_no, other);

-- A chunk and its place in the queue for vectors are written together.
CREATE TRIGGER code_chunks_to_embed AFTER INSERT ON code_chunks BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 6, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER code_chunks_to_embed_again AFTER UPDATE OF name, prefix, text ON code_chunks
WHEN new.name IS NOT old.name OR new.prefix IS NOT old.prefix OR new.text IS NOT old.text BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 6, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
-- Unlike what people said, code is removed with every save: the vectors go, the cache of texts stays.
CREATE TRIGGER code_chunks_removed AFTER DELETE ON code_chunks BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (old.project_no, 0, 6, old.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
  DELETE FROM vectors WHERE no IN (
    SELECT v.no FROM vector_shelves s CROSS JOIN vectors v ON v.no = (s.no << 47) + old.no
    WHERE s.project_no = old.project_no AND s.kind = 6);
  UPDATE vector_fills SET stamp = stamp + 1 WHERE project_no = old.project_no;
  UPDATE vector_blocks SET offsets = NULL, signs = NULL, stamp = (
      SELECT f.stamp FROM vector_shelves s JOIN vector_fills f
      ON f.project_no = s.project_no AND f.space_no = s.space_no WHERE s.no = vector_blocks.shelf_no)
    WHERE shelf_no IN (SELECT no FROM vector_shelves WHERE project_no = old.project_no AND kind = 6)
    AND block = old.no >> 8;
  DELETE FROM embedding_failures WHERE project_no = old.project_no AND kind = 6 AND no = old.no;
END;
