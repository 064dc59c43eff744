"""Tables of records of a former store are divided by project while they are in use.

The store has the schema of the last release before (46), rows of twenty projects in each table that
is divided, and rows in others that name them.
"""

from __future__ import annotations

import multiprocessing

import pytest

from smara.database.migrate import HEAD, migrate
from smara.database.partitions import DIVIDED, INDEXES, move_rows
from smara.errors import DatabaseError
from smara.testing import FakeClock
from tests.migrations.dump import schema_of
from tests.migrations.test_steps import fresh_schema_of, version_of
from tests.migrations.workers import die_at_statement
from tests.rows import insert

pytestmark = pytest.mark.postgres
FORMER = 46
PROJECTS = 20
ROWS = 6_000
"""So many of each: more than are copied at once."""
FORKED = multiprocessing.get_context("forkserver")
RECORDS = DIVIDED[len(INDEXES) :]
NAMING = ("commit_files", "memory_keys", "memory_relations", "decisions", "task_messages",
          "framework_entries")  # fmt: skip
_GROWN = {
    "messages": "'seq', m.seq + n, 'id', 'm' || n, 'client_id', 'c' || n",
    "commits": "'sha', 'sha' || n",
    "code_chunks": "'name', 'piece' || n",
    "observations": "'id', 'o' || n, 'text', 'noted ' || n",
    "memories": "'id', 'k' || n, 'key', 'key' || n, 'replaced_by_no', n",
}


def former_store(database):
    """Fill a store of the former schema."""
    migrate(database, FakeClock(), target=FORMER)
    with database.write() as session:
        for no in range(1, PROJECTS + 1):
            insert(database, session, "projects", no=no, id=f"p{no}", name=f"p{no}")
            mine = {"project_no": no, "no": no, "id": f"of{no}"}
            insert(database, session, "threads", **mine, metadata="{}", resource_id="ann")
            insert(database, session, "observation_records", **mine, scope="thread", lookup_key="t")
            insert(database, session, "tasks", **mine, status="open", key="a")
            insert(database, session, "framework_streams", **mine, thread_no=no)
            tree = {"project_no": no, "no": no}
            insert(database, session, "code_trees", **tree, root="/", state="ready")
            insert(database, session, "code_files", **tree, tree_no=no, path="a.py", hash=b"")
            row = {"project_no": no, "no": no}
            insert(database, session, "messages", **row, id=f"m-{no}", thread_no=no, role="user")
            insert(database, session, "commits", **row, sha=f"sha-{no}")
            insert(database, session, "code_chunks", **row, tree_no=no, file_no=no)
            insert(database, session, "observations", **row, id=f"o-{no}", record_no=no,
                   kind="observation", state="active", priority="low", thread_no=no)  # fmt: skip
            insert(database, session, "memories", **row, id=f"k-{no}", key=f"k-{no}",
                   visibility="project")  # fmt: skip
        for table, changes in _GROWN.items():
            session.run(
                f"INSERT INTO {table} SELECT (jsonb_populate_record(m, jsonb_build_object("
                f"'no', {PROJECTS} + n, {changes}))).* FROM generate_series(1, {ROWS}) AS n"
                f" JOIN {table} m ON m.no = 1 + (n - 1) % {PROJECTS} ORDER BY n"
            )
        for statement in (
            "INSERT INTO commit_files (project_no, path, commit_no)"
            " SELECT project_no, 'a.py', no FROM commits",
            "INSERT INTO memory_keys (project_no, kind, value, memory_no)"
            " SELECT project_no, 'file', 'a.py', no FROM memories",
            "INSERT INTO task_messages"
            " (project_no, task_no, message_no, relation, created_at, created_by)"
            " SELECT project_no, project_no, no, 'output', 0, 'ann' FROM messages WHERE no < 100",
        ):
            session.run(statement)
        for no in range(1, PROJECTS + 1):
            mine = {"project_no": no, "memory_no": no}
            insert(database, session, "memory_relations", **mine, target_no=no, type="validates")
            insert(database, session, "decisions", **mine, thread_no=no)
            insert(database, session, "framework_entries", project_no=no, id=f"e{no}",
                   stream_no=no, message_no=no)  # fmt: skip
        for table in ("messages", "commits", "observations", "memories"):
            last = f"pg_get_serial_sequence('{table}', 'no'), {PROJECTS + ROWS}"
            session.all(f"SELECT setval({last})")


def contents(database):
    """Every row of the tables, and of those that name their rows."""
    with database.read() as session:
        return {
            table: session.one(
                f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t"
            )
            for table in (*RECORDS, *NAMING)
        }


def go_on(database, step):
    """What processes of the former version do meanwhile: add, change and remove rows."""
    with database.write() as session:
        for table, name in (("commits", "subject"), ("messages", "raw_content"),
                            ("observations", "text"), ("memories", "content"),
                            ("code_chunks", "text")):  # fmt: skip
            for no in (30 + step, ROWS - step):  # at both ends: copied already, and not yet
                session.run(f"UPDATE {table} SET {name} = 'changed {step}' WHERE no = {no}")
        for no in (200 + step, ROWS - 200 - step):
            session.run("DELETE FROM observations WHERE no = ?", (no,))
            session.run("DELETE FROM commits WHERE no = ?", (no,))
        session.run(
            "INSERT INTO messages SELECT (jsonb_populate_record(m, jsonb_build_object('no',"
            " nextval(pg_get_serial_sequence('messages', 'no')), 'seq', 100000 + ?::int, 'id',"
            " 'new' || ?::int, 'client_id', null))).* FROM messages m WHERE no = 7",
            (step, step),
        )


def test_a_former_store_is_divided_whatever_ends_meanwhile(postgres_url, open_database, tmp_path):
    """1. A process is killed while it divides. 2. Everything is there as it was, under its name,
    and is written to. 3. The next process goes on, and is killed later. 4. The last one ends: not
    a row is missing, changed or doubled, and the schema is that of a new store.
    """
    database = open_database(postgres_url)
    former_store(database)
    versions = []
    for step, statement in enumerate((3, 12, 15, 40, 60)):
        before = contents(database)
        worker = FORKED.Process(target=die_at_statement, args=(postgres_url, statement))
        worker.start()
        worker.join(600)
        assert worker.exitcode == -9
        assert contents(database) == before
        versions.append(version_of(database))
        go_on(database, step)
    assert versions[0] == FORMER < versions[-1] < HEAD
    before = contents(database)
    migrate(database, FakeClock())
    assert contents(database) == before
    assert schema_of(database) == fresh_schema_of("postgres", open_database, tmp_path)
    with database.write() as session:
        for table in RECORDS:
            kind = "SELECT relkind::text FROM pg_class WHERE oid = ?::text::regclass"
            assert session.one(kind, (table,)) == ("p",)
        number = "SELECT nextval(pg_get_serial_sequence('messages', 'no')) > max(no) FROM messages"
        assert session.one(number) == (True,)


def test_rows_that_were_locked_when_their_batch_was_copied_are_not_lost(
    postgres_url, open_database
):
    database = open_database(postgres_url)
    former_store(database)
    before = contents(database)
    with open_database(postgres_url).write() as other:
        other.all("SELECT 1 FROM commits WHERE no < 50 FOR UPDATE")
        migrate(database, FakeClock(), target=47)
        move_rows(database, 48, lambda session: False)
        with database.read() as session:
            found = session.one("SELECT count(*) FROM commits_parts")
    assert found == (ROWS + PROJECTS - 49,)
    migrate(database, FakeClock())
    assert contents(database) == before


def test_a_table_that_lacks_rows_is_not_put_in_place(postgres_url, open_database):
    database = open_database(postgres_url)
    former_store(database)
    migrate(database, FakeClock(), target=47)
    before = contents(database)
    with database.write() as session:  # what cannot be: a row that the former table has not
        session.run(
            "INSERT INTO commits_parts SELECT (jsonb_populate_record(m,"
            ' \'{"no": 99999, "sha": "odd"}\')).* FROM commits m WHERE no = 1'
        )
    with pytest.raises(DatabaseError, match="nothing was changed"):
        migrate(database, FakeClock())
    assert version_of(database) == 47
    assert contents(database) == before
