-- A space is all vectors of one model. Vectors of two spaces are never compared.
CREATE TABLE vector_spaces (
  no         INTEGER PRIMARY KEY,
  model_id   TEXT NOT NULL UNIQUE,
  dims       INTEGER NOT NULL,
  embedder   TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- A space as it stands in one project. Its stamp grows with every change of its blocks.
CREATE TABLE vector_fills (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  space_no   INTEGER NOT NULL REFERENCES vector_spaces (no),
  state      TEXT NOT NULL CHECK (state IN ('filling', 'ready', 'retired', 'dropped')),
  stamp      INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  ready_at   INTEGER,
  chosen_at  INTEGER,
  used_at    INTEGER NOT NULL,
  PRIMARY KEY (project_no, space_no)
) STRICT, WITHOUT ROWID;

-- How far the walk over the records that were there before the space has come, for each kind.
CREATE TABLE vector_walks (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  space_no   INTEGER NOT NULL REFERENCES vector_spaces (no),
  kind       INTEGER NOT NULL,
  walked_no  INTEGER NOT NULL DEFAULT 0,
  is_done    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_no, space_no, kind)
) STRICT, WITHOUT ROWID;

-- Where the vectors of one kind stand.
CREATE TABLE vector_shelves (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  space_no   INTEGER NOT NULL REFERENCES vector_spaces (no),
  kind       INTEGER NOT NULL,
  UNIQUE (project_no, kind, space_no)
) STRICT;

-- The number holds the shelf and, in the last 47 bits, the row. One byte for each dimension; none at all for a text of
-- which the model knows nothing.
CREATE TABLE vectors (
  no     INTEGER PRIMARY KEY,
  vector BLOB NOT NULL
) STRICT;

-- The signs of the vectors of 256 records together: enough to find the few that are worth a closer look.
-- No signs: they are to be made again from the vectors.
CREATE TABLE vector_blocks (
  no       INTEGER PRIMARY KEY,
  shelf_no INTEGER NOT NULL REFERENCES vector_shelves (no),
  block    INTEGER NOT NULL,
  stamp    INTEGER NOT NULL,
  size     INTEGER NOT NULL,
  offsets  BLOB,
  signs    BLOB,
  UNIQUE (shelf_no, block)
) STRICT;
CREATE INDEX vector_blocks_by_stamp ON vector_blocks (shelf_no, stamp, size);

-- What was written since: space 0 stands for every space. The stamp tells a record that changed again.
CREATE TABLE embedding_queue (
  project_no INTEGER NOT NULL,
  space_no   INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  no         INTEGER NOT NULL,
  stamp      INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (project_no, space_no, kind, no)
) STRICT, WITHOUT ROWID;

-- Records that a model refuses; they are tried again when they change, or when asked for.
CREATE TABLE embedding_failures (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  space_no   INTEGER NOT NULL REFERENCES vector_spaces (no),
  kind       INTEGER NOT NULL,
  no         INTEGER NOT NULL,
  code       TEXT NOT NULL,
  message    TEXT NOT NULL,
  failed_at  INTEGER NOT NULL,
  PRIMARY KEY (project_no, space_no, kind, no)
) STRICT, WITHOUT ROWID;

-- Vectors of texts that cost something to make; the key is a hash of the text, its use, the model and the dimensions.
CREATE TABLE embedding_cache (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  key        BLOB NOT NULL,
  space_no   INTEGER NOT NULL REFERENCES vector_spaces (no),
  vector     BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (project_no, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX embedding_cache_by_expiry ON embedding_cache (project_no, expires_at);

-- A record and its place in the queue are written together, so that none is missed whoever writes it.
CREATE TRIGGER messages_to_embed AFTER INSERT ON messages BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 1, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER messages_to_embed_again AFTER UPDATE OF raw_content ON messages
WHEN new.raw_content IS NOT old.raw_content BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 1, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER tasks_to_embed AFTER INSERT ON tasks BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 2, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER tasks_to_embed_again AFTER UPDATE OF title, description, type, summary, original_content ON tasks
WHEN new.title IS NOT old.title OR new.description IS NOT old.description OR new.type IS NOT old.type
  OR new.summary IS NOT old.summary OR new.original_content IS NOT old.original_content BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 2, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER task_labels_to_embed AFTER INSERT ON task_labels BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 2, new.task_no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER task_labels_removed AFTER DELETE ON task_labels BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (old.project_no, 0, 2, old.task_no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER observations_to_embed AFTER INSERT ON observations BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 3, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER observations_to_embed_again AFTER UPDATE OF text, details, files ON observations
WHEN new.text IS NOT old.text OR new.details IS NOT old.details OR new.files IS NOT old.files BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 3, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER memories_to_embed AFTER INSERT ON memories BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 4, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER memories_to_embed_again
AFTER UPDATE OF content, type, files, modules, tags, context_prefix, data ON memories
WHEN new.content IS NOT old.content OR new.type IS NOT old.type OR new.files IS NOT old.files
  OR new.modules IS NOT old.modules OR new.tags IS NOT old.tags OR new.context_prefix IS NOT old.context_prefix
  OR new.data IS NOT old.data BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 4, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER working_memory_to_embed AFTER INSERT ON working_memory BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 5, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;
CREATE TRIGGER working_memory_to_embed_again AFTER UPDATE OF content ON working_memory
WHEN new.content IS NOT old.content BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, 5, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
END;

-- What is removed for good takes its vectors with it, and what may have been kept of its text beside them.
CREATE VIEW removed_records AS SELECT 0 AS project_no, 0 AS kind, 0 AS no, 0 AS first_row, 0 AS last_row WHERE false;
CREATE TRIGGER forget_removed INSTEAD OF INSERT ON removed_records BEGIN
  INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (new.project_no, 0, new.kind, new.no)
  ON CONFLICT DO UPDATE SET stamp = stamp + 1;
  DELETE FROM vectors WHERE no IN (
    SELECT v.no FROM vector_shelves s CROSS JOIN vectors v
    ON v.no BETWEEN (s.no << 47) + new.first_row AND (s.no << 47) + new.last_row
    WHERE s.project_no = new.project_no AND s.kind = new.kind);
  UPDATE vector_fills SET stamp = stamp + 1 WHERE project_no = new.project_no;
  UPDATE vector_blocks SET offsets = NULL, signs = NULL, stamp = (
      SELECT f.stamp FROM vector_shelves s JOIN vector_fills f
      ON f.project_no = s.project_no AND f.space_no = s.space_no WHERE s.no = vector_blocks.shelf_no)
    WHERE shelf_no IN (SELECT no FROM vector_shelves WHERE project_no = new.project_no AND kind = new.kind)
    AND block = new.no >> 8;
  DELETE FROM embedding_failures WHERE project_no = new.project_no AND kind = new.kind AND no = new.no;
  DELETE FROM embedding_cache WHERE project_no = new.project_no;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
  INSERT INTO removed_records VALUES (old.project_no, 1, old.no, old.no << 16, (old.no << 16) + 65535);
END;
CREATE TRIGGER tasks_removed AFTER DELETE ON tasks BEGIN
  INSERT INTO removed_records VALUES (old.project_no, 2, old.no, old.no, old.no);
END;
CREATE TRIGGER observations_removed AFTER DELETE ON observations BEGIN
  INSERT INTO removed_records VALUES (old.project_no, 3, old.no, old.no, old.no);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
  INSERT INTO removed_records VALUES (old.project_no, 4, old.no, old.no, old.no);
END;
CREATE TRIGGER working_memory_removed AFTER DELETE ON working_memory BEGIN
  INSERT INTO removed_records VALUES (old.project_no, 5, old.no, old.no, old.no);
END;
