-- A look for a word read the rows of every project that has it. Now the text indexes are divided by project, and a word
-- in them stands with its project: 12:login, of which each project has a list of its own, however many share a part.
-- The former tables, called _whole until then, are moved in parts before the next step.
ALTER TABLE message_index RENAME TO message_index_whole;
ALTER INDEX message_index_pkey RENAME TO message_index_whole_pkey;
DROP INDEX message_index_by_terms, message_index_by_thread;
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
  PRIMARY KEY (no, chunk, project_no)
) PARTITION BY HASH (project_no);
CREATE INDEX message_index_by_terms ON message_index USING gin (terms) WITH (gin_pending_list_limit = 128);
CREATE INDEX message_index_by_thread ON message_index (thread_no);
DO $$ BEGIN
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE message_index_%s PARTITION OF message_index FOR VALUES WITH (MODULUS 16, REMAINDER %s)', each, each);
  END LOOP;
END $$;

ALTER TABLE record_index RENAME TO record_index_whole;
ALTER INDEX record_index_pkey RENAME TO record_index_whole_pkey;
DROP INDEX record_index_by_terms;
CREATE TABLE record_index (
  kind       TEXT NOT NULL,
  no         BIGINT NOT NULL,
  piece      INTEGER NOT NULL,
  project_no BIGINT NOT NULL,
  head       TEXT NOT NULL,
  body       TEXT NOT NULL,
  terms      TSVECTOR NOT NULL,
  PRIMARY KEY (kind, no, piece, project_no)
) PARTITION BY HASH (project_no);
CREATE INDEX record_index_by_terms ON record_index USING gin (terms) WITH (gin_pending_list_limit = 128);
DO $$ BEGIN
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE record_index_%s PARTITION OF record_index FOR VALUES WITH (MODULUS 16, REMAINDER %s)', each, each);
  END LOOP;
END $$;

ALTER TABLE code_index RENAME TO code_index_whole;
ALTER INDEX code_index_pkey RENAME TO code_index_whole_pkey;
DROP INDEX code_index_by_terms;
CREATE TABLE code_index (
  kind       TEXT NOT NULL,
  no         BIGINT NOT NULL,
  piece      INTEGER NOT NULL,
  project_no BIGINT NOT NULL,
  head       TEXT NOT NULL,
  body       TEXT NOT NULL,
  terms      TSVECTOR NOT NULL,
  PRIMARY KEY (kind, no, piece, project_no)
) PARTITION BY HASH (project_no);
CREATE INDEX code_index_by_terms ON code_index USING gin (terms) WITH (gin_pending_list_limit = 128);
DO $$ BEGIN
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE code_index_%s PARTITION OF code_index FOR VALUES WITH (MODULUS 16, REMAINDER %s)', each, each);
  END LOOP;
END $$;

ALTER TABLE words RENAME TO words_whole;
ALTER TABLE words_whole DROP COLUMN no;
ALTER TABLE words_whole DROP CONSTRAINT words_project_no_fkey;
ALTER INDEX words_project_no_word_key RENAME TO words_whole_project_no_word_key;
DROP INDEX words_by_trigram;
CREATE TABLE words (
  project_no BIGINT NOT NULL,
  word       TEXT COLLATE "C" NOT NULL,
  trigrams   TEXT[] NOT NULL,
  PRIMARY KEY (project_no, word)
) PARTITION BY HASH (project_no);
CREATE INDEX words_by_trigram ON words USING gin (trigrams) WITH (gin_pending_list_limit = 128);
DO $$ BEGIN
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE words_%s PARTITION OF words FOR VALUES WITH (MODULUS 16, REMAINDER %s)', each, each);
  END LOOP;
END $$;

CREATE FUNCTION terms_of_project(in_project BIGINT, terms TEXT[]) RETURNS TEXT[] LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(array_agg(in_project || ':' || term), '{}') FROM unnest(terms) AS term
$$;
