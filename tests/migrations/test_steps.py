"""Numbered steps: the same for both databases, and fresh equals migrated."""

from __future__ import annotations

import hashlib
import json
import zlib

import pytest

import smara
from smara.behavior.ledger import Entry
from smara.database.fulltext import Within, no_of
from smara.database.migrate import HEAD, migrate, migrations, schema_version
from smara.database.vectors import Shelf
from smara.testing import FakeClock
from tests import postgres
from tests.migrations.dump import schema_of
from tests.rows import insert

CLOCK = FakeClock()


def version_of(database):
    with database.read() as session:
        return schema_version(database, session)


def test_both_databases_have_steps_of_the_same_numbers_and_names():
    steps = {
        kind: [(step.number, step.name) for step in migrations(kind)]
        for kind in ("sqlite", "postgres")
    }
    assert steps["sqlite"] == steps["postgres"]


def test_steps_are_numbered_from_one_without_gaps_up_to_the_head():
    assert [step.number for step in migrations("sqlite")] == list(range(1, HEAD + 1))


def test_no_step_is_empty():
    assert all(step.sql.strip() for kind in ("sqlite", "postgres") for step in migrations(kind))


def test_a_new_database_is_brought_to_the_head_once(address, open_database):
    database = open_database(address)
    assert version_of(database) == 0
    assert migrate(database, CLOCK) == HEAD
    assert migrate(database, CLOCK) == 0
    assert version_of(database) == HEAD


def test_every_step_taken_is_written_down_with_its_time(address, open_database):
    database = open_database(address)
    migrate(database, CLOCK)
    with database.read() as session:
        rows = session.all("SELECT number, name, applied_at FROM migrations ORDER BY number")
    assert rows == [(step.number, step.name, CLOCK.now_ms()) for step in migrations(database.kind)]


@pytest.mark.parametrize("start", range(1, HEAD))
def test_fresh_equals_migrated_from_every_version_with_data_inside(
    address, open_database, tmp_path, start
):
    database = open_database(address)
    migrate(database, CLOCK, target=start)
    put_a_thread_inside(database)
    assert version_of(database) == start
    assert migrate(database, CLOCK) == HEAD - start
    assert thread_inside(database) == [("t", "user", "hello")]
    assert schema_of(database) == fresh_schema_of(database.kind, open_database, tmp_path)


def test_one_step_at_a_time_ends_where_all_at_once_does(address, open_database, tmp_path):
    database = open_database(address)
    for target in range(1, HEAD + 1):
        assert migrate(database, CLOCK, target=target) == 1
    assert schema_of(database) == fresh_schema_of(database.kind, open_database, tmp_path)


def test_a_database_migrated_from_the_first_version_is_found_by_search(address, open_database):
    database = open_database(address)
    migrate(database, CLOCK, target=1)
    put_a_thread_inside(database)
    database.close()
    with smara.open(address) as memory:
        assert [message.raw_content for message in memory.messages.list(thread_id="t")] == ["hello"]
        memory.messages.add(thread_id="t", role="user", content="the walrus")
        assert memory.search("walrus")[0].seq == 2
        assert memory.search("hello")[0].seq == 1


def test_a_session_that_was_under_way_is_watched_on(address, open_database):
    """Scratchpads of before they were kept change by change."""
    database = open_database(address)
    migrate(database, CLOCK, target=19)
    put_a_thread_inside(database)
    facts = {"events": 41, "failures": 3, "started": 1_767_600_000_000}
    pad = zlib.compress(
        json.dumps({"v": 1, "facts": facts, "ledgers": {"worked": {"make": {"n": 2}}}}).encode()
    )
    with database.write() as session:
        insert(
            database,
            session,
            "behavior_sessions",
            no=1,
            project_no=1,
            session_id="s",
            state="open",
            version=1,
        )
        insert(database, session, "behavior_pads", session_no=1, part="", project_no=1, pad=pad)
    database.close()
    with smara.open(address, embedder="off") as memory:
        memory.behavior.observe_batch(
            [smara.HostEvent("claude", "prompt", "s", 1_767_600_100_000, prompt="go", key="k")]
        )
        [found] = memory.behavior.pads("s")
        assert (found.facts.events, found.facts.failures) == (42, 3)
        assert dict(found.worked) == {"make": Entry(2)}


def test_an_event_that_was_ingested_before_the_keys_were_one_table_stays_known(
    address, open_database
):
    database = open_database(address)
    migrate(database, CLOCK, target=21)
    put_a_thread_inside(database)
    event = smara.HostEvent("claude", "prompt", "s", 1_767_600_100_000, prompt="go", key="k")
    key = hashlib.blake2b(event.key.encode(), digest_size=16).digest()
    with database.write() as session:
        row = {"no": 1, "project_no": 1, "session_id": "s", "state": "open", "version": 1}
        insert(database, session, "behavior_sessions", **row)
        insert(database, session, "behavior_seen", session_no=1, key=key, project_no=1)
    database.close()
    with smara.open(address, embedder="off") as memory:
        assert memory.behavior.observe_batch([event]).known == 1
        assert memory.internals.intake.fresh([event]) == []


@pytest.mark.postgres
def test_text_indexes_are_divided_by_project_and_an_interrupted_move_goes_on(
    postgres_url, open_database
):
    database = open_database(postgres_url)
    migrate(database, CLOCK, target=40)
    put_a_thread_inside(database)
    with database.write() as session:
        session.run(
            "INSERT INTO message_index SELECT n, 0, 1 + n % 2, 1, 'default', 'user', 'log in', '',"
            " array_to_tsvector('{log,in}') FROM generate_series(1, 6) AS n"
        )
        session.run("INSERT INTO words (project_no, word, trigrams) VALUES (1, 'log', '{log}')")
    assert migrate(database, CLOCK, target=41) == 1
    with database.write() as session:  # a process that ended after a first part
        session.run(
            "WITH moved AS (DELETE FROM message_index_whole WHERE no < 3 RETURNING *)"
            " INSERT INTO message_index SELECT no, chunk, project_no, thread_no, resource, role,"
            " prose, code, array_to_tsvector(terms_of_project(project_no, '{log,in}')) FROM moved"
        )
    assert migrate(database, CLOCK) == HEAD - 41
    with database.read() as session:
        found = [
            [no_of(row) for row in database.fulltext.match(session, ["log"], Within(no), 9)]
            for no in (1, 2)
        ]
        assert found == [[6, 4, 2], [5, 3, 1]]
        assert database.words.containing(session, 1, "log", 5) == ["log"]
        assert not any(name.endswith("_whole") for name in database.tables(session))


@pytest.mark.postgres
def test_vectors_are_divided_by_project_and_an_interrupted_move_goes_on(
    postgres_url, open_database
):
    """What is removed while they are moved does not come back."""
    database = open_database(postgres_url)
    migrate(database, CLOCK, target=43)
    put_a_thread_inside(database)
    with database.write() as session:
        space = {"no": 1, "model_id": "m", "dims": 1, "embedder": "e", "created_at": 0}
        insert(database, session, "vector_spaces", **space)
        insert(database, session, "projects", no=2, id="other", name="other")
        for no in (1, 2):
            insert(database, session, "vector_shelves", no=no, project_no=no, space_no=1, kind=1)
        session.run(
            "INSERT INTO vectors SELECT (s::bigint << 47) + (n << 16), decode('01', 'hex')"
            " FROM generate_series(1, 2) AS s, generate_series(1, 3) AS n"
        )
    assert migrate(database, CLOCK, target=44) == 1
    with database.write() as session:  # a process that ended after a first part
        session.run(
            "WITH moved AS (DELETE FROM vectors_whole WHERE no >> 47 = 2 RETURNING *)"
            " INSERT INTO vectors SELECT no, 2, vector FROM moved"
        )
        session.run("DELETE FROM messages WHERE no = 1")
    assert migrate(database, CLOCK) == HEAD - 44
    with database.read() as session:
        found = [
            database.vectors.scan(session, Shelf(no, 1, no, kind="message"))[0] >> 16
            for no in (1, 2)
        ]
        assert [rows.tolist() for rows in found] == [[2, 3], [1, 2, 3]]
        assert not any(name.endswith("_whole") for name in database.tables(session))


def put_a_thread_inside(database):
    with database.write() as session:
        insert(database, session, "projects", no=1, id="default", name="default")
        insert(
            database,
            session,
            "threads",
            no=1,
            project_no=1,
            id="t",
            resource_id="default",
            metadata="{}",
            last_seq=1,
        )
        insert(
            database,
            session,
            "messages",
            no=1,
            project_no=1,
            thread_no=1,
            seq=1,
            id="m1",
            role="user",
            raw_content="hello",
        )
        if database.kind == "postgres":
            for table in ("projects", "threads", "messages"):
                session.one(f"SELECT setval(pg_get_serial_sequence('{table}', 'no'), 1)")


def thread_inside(database):
    with database.read() as session:
        return session.all(
            "SELECT t.id, m.role, m.raw_content FROM messages m JOIN threads t ON t.no = "
            "m.thread_no"
        )


def fresh_schema_of(kind, open_database, tmp_path):
    if kind == "sqlite":
        fresh = open_database(str(tmp_path / "fresh.db"))
        migrate(fresh, CLOCK)
        return schema_of(fresh)
    with postgres.fresh_schema() as url:
        fresh = open_database(url)
        migrate(fresh, CLOCK)
        found = schema_of(fresh)
        fresh.close()
        return found
