-- A decision is a memory; here is where it was found, by which terms, and how it is told.
CREATE TABLE decisions (
  memory_no  BIGINT PRIMARY KEY REFERENCES memories (no) ON DELETE CASCADE,
  project_no BIGINT NOT NULL REFERENCES projects (no),
  thread_no  BIGINT NOT NULL REFERENCES threads (no),
  origin     TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  about      TEXT NOT NULL,
  line       TEXT NOT NULL
);
CREATE INDEX decisions_of_thread ON decisions (project_no, thread_no);

CREATE TABLE decision_cursors (
  thread_no  BIGINT PRIMARY KEY REFERENCES threads (no),
  project_no BIGINT NOT NULL REFERENCES projects (no),
  seq        BIGINT NOT NULL
);
