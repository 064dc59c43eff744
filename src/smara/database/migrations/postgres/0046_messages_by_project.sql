-- All messages or pieces of code of a project, newest first: to erase, export or embed a small project read every project's.
CREATE INDEX messages_by_project ON messages (project_no, no);
CREATE INDEX code_chunks_by_project ON code_chunks (project_no, no);
