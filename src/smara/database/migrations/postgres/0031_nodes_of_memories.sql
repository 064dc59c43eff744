-- No reader ever asked for them: a memory's files and relations say what it is about.
ALTER TABLE memories DROP COLUMN target_node_id;
ALTER TABLE memories DROP COLUMN impacted_node_ids;
