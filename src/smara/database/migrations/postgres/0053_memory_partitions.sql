-- The memories, divided by project.
SELECT divide_table('memories', 'PRIMARY KEY (no, project_no), UNIQUE (project_no, id), UNIQUE (project_no, key), CONSTRAINT memories_project_no_fkey FOREIGN KEY (project_no) REFERENCES projects (no)');
CREATE INDEX memories_parts_by_bare_key ON memories_parts (project_no, bare_key);
CREATE INDEX memories_parts_by_fingerprint ON memories_parts (project_no, fingerprint);
CREATE INDEX memories_parts_by_subject ON memories_parts (project_no, subject_key) WHERE subject_key IS NOT NULL;
CREATE INDEX memories_parts_by_type ON memories_parts (project_no, type, no) WHERE deprecated_at IS NULL;
CREATE INDEX memories_parts_active ON memories_parts (project_no, no) WHERE deprecated_at IS NULL;
CREATE INDEX memories_parts_to_review ON memories_parts (project_no, no) WHERE needs_review = 1 AND deprecated_at IS NULL;
CREATE INDEX memories_parts_deprecated ON memories_parts (project_no, deprecated_at, no) WHERE deprecated_at IS NOT NULL;
CREATE INDEX memories_parts_by_session ON memories_parts (project_no, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_parts_replaced ON memories_parts (replaced_by_no) WHERE replaced_by_no IS NOT NULL;
CREATE INDEX memories_parts_pinned ON memories_parts (project_no, no) WHERE is_pinned = 1 AND deprecated_at IS NULL;
CREATE INDEX memories_parts_verified ON memories_parts (project_no, no) WHERE is_verified = 1 AND deprecated_at IS NULL;
CREATE INDEX memories_parts_by_facet ON memories_parts (
  project_no, work_unit, session_id, created_by, visibility, scope, deprecated_at, type, source, is_verified, taint,
  needs_review, stale_at, is_pinned, created_at
);
CREATE INDEX memories_parts_used ON memories_parts (project_no, last_verified_use_at) WHERE last_verified_use_at IS NOT NULL;
CREATE INDEX memories_parts_stale ON memories_parts (project_no, no) WHERE stale_at IS NOT NULL;
CREATE INDEX memories_parts_by_confidence ON memories_parts (project_no, confidence, no) WHERE deprecated_at IS NULL;
