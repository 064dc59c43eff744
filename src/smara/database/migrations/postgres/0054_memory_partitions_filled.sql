-- The divided table takes the place of the former, and what names its rows names their project; see the step before.
LOCK TABLE memories, memory_keys, memory_relations, memory_events, decisions;
ALTER TABLE memories DROP CONSTRAINT memories_replaced_by_no_fkey;
ALTER TABLE memory_keys DROP CONSTRAINT memory_keys_memory_no_fkey;
ALTER TABLE memory_relations DROP CONSTRAINT memory_relations_memory_no_fkey, DROP CONSTRAINT memory_relations_target_no_fkey;
ALTER TABLE memory_events DROP CONSTRAINT memory_events_memory_no_fkey;
ALTER TABLE decisions DROP CONSTRAINT decisions_memory_no_fkey;
SELECT put_parts_in_place('memories');
ALTER TABLE memories ADD FOREIGN KEY (replaced_by_no, project_no) REFERENCES memories (no, project_no);
ALTER TABLE memory_keys ADD FOREIGN KEY (memory_no, project_no) REFERENCES memories (no, project_no);
ALTER TABLE memory_relations ADD FOREIGN KEY (memory_no, project_no) REFERENCES memories (no, project_no),
  ADD FOREIGN KEY (target_no, project_no) REFERENCES memories (no, project_no);
ALTER TABLE memory_events ADD FOREIGN KEY (memory_no, project_no) REFERENCES memories (no, project_no);
ALTER TABLE decisions ADD FOREIGN KEY (memory_no, project_no) REFERENCES memories (no, project_no) ON DELETE CASCADE;
-- What names a memory that goes is found by both, also where nothing is known of the table yet.
DROP INDEX memory_keys_by_memory, memory_events_by_memory;
CREATE INDEX memory_keys_by_memory ON memory_keys (memory_no, project_no);
CREATE INDEX memory_events_by_memory ON memory_events (memory_no, project_no, no);
CREATE TRIGGER memories_to_embed AFTER INSERT ON memories FOR EACH ROW EXECUTE FUNCTION record_to_embed(4);
CREATE TRIGGER memories_to_embed_again AFTER UPDATE OF content, type, files, modules, tags, context_prefix, data ON memories
  FOR EACH ROW WHEN ((new.content, new.type, new.files, new.modules, new.tags, new.context_prefix, new.data)
    IS DISTINCT FROM (old.content, old.type, old.files, old.modules, old.tags, old.context_prefix, old.data))
  EXECUTE FUNCTION record_to_embed(4);
CREATE TRIGGER memories_removed AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION record_removed(4, 0);
