-- The large tables of records are divided by project too, as the text indexes and the vectors are. They are read and
-- written meanwhile: the divided table grows beside the former, called _parts; a trigger writes every change into both;
-- what was there before is copied in batches before the next step, which puts the divided table in place of the former.
CREATE FUNCTION write_to_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    EXECUTE format('DELETE FROM %I_parts WHERE no = $1 AND project_no = $2', TG_TABLE_NAME) USING old.no, old.project_no;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    EXECUTE format('INSERT INTO %I_parts SELECT ($1).*', TG_TABLE_NAME) USING new;
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION divide_table(whole TEXT, keys TEXT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %1$s_parts (LIKE %1$s INCLUDING DEFAULTS INCLUDING CONSTRAINTS, %2$s) PARTITION BY HASH (project_no)', whole, keys);
  FOR each IN 0..15 LOOP
    EXECUTE format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s_parts FOR VALUES WITH (MODULUS 16, REMAINDER %2$s)', whole, each);
  END LOOP;
  EXECUTE format('CREATE TABLE %1$s_moved AS SELECT 0::bigint AS last_no', whole);
  EXECUTE format('CREATE TRIGGER %1$s_written AFTER INSERT OR UPDATE OR DELETE ON %1$s FOR EACH ROW EXECUTE FUNCTION write_to_parts()', whole);
END
$$;

CREATE FUNCTION put_parts_in_place(whole TEXT) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sequence TEXT := pg_get_serial_sequence(whole, 'no');
  last RECORD;
  is_same BOOLEAN;
  name TEXT;
BEGIN
  -- What was locked when its batch was copied, usually nothing.
  EXECUTE format('INSERT INTO %1$s_parts SELECT * FROM %1$s w WHERE NOT EXISTS (SELECT FROM %1$s_parts p WHERE p.no = w.no AND p.project_no = w.project_no)', whole);
  EXECUTE format('SELECT (SELECT count(*) FROM %1$s) = (SELECT count(*) FROM %1$s_parts)', whole) INTO is_same;
  IF NOT is_same THEN
    RAISE EXCEPTION 'the divided table % has not as many rows as the former; nothing was changed', whole;
  END IF;
  IF sequence IS NOT NULL THEN
    EXECUTE format('SELECT last_value, is_called FROM %s', sequence) INTO last;
  END IF;
  EXECUTE format('DROP TABLE %1$s, %1$s_moved', whole);
  EXECUTE format('ALTER TABLE %1$s_parts RENAME TO %1$s', whole);
  FOR name IN SELECT indexrelid::regclass FROM pg_index WHERE indrelid = whole::regclass LOOP
    EXECUTE format('ALTER INDEX %s RENAME TO %s', name, replace(name, '_parts', ''));
  END LOOP;
  IF sequence IS NOT NULL THEN
    EXECUTE format('CREATE SEQUENCE %1$s_no_seq OWNED BY %1$s.no', whole);
    PERFORM setval(format('%s_no_seq', whole), last.last_value, last.is_called);
    EXECUTE format('ALTER TABLE %1$s ALTER no SET DEFAULT nextval(''%1$s_no_seq'')', whole);
  END IF;
END
$$;

SELECT divide_table('commits', 'PRIMARY KEY (no, project_no), UNIQUE (project_no, sha), CONSTRAINT commits_project_no_fkey FOREIGN KEY (project_no) REFERENCES projects (no)');
CREATE INDEX commits_parts_by_time ON commits_parts (project_no, at);
CREATE INDEX commits_parts_unnamed ON commits_parts (project_no, at) WHERE is_named = 0;
