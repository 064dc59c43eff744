"""PostgreSQL reads no large table from end to end for what is done every day.

The server counts the rows that scans read: whatever statement a call runs, and whatever the
planner makes of it, a scan of a large table is seen.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import smara
from smara.database.fulltext import Within
from smara.database.partitions import DIVIDED
from smara.database.servers import PostgresSession, split_schema, with_dollar_marks

pytestmark = pytest.mark.postgres

MANY = 20_000
FEW = 100
"""What is there at all is asked by reading a row or two."""
_GROW = (
    """INSERT INTO messages SELECT (jsonb_populate_record(m, jsonb_build_object('no', m.no + n,
      'seq', m.seq + n, 'id', 'm' || n, 'client_id', 'c' || n))).*
      FROM messages m, generate_series(1, {many}) AS n""",
    "UPDATE threads SET last_seq = last_seq + {many}",
    """INSERT INTO message_index SELECT i.no + n, 0, project_no, thread_no, resource, role,
      'quick' || n % 10 || ' word' || n % 5000, repeat(md5(n::text), 30),
      array_to_tsvector(ARRAY[project_no || ':quick' || n % 10, project_no || ':word' || n % 5000])
      FROM message_index i, generate_series(1, {many}) AS n""",
    """INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object('no', t.no + n,
      'id', 't' || n, 'short_id', 'sm-' || n, 'key', 'sm-' || n, 'bare_key', n::text,
      'priority', n % 5))).* FROM tasks t, generate_series(1, {many}) AS n""",
    """INSERT INTO record_index SELECT i.kind, i.no + n, 0, i.project_no, 'title' || n % 5000, '',
      array_to_tsvector(ARRAY[i.project_no || ':title' || n % 5000]) FROM record_index i,
      generate_series(1, {many}) AS n""",
    """INSERT INTO task_dependencies SELECT (jsonb_populate_record(NULL::task_dependencies,
      jsonb_build_object('project_no', t.project_no, 'task_no', t.no,
      'depends_on_no', t.no - s * 7, 'type', (ARRAY['blocks', 'blocks', 'related'])[s],
      'created_at', 0))).* FROM tasks t, generate_series(1, 3) AS s WHERE t.no > 100""",
    "UPDATE tasks SET status = 'closed', closed_at = 1 WHERE no % 2 = 0",
    "SELECT setval(pg_get_serial_sequence(t, 'no'), 2 * {many}) FROM unnest("
    "ARRAY['messages', 'tasks']) AS t",
    "ANALYZE",
)


@pytest.fixture(scope="module")
def large():
    """A store of many messages and tasks, of which most wait for another."""
    from tests.postgres import fresh_schema

    with fresh_schema() as url:
        with smara.open(url, embedder="off", project="large") as memory:
            memory.messages.add(thread_id="t", role="user", content="begin", client_id="c")
            memory.tasks.add("Begin")
            with memory.internals.database.write() as session:
                for statement in _GROW:
                    session.run(statement.format(many=MANY))
        yield url


def _scans(url: str) -> dict[str, int]:
    """The rows that scans read so far of each large table, of all its parts together."""
    import psycopg

    conninfo, schema = split_schema(url)
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(
            "SELECT coalesce(w.relname, c.relname), sum(s.seq_tup_read)::int"
            " FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid AND c.relkind = 'r'"
            " LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
            " LEFT JOIN pg_class w ON w.oid = i.inhparent WHERE s.schemaname = %s"
            " GROUP BY 1 HAVING sum(greatest(c.reltuples, 0)) >= %s",
            (schema, MANY),
        ).fetchall()
    return dict(rows)


def _claim_and_release(memory: smara.Memory) -> None:
    task = memory.tasks.claim(memory.tasks.ready(limit=1)[0].id, session_id="s")
    memory.tasks.release(task.id, session_id="s")


EVERYDAY = {
    "append": lambda memory: memory.messages.add(thread_id="t", role="user", content="word77"),
    "append with a client id": lambda memory: memory.messages.add(
        thread_id="t", role="user", content="once", client_id="again"
    ),
    "the newest messages": lambda memory: memory.messages.list(thread_id="t", limit=20),
    "search of a name": lambda memory: memory.search("word123"),
    "search of a question": lambda memory: memory.search("which quick3 word456 was it"),
    "search of tasks": lambda memory: memory.search_tasks("title123"),
    "add a task": lambda memory: memory.tasks.add("Another"),
    "ready": lambda memory: memory.tasks.ready(),
    "claim and release": _claim_and_release,
    "list of tasks": lambda memory: memory.tasks.list(status="open", limit=20),
    "get of a task": lambda memory: memory.tasks.get(memory.tasks.list(limit=1)[0].id),
    "start of a session": lambda memory: memory.moments.start(session_id="s"),
}


@pytest.mark.parametrize("what", EVERYDAY)
def test_an_everyday_call_reads_no_large_table_from_end_to_end(large, what):
    with smara.open(large, embedder="off", project="large") as memory:
        EVERYDAY[what](memory)  # opening, and what is prepared once, is not the subject
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
    before = _scans(large)
    assert {"messages", "message_index", "tasks", "task_dependencies"} <= set(before)
    with smara.open(large, embedder="off", project="large") as memory:
        EVERYDAY[what](memory)
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
    after = _scans(large)
    assert {table: rows for table in before if (rows := after[table] - before[table]) > FEW} == {}


def _counted(memory: smara.Memory) -> int:
    """The rows that were read so far, by scans and through indexes."""
    with memory.internals.database.read() as session:
        session.one("SELECT pg_stat_force_next_flush()")
    with memory.internals.database.read() as session:
        row = session.one(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_user_tables"
            " WHERE schemaname = current_schema()"
        )
    return int(row[0]) if row else 0


@pytest.mark.parametrize("what", EVERYDAY)
def test_a_call_that_was_made_often_reads_as_little_as_the_first(large, what):
    """A statement that is prepared is planned without its values after some calls."""
    read = []
    with smara.open(large, embedder="off", project="large") as memory:
        for _ in range(16):
            before = _counted(memory)
            EVERYDAY[what](memory)
            read.append(_counted(memory) - before)
    # What others have read may be counted late, within one of the calls.
    assert min(read[-3:]) <= 2 * min(read[2:5]) + FEW


def _index_entries(memory: smara.Memory) -> int:
    """The entries of indexes of terms and words that were read so far."""
    with memory.internals.database.read() as session:
        row = session.one(
            "SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes"
            " WHERE schemaname = current_schema() AND relname ~ '^(message_index|words)_'"
        )
    return int(row[0]) if row else 0


def test_a_common_term_is_looked_up_without_the_other_rows_of_its_project(large):
    """The server would expect the project to be small, and intersect all its rows."""
    with smara.open(large, embedder="off", project="large") as memory:
        database = memory.internals.database
        with database.write() as session:
            project_no = session.one("SELECT no FROM projects WHERE id = 'large'")[0]
            session.run(
                "INSERT INTO words SELECT ?, 'name' || n, ARRAY[? || ':' || n % 200]"
                f" FROM generate_series(1, {MANY}) AS n ON CONFLICT DO NOTHING",
                (project_no, str(project_no)),
            )
            session.run("ANALYZE words")
            session.one("SELECT pg_stat_force_next_flush()")
        before = _index_entries(memory)
        with database.read() as session:
            assert database.fulltext.match(session, ["quick3"], Within(project_no), limit=5_000)
            assert database.words.containing(session, project_no, "150", limit=8)
            session.one("SELECT pg_stat_force_next_flush()")  # of this connection of the pool
        read = _index_entries(memory) - before
    assert 0 < read <= MANY // 10 + 2 * FEW


SMALL = {
    "plan to erase it": lambda memory: memory.privacy.plan_erase(is_project=True),
    "embed it": lambda memory: memory.embeddings.embed_pending(),
}


@pytest.mark.parametrize("what", SMALL)
def test_a_small_project_beside_a_large_one_reads_its_own_messages(large, what):
    from smara.testing import HashEmbedder

    settings = {"embedding_model": HashEmbedder(), "embed_in_background": False}
    with smara.open(large, project="small", **settings) as memory:
        memory.messages.add(thread_id="t", role="user", content="alone")
        SMALL[what](memory)
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
    before = _scans(large)
    with smara.open(large, project="small", **settings) as memory:
        SMALL[what](memory)
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
    assert _scans(large)["messages"] - before["messages"] <= FEW


def _fetched(url: str) -> int:
    """The rows of messages that were fetched through indexes so far."""
    import psycopg

    conninfo, schema = split_schema(url)
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(
            "SELECT sum(idx_tup_fetch)::int FROM pg_stat_user_tables"
            " WHERE schemaname = %s AND relname LIKE 'messages%%'",
            (schema,),
        ).fetchone()
    return int(row[0]) if row else 0


def _beside(memory: smara.Memory, name: str) -> smara.Memory:
    """A new project in the part of a project."""
    part = (
        "SELECT k FROM projects p, generate_series(0, 15) AS k WHERE p.id = ?"
        " AND satisfies_hash_partition('messages'::regclass, 16, k, p.no)"
    )
    for number in range(200):
        other = memory.in_project(f"beside-{number}")
        with memory.internals.database.read() as session:
            if session.one(part, (f"beside-{number}",)) == session.one(part, (name,)):
                return other
    raise AssertionError("none of 200 projects is in that part")


def test_a_project_that_the_server_has_not_counted_yet_is_read_by_its_keys(large):
    """The planner takes such a project for one of a single row, and every index for as good."""
    with smara.open(large, embedder="off", project="large") as memory:
        new = _beside(memory, "large")
        texts = [f"the quick release of step{number} is late" for number in range(300)]
        new.messages.add_many(
            thread_id="t", messages=[{"role": "user", "content": text} for text in texts]
        )
        question = "which release was late"
        assert new.search(question)
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
        before = _fetched(large)
        new.search(question)
        with memory.internals.database.read() as session:
            session.one("SELECT pg_stat_force_next_flush()")
    assert _fetched(large) - before < 20 * len(texts), "not every pair of its messages"


_COUNTED = (
    "SELECT tablename FROM pg_stats WHERE schemaname = current_schema() AND attname = 'project_no'"
    " AND (tablename LIKE 'messages%' OR tablename LIKE 'words%')"
)


def test_a_store_of_before_forgets_what_the_server_had_counted():
    from smara.config import Settings
    from smara.core.clock import SystemClock
    from smara.database.migrate import migrate
    from smara.memory import open_database
    from tests.postgres import fresh_schema

    with fresh_schema() as url:
        database = open_database(Settings(db=url))
        migrate(database, SystemClock(), target=56)
        with database.write() as session:
            session.run("INSERT INTO projects (id, name, created_at) VALUES ('p', 'p', 1)")
            session.run(
                "INSERT INTO words (project_no, word, trigrams)"
                " SELECT 1, 'word' || n, ARRAY['1:wor'] FROM generate_series(1, 300) AS n"
            )
            session.run("ANALYZE")
            assert session.all(_COUNTED)
        migrate(database, SystemClock())
        with database.write() as session:
            session.run("ANALYZE")
            assert session.all(_COUNTED) == []
        database.close()


_PART = re.compile(rf" on ({'|'.join(DIVIDED)})_(\d+)\b")


def _watch(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Statements from now on that look into several parts of a table, with those they look into."""
    found: dict[str, set[str]] = {}

    def watched(name: str) -> Any:
        ask = getattr(PostgresSession, name)

        def watching(session: PostgresSession, sql: str, values: Any = ()) -> Any:
            rows: Any = values if name != "run_many" else list(values)
            if rows != [] and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", sql):
                given = (rows[0] if name == "run_many" else rows) or None
                statement = f"EXPLAIN {with_dollar_marks(sql)}"
                plan = str(session.connection.execute(statement, given).fetchall())
                parts = set(_PART.findall(plan))
                if len(parts) > len({table for table, _ in parts}):
                    found[sql] = {f"{table}_{number}" for table, number in parts}
            return ask(session, sql, rows)

        return watching

    for name in ("run", "run_many", "all", "one", "each"):
        monkeypatch.setattr(PostgresSession, name, watched(name))
    return found


def _remember(memory: smara.Memory) -> None:
    texts = ("Deploys go through staging", "The uploader retries five times")
    added = [memory.memories.add(each, type="gotcha", session_id="s").memory for each in texts]
    names = [each.id for each in added if each is not None]
    memory.memories.supersede(*names)
    memory.memories.list(limit=5)
    memory.memories.get(names[1])


def _link(memory: smara.Memory) -> None:
    said = memory.messages.add(thread_id="t", role="user", content="about a task")
    task = memory.tasks.add("Linked")
    memory.links.add(task.id, said.id)
    memory.links.messages(task.id)


NAMING = {
    **EVERYDAY,
    "memories": _remember,
    "links of a task": _link,
    "observe": lambda memory: memory.observations.observe("t"),
    "what happened": lambda memory: memory.feed.list(limit=50),
    "plan to erase a message": lambda memory: memory.privacy.plan_erase(
        messages=[memory.messages.list(thread_id="t", limit=1)[0].id]
    ),
}


@pytest.mark.parametrize("what", NAMING)
def test_every_statement_of_an_everyday_call_looks_into_one_part(large, what, monkeypatch):
    """Whoever does not name the project has sixteen parts planned, locked and looked into."""
    with smara.open(large, embedder="off", project="large") as memory:
        EVERYDAY["search of a name"](memory)  # opening looks whether an index is empty
        found = _watch(monkeypatch)
        NAMING[what](memory)
    assert found == {}
