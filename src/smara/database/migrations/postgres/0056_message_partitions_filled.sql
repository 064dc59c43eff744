-- The divided table takes the place of the former, and what names its rows names their project; see the step before.
LOCK TABLE messages, task_messages, framework_entries;
ALTER TABLE task_messages DROP CONSTRAINT task_messages_message_no_fkey;
ALTER TABLE framework_entries DROP CONSTRAINT framework_entries_message_no_fkey;
SELECT put_parts_in_place('messages');
ALTER TABLE task_messages ADD FOREIGN KEY (message_no, project_no) REFERENCES messages (no, project_no);

-- An entry of a framework outlives its message. A key would forget the project with it (before PostgreSQL 15).
DROP INDEX framework_entries_of_message;
CREATE INDEX framework_entries_of_message ON framework_entries (message_no, project_no) WHERE message_no IS NOT NULL;
CREATE FUNCTION forget_message() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE framework_entries SET message_no = NULL WHERE message_no = old.no AND project_no = old.project_no;
  RETURN NULL;
END
$$;
CREATE TRIGGER messages_forgotten AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION forget_message();

CREATE TRIGGER messages_to_embed AFTER INSERT ON messages FOR EACH ROW EXECUTE FUNCTION record_to_embed(1);
CREATE TRIGGER messages_to_embed_again AFTER UPDATE OF raw_content ON messages FOR EACH ROW
  WHEN (new.raw_content IS DISTINCT FROM old.raw_content) EXECUTE FUNCTION record_to_embed(1);
CREATE TRIGGER messages_removed AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION record_removed(1, 16);

-- The last of them: no table is divided after it this way.
DROP FUNCTION put_parts_in_place, divide_table, write_to_parts;
