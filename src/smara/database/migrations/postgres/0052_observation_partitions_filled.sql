-- The divided table takes the place of the former; see the step before.
LOCK TABLE observations;
SELECT put_parts_in_place('observations');
CREATE TRIGGER observations_to_embed AFTER INSERT ON observations FOR EACH ROW EXECUTE FUNCTION record_to_embed(3);
CREATE TRIGGER observations_to_embed_again AFTER UPDATE OF text, details, files ON observations FOR EACH ROW
  WHEN (new.text IS DISTINCT FROM old.text OR new.details IS DISTINCT FROM old.details OR new.files IS DISTINCT FROM old.files)
  EXECUTE FUNCTION record_to_embed(3);
CREATE TRIGGER observations_removed AFTER DELETE ON observations FOR EACH ROW EXECUTE FUNCTION record_removed(3, 0);
