-- A new project is in no statistics until the server counts its part again, which a large part sees rarely. The planner
-- then expects one row of it, takes any index for good, and a search compares every two messages of the project. Without
-- statistics on this column it expects a two-hundredth of the part for each project, new or not.
DO $$
DECLARE
  each RECORD;
BEGIN
  FOR each IN SELECT c.oid::regclass AS place, c.relname FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ('messages', 'message_index', 'words')
    UNION ALL SELECT p.oid::regclass, p.relname FROM pg_class c JOIN pg_inherits i ON i.inhparent = c.oid
      JOIN pg_class p ON p.oid = i.inhrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ('messages', 'message_index', 'words')
  LOOP
    -- What was counted before stays until it is removed. A role that may not do that (before PostgreSQL 18 it takes a
    -- superuser) goes on counting: old counts that are never renewed would be worse.
    BEGIN
      IF EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = current_schema() AND s.tablename = each.relname
        AND s.attname = 'project_no')
      THEN
        IF current_setting('server_version_num')::int >= 180000 THEN
          PERFORM pg_clear_attribute_stats(current_schema()::text, each.relname::text, 'project_no', false);
          PERFORM pg_clear_attribute_stats(current_schema()::text, each.relname::text, 'project_no', true);
        ELSE
          DELETE FROM pg_statistic s USING pg_attribute a WHERE a.attrelid = s.starelid
            AND a.attnum = s.staattnum AND a.attname = 'project_no' AND s.starelid = each.place;
        END IF;
      END IF;
      EXECUTE 'ALTER TABLE ONLY ' || each.place || ' ALTER COLUMN project_no SET STATISTICS 0';
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
  END LOOP;
END
$$;
