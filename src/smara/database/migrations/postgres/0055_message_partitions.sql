-- The messages, divided by project.
SELECT divide_table('messages', 'PRIMARY KEY (project_no, no), UNIQUE (id, project_no), UNIQUE (thread_no, seq, project_no), CONSTRAINT messages_project_no_fkey FOREIGN KEY (project_no) REFERENCES projects (no), CONSTRAINT messages_thread_no_fkey FOREIGN KEY (thread_no) REFERENCES threads (no)');
CREATE UNIQUE INDEX messages_parts_by_client_id ON messages_parts (thread_no, client_id, project_no) WHERE client_id IS NOT NULL;
CREATE INDEX messages_parts_by_task ON messages_parts (project_no, task_id) WHERE task_id IS NOT NULL;
CREATE INDEX messages_parts_of_tools ON messages_parts (project_no, created_at) WHERE role = 'tool';
CREATE INDEX messages_parts_by_pointer ON messages_parts (project_no) WHERE substr(parts, 1, 1) = '{';
CREATE INDEX messages_parts_by_number ON messages_parts (no);
