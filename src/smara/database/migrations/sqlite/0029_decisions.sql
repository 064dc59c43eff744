-- A decision is a memory; here is where it was found, by which terms, and how it is told.
CREATE TABLE decisions (
  memory_no  INTEGER PRIMARY KEY REFERENCES memories (no) ON DELETE CASCADE,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  thread_no  INTEGER NOT NULL REFERENCES threads (no),
  origin     TEXT NOT NULL,
  version    INTEGER NOT NULL,
  about      TEXT NOT NULL,
  line       TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_of_thread ON decisions (project_no, thread_no);

CREATE TABLE decision_cursors (
  thread_no  INTEGER PRIMARY KEY REFERENCES threads (no),
  project_no INTEGER NOT NULL REFERENCES projects (no),
  seq        INTEGER NOT NULL
) STRICT;
