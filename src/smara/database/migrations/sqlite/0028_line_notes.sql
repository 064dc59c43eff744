-- What may be told of the commits behind the lines of a file, by the folder that it is checked out
-- in. The row without a path tells how far the folder's history was looked at.
CREATE TABLE line_notes (
  project_no INTEGER NOT NULL REFERENCES projects (no),
  place      TEXT NOT NULL,
  path       TEXT NOT NULL,
  tip        TEXT NOT NULL,
  is_undone  INTEGER NOT NULL DEFAULT 0,
  facts      TEXT NOT NULL,
  PRIMARY KEY (project_no, place, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX line_notes_by_tip ON line_notes (project_no, path, tip);
