-- What is left of the former table of vectors, usually nothing; see the step before.
LOCK TABLE vectors_whole;
INSERT INTO vectors (no, project_no, vector) SELECT w.no, s.project_no, w.vector FROM vectors_whole w JOIN vector_shelves s ON s.no = w.no >> 47 ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION record_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  in_kind BIGINT := TG_ARGV[0]::bigint;
  bits INTEGER := TG_ARGV[1]::integer;
BEGIN
  PERFORM queue_record(old.project_no, in_kind, old.no);
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
DROP TABLE vectors_whole;
