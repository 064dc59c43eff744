-- What may be told of the commits behind the lines of a file, by the folder that it is checked out
-- in. The row without a path tells how far the folder's history was looked at.
CREATE TABLE line_notes (
  project_no BIGINT NOT NULL REFERENCES projects (no),
  place      TEXT COLLATE "C" NOT NULL,
  path       TEXT COLLATE "C" NOT NULL,
  tip        TEXT NOT NULL,
  is_undone  BIGINT NOT NULL DEFAULT 0,
  facts      TEXT NOT NULL,
  PRIMARY KEY (project_no, place, path)
);
CREATE INDEX line_notes_by_tip ON line_notes (project_no, path, tip);
