-- Memories are counted by their facets, and by who may see them, without reading their texts. What
-- no other question asks for comes first: this index is for counting alone.
CREATE INDEX memories_by_facet ON memories (
  project_no, work_unit, session_id, created_by, visibility, scope, deprecated_at, type, source,
  is_verified, taint, needs_review, stale_at, is_pinned, created_at
);
CREATE INDEX memories_used ON memories (project_no, last_verified_use_at)
  WHERE last_verified_use_at IS NOT NULL;
CREATE INDEX memories_stale ON memories (project_no, no) WHERE stale_at IS NOT NULL;
-- The newest observations of a project are found without sorting all of them.
CREATE INDEX observations_by_time ON observations (project_no, said_at, no);
CREATE INDEX observations_by_facet ON observations (project_no, state, category, priority);
-- The surest memories, with which a session begins.
CREATE INDEX memories_by_confidence ON memories (project_no, confidence, no)
  WHERE deprecated_at IS NULL;
