"""PostgreSQL: the URL, the schema, and errors that say what to do."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import smara
from smara.database.postgres import PostgresDatabase
from smara.database.servers import (
    split_schema,
    with_dollar_marks,
    without_password,
)
from smara.errors import CannotOpenError, ConnectionLostError, InvalidInputError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://localhost/app", ("postgresql://localhost/app", "smara")),
        ("postgresql://localhost/app?schema=agents", ("postgresql://localhost/app", "agents")),
        ("postgresql:///app?host=/tmp&schema=a_1", ("postgresql:///app?host=/tmp", "a_1")),
        ("postgresql://h/d?options=-c%20a%3Db", ("postgresql://h/d?options=-c%20a%3Db", "smara")),
        ("postgresql://h/d?password=a+b", ("postgresql://h/d?password=a+b", "smara")),
    ],
)
def test_the_schema_is_taken_out_of_the_url(url, expected):
    assert split_schema(url) == expected


@pytest.mark.parametrize("schema", ["a-b", "A", "1a", "a;drop", 'a"b', "", "x" * 64])
def test_a_schema_that_is_no_name_is_refused(schema):
    with pytest.raises(InvalidInputError, match="schema"):
        split_schema(f"postgresql://localhost/app?schema={schema}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://ann:p@ss:w@host/db", "postgresql://ann:***@host/db"),
        (
            "postgresql://host/db?user=ann&password=secret",
            "postgresql://host/db?user=ann&password=***",
        ),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ?", "SELECT %s"),
        ("SELECT '%', ?", "SELECT '%%', %s"),
        ("SELECT 1", "SELECT 1"),
        ("SELECT '100%'", "SELECT '100%'"),
    ],
)
def test_question_marks_become_what_psycopg_reads(sql, expected):
    assert with_dollar_marks(sql) == expected


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path):
    with pytest.raises(CannotOpenError, match="Check the server") as caught:
        PostgresDatabase(f"postgresql://ann:s3cret@/db?host={tmp_path}")
    assert "s3cret" not in str(caught.value) + repr(caught.value.facts)


@pytest.mark.postgres
def test_everything_lives_in_a_schema_of_its_own(postgres_url):
    import psycopg

    import smara

    with (
        smara.open(postgres_url) as memory,
        psycopg.connect(memory._rooms.database.conninfo, autocommit=True) as connection,
    ):
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = %s", (memory._rooms.database.schema,)
        ).fetchone()
        public = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert tables[0] >= 6
    assert public == (0,)


@pytest.mark.postgres
def test_two_schemas_of_one_server_do_not_see_each_other(postgres_url):
    import smara
    from tests.postgres import fresh_schema

    with (
        fresh_schema() as other_url,
        smara.open(postgres_url) as one,
        smara.open(other_url) as other,
    ):
        one.messages.add(thread_id="t", role="user", content="the walrus")
        assert list(other.search("walrus")) == []


@pytest.mark.postgres
def test_a_closed_database_says_so(postgres_url):
    database = PostgresDatabase(postgres_url)
    database.close()
    with pytest.raises(CannotOpenError, match="closed"), database.read():
        pass


@pytest.fixture
def lost(postgres_url):
    """A URL whose connections a function ends, as a restart or an idle timeout does."""
    import psycopg

    conninfo, name = split_schema(postgres_url)

    def end_all():
        with psycopg.connect(conninfo) as connection:
            return connection.execute(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 10000))"
                " FROM pg_stat_activity WHERE application_name = %s",
                (name,),
            ).fetchone()[0]

    return f"{postgres_url}&application_name={name}", end_all


@pytest.mark.postgres
def test_calls_after_a_restart_of_the_server_are_answered_and_stored_once(lost):
    url, end_all = lost
    with smara.open(url, token_model="estimate") as memory:
        memory.messages.add(thread_id="t", role="user", content="before")
        with ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(memory._rooms.database.read())
        for act in range(4):
            assert end_all() > (4 if act == 0 else 0)
            memory.messages.add(thread_id="t", role="user", content=f"after {act}")
            end_all()
            assert len(memory.messages.list(thread_id="t")) == act + 2


@pytest.mark.postgres
@pytest.mark.parametrize("mode", ["read", "snapshot", "write"])
def test_a_connection_lost_in_the_middle_may_be_tried_again_and_stored_nothing(lost, mode):
    url, end_all = lost
    database = PostgresDatabase(url)
    with database.write() as session:
        session.run("CREATE TABLE t (x integer)")
    with pytest.raises(ConnectionLostError) as caught, getattr(database, mode)() as session:
        session.all("SELECT x FROM t")
        if mode == "write":
            session.run("INSERT INTO t VALUES (1)")
        end_all()
        session.all("SELECT x FROM t")
    assert caught.value.is_retryable
    with database.write() as session:
        session.run("INSERT INTO t VALUES (2)")
    with database.read() as session:
        assert session.all("SELECT x FROM t") == [(2,)]
    database.close()
