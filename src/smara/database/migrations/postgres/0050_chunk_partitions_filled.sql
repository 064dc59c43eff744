-- The divided table takes the place of the former; see the step before.
LOCK TABLE code_chunks;
SELECT put_parts_in_place('code_chunks');
CREATE TRIGGER code_chunks_to_embed AFTER INSERT ON code_chunks FOR EACH ROW EXECUTE FUNCTION record_to_embed(6);
CREATE TRIGGER code_chunks_to_embed_again AFTER UPDATE OF name, prefix, text ON code_chunks FOR EACH ROW
  WHEN (new.name IS DISTINCT FROM old.name OR new.prefix IS DISTINCT FROM old.prefix OR new.text IS DISTINCT FROM old.text)
  EXECUTE FUNCTION record_to_embed(6);
CREATE TRIGGER code_chunks_removed AFTER DELETE ON code_chunks FOR EACH ROW EXECUTE FUNCTION code_chunk_removed();

-- Its vectors are looked for in the part of their project.
CREATE OR REPLACE FUNCTION code_chunk_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM queue_record(old.project_no, 6, old.no);
  DELETE FROM vectors v USING vector_shelves s WHERE s.project_no = old.project_no AND s.kind = 6
    AND v.project_no = old.project_no AND v.no = (s.no << 47) + old.no;
  UPDATE vector_blocks SET offsets = NULL, signs = NULL
    WHERE shelf_no IN (SELECT no FROM vector_shelves WHERE project_no = old.project_no AND kind = 6)
    AND block = old.no >> 8;
  DELETE FROM embedding_failures WHERE project_no = old.project_no AND kind = 6 AND no = old.no;
  RETURN NULL;
END
$$;
