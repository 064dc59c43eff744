-- A project is known by the places it was seen at: a clone's root commit and remote, or a folder
-- that a person named. A path that now holds something else has lost its row's `path`.
CREATE TABLE project_places (
  no           INTEGER PRIMARY KEY,
  project_no   INTEGER NOT NULL REFERENCES projects (no),
  kind         TEXT NOT NULL CHECK (kind IN ('git', 'folder')),
  host         TEXT NOT NULL,
  path         TEXT,
  first_commit TEXT,
  remote       TEXT,
  proof        TEXT,
  stamp        TEXT NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX project_places_by_path ON project_places (path);

-- What was decided about a project, for `smara doctor` and `smara projects` to tell.
CREATE TABLE project_notes (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  kind       TEXT NOT NULL,
  other      TEXT NOT NULL,
  at         INTEGER NOT NULL
) STRICT;
CREATE INDEX project_notes_by_project ON project_notes (project_no);

INSERT INTO project_places (project_no, kind, host, path, first_commit, remote, proof, stamp, created_at)
SELECT no, 'git', '', git_common_dir, first_commit, remote, first_commit, '', created_at
FROM projects WHERE git_common_dir IS NOT NULL ORDER BY no;

-- Stores that were named kept every repository in `default`.
INSERT INTO project_notes (project_no, kind, other, at)
SELECT no, 'shared', '', created_at FROM projects p WHERE id = 'default'
AND (EXISTS (SELECT 1 FROM threads WHERE project_no = p.no)
  OR EXISTS (SELECT 1 FROM memories WHERE project_no = p.no)
  OR EXISTS (SELECT 1 FROM tasks WHERE project_no = p.no));

DROP INDEX projects_by_git_common_dir;
ALTER TABLE projects DROP COLUMN git_common_dir;
ALTER TABLE projects DROP COLUMN first_commit;
ALTER TABLE projects DROP COLUMN remote;
