-- The pieces of code, divided by project.
SELECT divide_table('code_chunks', 'PRIMARY KEY (project_no, no), CONSTRAINT code_chunks_project_no_fkey FOREIGN KEY (project_no) REFERENCES projects (no), CONSTRAINT code_chunks_tree_no_fkey FOREIGN KEY (tree_no) REFERENCES code_trees (no), CONSTRAINT code_chunks_file_no_fkey FOREIGN KEY (file_no) REFERENCES code_files (no)');
CREATE INDEX code_chunks_parts_by_file ON code_chunks_parts (file_no);
CREATE INDEX code_chunks_parts_by_number ON code_chunks_parts (no);
