-- The vectors of all projects stood in one table, and the index of a large project on it was planned and locked for by
-- everyone. They are divided by project, as the text indexes are. The former table, called _whole until then, is moved
-- in parts before the next step.
ALTER TABLE vectors RENAME TO vectors_whole;
ALTER INDEX vectors_pkey RENAME TO vectors_whole_pkey;
CREATE TABLE vectors (
  no         BIGINT NOT NULL,
  project_no BIGINT NOT NULL,
  vector     BYTEA NOT NULL,
  PRIMARY KEY (no, project_no)
) PARTITION BY HASH (project_no);
DO $$ BEGIN
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE vectors_%s PARTITION OF vectors FOR VALUES WITH (MODULUS 16, REMAINDER %s)', each, each);
  END LOOP;
END $$;

-- What is removed while the table is moved is removed from both.
CREATE OR REPLACE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  in_kind BIGINT := TG_ARGV[0]::bigint;
  bits INTEGER := TG_ARGV[1]::integer;
BEGIN
  PERFORM queue_record(old.project_no, in_kind, old.no);
  DELETE FROM vectors_whole v USING vector_shelves s WHERE s.project_no = old.project_no AND s.kind = in_kind
    AND v.no BETWEEN (s.no << 47) + (old.no << bits) AND (s.no << 47) + ((old.no + 1) << bits) - 1;
  DELETE FROM vectors v USING vector_shelves s WHERE s.project_no = old.project_no AND s.kind = in_kind
    AND v.project_no = old.project_no
    AND v.no BETWEEN (s.no << 47) + (old.no << bits) AND (s.no << 47) + ((old.no + 1) << bits) - 1;
  UPDATE vector_blocks SET offsets = NULL, signs = NULL
    WHERE shelf_no IN (SELECT no FROM vector_shelves WHERE project_no = old.project_no AND kind = in_kind)
    AND block = old.no >> 8;
  DELETE FROM embedding_failures WHERE project_no = old.project_no AND kind = in_kind AND no = old.no;
  DELETE FROM embedding_cache WHERE project_no = old.project_no;
  RETURN NULL;
END
$$;
