-- The queue of a store, in a schema beside it. Everything here holds numbers only and can be made again from the store:
-- dropping the schema loses nothing and stops nothing.

CREATE TABLE IF NOT EXISTS {fleet}.state (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- When work becomes due, as the workers are set; writers may be set otherwise.
CREATE TABLE IF NOT EXISTS {fleet}.rules (
  is_one               BOOLEAN PRIMARY KEY DEFAULT true CHECK (is_one),
  scope                TEXT NOT NULL,
  buffer_after_tokens  BIGINT NOT NULL,
  urgent_after_tokens  BIGINT NOT NULL,
  stale_after_ms       BIGINT NOT NULL,
  silent_after_ms      BIGINT NOT NULL,
  has_vectors          BOOLEAN NOT NULL
);

-- What will be due by time alone, if nothing else is written.
CREATE TABLE IF NOT EXISTS {fleet}.timers (
  queue      TEXT NOT NULL,
  key        BIGINT NOT NULL,
  due_at     BIGINT NOT NULL,
  PRIMARY KEY (queue, key)
);
CREATE INDEX IF NOT EXISTS timers_by_time ON {fleet}.timers (due_at);

-- The turn that each queue has reached; see put_job.
CREATE SEQUENCE IF NOT EXISTS {fleet}.turn_threads MINVALUE 0;
CREATE SEQUENCE IF NOT EXISTS {fleet}.turn_learning MINVALUE 0;
CREATE SEQUENCE IF NOT EXISTS {fleet}.turn_vectors MINVALUE 0;

-- The last turn that an urgent job of a project was given; see put_job.
CREATE TABLE IF NOT EXISTS {fleet}.urgent_turns (
  queue      TEXT NOT NULL,
  project    BIGINT NOT NULL,
  last_turn  BIGINT NOT NULL,
  PRIMARY KEY (queue, project)
);

CREATE INDEX IF NOT EXISTS smara_jobs_by_project ON {fleet}.procrastinate_jobs
  (queue_name, (args->'project'), priority) WHERE status = 'todo';
CREATE INDEX IF NOT EXISTS smara_jobs_by_lock ON {fleet}.procrastinate_jobs (lock);

-- A queue grows faster than the server counts its rows. Taking it for a small table, the planner would sort all waiting
-- jobs and compare each with all others to find the next one (3.6 s with 5,000); without a sort it walks them in order.
DO $$
DECLARE
  each RECORD;
BEGIN
  FOR each IN SELECT oid::regprocedure AS name FROM pg_proc
    WHERE pronamespace = '{fleet}'::regnamespace AND starts_with(proname, 'procrastinate_fetch_job')
      AND proconfig IS NULL
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET enable_sort TO off', each.name);
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION {fleet}.now_ms() RETURNS BIGINT LANGUAGE sql AS
  $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Projects take turns: the first waiting job of each has the turn that the queue has reached, the second the next one,
-- and so on. A project with ten thousand jobs thus keeps one with a single job waiting for one job of its own, and no
-- turn is overtaken for ever. An urgent job has eight turns of advance, of which each one of its project uses up one:
-- a project whose threads are urgent again as soon as they were observed gets its share from then on.
CREATE OR REPLACE FUNCTION {fleet}.put_job(
  in_queue TEXT, in_project BIGINT, in_key BIGINT, is_urgent BOOLEAN DEFAULT false,
  in_attempt BIGINT DEFAULT 0, in_seconds DOUBLE PRECISION DEFAULT 0
) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER SET search_path TO {fleet}, pg_temp AS $$
DECLARE
  name TEXT := in_queue || ':' || in_key;
  waiting RECORD;
  turn BIGINT;
  ahead BIGINT;
BEGIN
  EXECUTE format('SELECT last_value FROM turn_%s', in_queue) INTO turn;
  IF is_urgent THEN
    SELECT greatest(turn - 8, max(u.last_turn) + 1) INTO ahead FROM urgent_turns u
      WHERE u.queue = in_queue AND u.project = in_project;
  END IF;
  SELECT id, priority INTO waiting FROM procrastinate_jobs WHERE queueing_lock = name AND status = 'todo';
  IF FOUND THEN
    IF waiting.priority < -ahead THEN
      UPDATE procrastinate_jobs SET priority = -ahead WHERE id = waiting.id AND status = 'todo';
      PERFORM note_urgent_turn(in_queue, in_project, ahead);
    END IF;
    RETURN false;
  END IF;
  SELECT greatest(turn, 1 - min(priority)) INTO turn FROM procrastinate_jobs
    WHERE status = 'todo' AND queue_name = in_queue AND args->'project' = to_jsonb(in_project);
  IF ahead < turn THEN
    turn := ahead;
    PERFORM note_urgent_turn(in_queue, in_project, ahead);
  END IF;
  PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
    in_queue, in_queue, -turn, name, name,
    jsonb_build_object('project', in_project, 'key', in_key, 'attempt', in_attempt),
    CASE WHEN in_seconds > 0 THEN clock_timestamp() + make_interval(secs => in_seconds) END
  )::procrastinate_job_to_defer_v1]);
  RETURN true;
EXCEPTION WHEN unique_violation THEN  -- another session has just put the same one
  RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION {fleet}.note_urgent_turn(in_queue TEXT, in_project BIGINT, in_turn BIGINT) RETURNS void
LANGUAGE sql SET search_path TO {fleet}, pg_temp AS $$
  INSERT INTO urgent_turns AS u (queue, project, last_turn) VALUES (in_queue, in_project, in_turn)
    ON CONFLICT (queue, project) DO UPDATE SET last_turn = excluded.last_turn WHERE u.last_turn < excluded.last_turn
$$;

CREATE OR REPLACE FUNCTION {fleet}.turn_taken() RETURNS trigger LANGUAGE plpgsql
SET search_path TO {fleet}, pg_temp AS $$
DECLARE
  turn BIGINT;
BEGIN
  EXECUTE format('SELECT last_value FROM turn_%s', new.queue_name) INTO turn;
  IF -new.priority > turn THEN
    PERFORM setval('turn_' || new.queue_name, -new.priority);
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER smara_turn_taken AFTER UPDATE OF status ON {fleet}.procrastinate_jobs FOR EACH ROW
  WHEN (old.status = 'todo' AND new.status = 'doing' AND new.queue_name IN ('threads', 'learning', 'vectors'))
  EXECUTE FUNCTION {fleet}.turn_taken();

-- Put a thread's job if it is due now; note the time if it will be.
CREATE OR REPLACE FUNCTION {fleet}.look_at_thread(in_no BIGINT, in_now_ms BIGINT DEFAULT NULL) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO {fleet}, {store}, pg_temp AS $$
DECLARE
  rule rules;
  thread RECORD;
BEGIN
  SELECT * INTO rule FROM rules;
  SELECT t.project_no, t.updated_at, {pending} AS pending, {unbuffered} AS unbuffered INTO thread
    {from_threads} WHERE t.no = in_no AND t.kind <> 'compaction';
  IF thread.pending > 0 THEN
    IF thread.unbuffered >= rule.buffer_after_tokens
      OR thread.updated_at + rule.stale_after_ms <= coalesce(in_now_ms, now_ms())
    THEN
      RETURN put_job('threads', thread.project_no, in_no, thread.unbuffered >= rule.urgent_after_tokens);
    END IF;
    INSERT INTO timers (queue, key, due_at) VALUES ('threads', in_no, thread.updated_at + rule.stale_after_ms)
      ON CONFLICT DO NOTHING;
  END IF;
  RETURN false;
END
$$;

-- The same for the sessions of a project: they are learned from when they have ended, or fallen silent.
CREATE OR REPLACE FUNCTION {fleet}.look_at_sessions(in_project BIGINT, in_now_ms BIGINT DEFAULT NULL) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO {fleet}, {store}, pg_temp AS $$
DECLARE
  silent_after BIGINT;
  silent_at BIGINT;
BEGIN
  SELECT silent_after_ms INTO silent_after FROM rules;
  IF EXISTS (SELECT FROM behavior_sessions WHERE project_no = in_project AND state = 'ended') THEN
    RETURN put_job('learning', in_project, in_project);
  END IF;
  SELECT min(last_event_at) + silent_after INTO silent_at FROM behavior_sessions
    WHERE project_no = in_project AND state = 'open';
  IF silent_at <= coalesce(in_now_ms, now_ms()) THEN
    RETURN put_job('learning', in_project, in_project);
  ELSIF silent_at IS NOT NULL THEN
    INSERT INTO timers (queue, key, due_at) VALUES ('learning', in_project, silent_at) ON CONFLICT DO NOTHING;
  END IF;
  RETURN false;
END
$$;

-- The triggers put jobs at the end of the transaction that makes work due, so that both are there or neither. Trouble
-- with the queue must not cost a write: the sweep puts what is missing.
CREATE OR REPLACE FUNCTION {fleet}.put_due_job(in_queue TEXT, in_key BIGINT) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path TO {fleet}, {store}, pg_temp AS $$
BEGIN
  IF in_queue = 'threads' THEN
    PERFORM look_at_thread(in_key);
  ELSIF in_queue = 'learning' THEN
    PERFORM look_at_sessions(in_key);
  ELSIF EXISTS (SELECT FROM rules WHERE has_vectors) THEN
    PERFORM put_job('vectors', in_key, in_key);
  END IF;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'smara: no job was put: %', SQLERRM;
END
$$;
-- An import queues thousands of rows of one project in one transaction: only the first of them looks at the queue.
CREATE OR REPLACE FUNCTION {fleet}.work_is_due() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  key BIGINT := CASE WHEN TG_ARGV[0] = 'threads' THEN new.no ELSE new.project_no END;
BEGIN
  IF pg_catalog.current_setting('{fleet}.' || TG_ARGV[0], true) IS DISTINCT FROM key::text THEN
    PERFORM {fleet}.put_due_job(TG_ARGV[0], key);
    PERFORM pg_catalog.set_config('{fleet}.' || TG_ARGV[0], key::text, true);
  END IF;
  RETURN NULL;
END
$$;
DO $$
DECLARE
  each RECORD;
BEGIN
  FOR each IN SELECT * FROM (VALUES
    ('fleet_thread_added', 'threads', 'INSERT', 'new.tokens > 0', 'threads'),
    ('fleet_thread_grown', 'threads', 'UPDATE OF tokens', 'new.tokens > old.tokens', 'threads'),
    ('fleet_session_changed', 'behavior_sessions', 'INSERT OR UPDATE OF state, last_event_at',
     'new.state <> ''final''', 'learning'),
    ('fleet_record_queued', 'embedding_queue', 'INSERT', 'true', 'vectors')
  ) AS made (name, source, event, condition, queue) LOOP
    IF NOT EXISTS (
      SELECT FROM pg_trigger WHERE tgname = each.name AND tgrelid = format('{store}.%s', each.source)::regclass
    ) THEN
      EXECUTE format(
        'CREATE CONSTRAINT TRIGGER %s AFTER %s ON {store}.%s DEFERRABLE INITIALLY DEFERRED'
        ' FOR EACH ROW WHEN (%s) EXECUTE FUNCTION {fleet}.work_is_due(%L)',
        each.name, each.event, each.source, each.condition, each.queue);
    END IF;
  END LOOP;
END
$$;

-- Put what time has made due, take jobs away from workers that are gone, and, in full, put every job that is missing.
-- One at a time sweeps; the lock goes with its holder.
CREATE OR REPLACE FUNCTION {fleet}.sweep(in_now_ms BIGINT, gone_after_seconds DOUBLE PRECISION, is_full BOOLEAN)
RETURNS TABLE (put BIGINT, retried BIGINT) LANGUAGE plpgsql SET search_path TO {fleet}, {store}, pg_temp AS $$
DECLARE
  each RECORD;
  rule rules;
BEGIN
  put := 0;
  retried := 0;
  IF NOT pg_try_advisory_xact_lock(1397571923, hashtext('{fleet}')) THEN
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT * INTO rule FROM rules;
  FOR each IN
    SELECT job.id, EXISTS (
      SELECT FROM procrastinate_jobs o WHERE o.queueing_lock = job.queueing_lock AND o.status = 'todo') AS is_double
    FROM procrastinate_jobs job LEFT JOIN procrastinate_workers w ON w.id = job.worker_id
    WHERE job.status = 'doing'
      AND (w.id IS NULL OR w.last_heartbeat < clock_timestamp() - make_interval(secs => gone_after_seconds)
        -- A worker whose connection was cut at the wrong moment lives, and does not know of its job any more. If it
        -- does, leases keep the other one waiting.
        OR (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = job.id AND e.type = 'started')
          < clock_timestamp() - make_interval(secs => 20 * gone_after_seconds))
  LOOP
    IF each.is_double THEN
      PERFORM procrastinate_finish_job_v1(each.id, 'failed', true);
    ELSE
      PERFORM procrastinate_retry_job_v2(each.id, clock_timestamp(), NULL, NULL, NULL);
    END IF;
    retried := retried + 1;
  END LOOP;
  PERFORM procrastinate_prune_stalled_workers_v1(gone_after_seconds);
  FOR each IN
    DELETE FROM timers WHERE (queue, key) IN (
      SELECT queue, key FROM timers WHERE due_at <= in_now_ms ORDER BY due_at LIMIT 10000)
    RETURNING queue, key
  LOOP
    put := put + CASE WHEN each.queue = 'threads' THEN look_at_thread(each.key, in_now_ms)
      ELSE look_at_sessions(each.key, in_now_ms) END::int;
  END LOOP;
  IF is_full THEN
    FOR each IN SELECT t.no {from_threads} WHERE t.kind <> 'compaction' AND {pending} > 0
      AND NOT EXISTS (SELECT FROM procrastinate_jobs j WHERE j.lock = 'threads:' || t.no
        AND j.status IN ('todo', 'doing'))
    LOOP
      put := put + look_at_thread(each.no, in_now_ms)::int;
    END LOOP;
    FOR each IN SELECT p.no FROM projects p LOOP
      IF NOT EXISTS (SELECT FROM procrastinate_jobs j WHERE j.lock = 'learning:' || each.no
        AND j.status IN ('todo', 'doing'))
      THEN
        put := put + look_at_sessions(each.no, in_now_ms)::int;
      END IF;
      IF rule.has_vectors AND EXISTS (SELECT FROM embedding_queue q WHERE q.project_no = each.no)
        AND NOT EXISTS (SELECT FROM procrastinate_jobs j WHERE j.lock = 'vectors:' || each.no
        AND j.status IN ('todo', 'doing'))
      THEN
        put := put + put_job('vectors', each.no, each.no)::int;
      END IF;
    END LOOP;
  END IF;
  FOR each IN SELECT unnest(ARRAY['threads', 'learning', 'vectors']) AS queue LOOP
    IF NOT EXISTS (SELECT FROM procrastinate_jobs WHERE queue_name = each.queue AND status IN ('todo', 'doing')) THEN
      PERFORM setval('turn_' || each.queue, 0, false);
      DELETE FROM urgent_turns u WHERE u.queue = each.queue;
    END IF;
  END LOOP;
  RETURN NEXT;
END
$$;
