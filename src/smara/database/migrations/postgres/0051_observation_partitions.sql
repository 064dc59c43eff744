-- The observations, divided by project.
SELECT divide_table('observations', 'PRIMARY KEY (no, project_no), UNIQUE (id, project_no), CONSTRAINT observations_project_no_fkey FOREIGN KEY (project_no) REFERENCES projects (no), CONSTRAINT observations_record_no_fkey FOREIGN KEY (record_no) REFERENCES observation_records (no), CONSTRAINT observations_thread_no_fkey FOREIGN KEY (thread_no) REFERENCES threads (no), CONSTRAINT observations_batch_no_fkey FOREIGN KEY (batch_no) REFERENCES observation_batches (no)');
CREATE INDEX observations_parts_by_record ON observations_parts (record_no, state, kind, said_at, no);
CREATE INDEX observations_parts_by_thread ON observations_parts (thread_no, first_seq) WHERE thread_no IS NOT NULL;
CREATE INDEX observations_parts_by_batch ON observations_parts (batch_no) WHERE batch_no IS NOT NULL;
CREATE INDEX observations_parts_by_short_id ON observations_parts (project_no, substr(id, 29));
CREATE INDEX observations_parts_condensed ON observations_parts (project_no, created_at) WHERE state = 'reflected';
CREATE INDEX observations_parts_by_time ON observations_parts (project_no, said_at, no);
CREATE INDEX observations_parts_by_facet ON observations_parts (project_no, state, category, priority);
