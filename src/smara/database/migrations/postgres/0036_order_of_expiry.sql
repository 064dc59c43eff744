-- What is past its time is found without reading what is kept.
CREATE INDEX threads_by_parent ON threads (project_no, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX messages_of_tools ON messages (project_no, created_at) WHERE role = 'tool';
CREATE INDEX observations_condensed ON observations (project_no, created_at)
  WHERE state = 'reflected';
