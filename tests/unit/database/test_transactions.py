"""A write happens whole or not at all, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from smara.database.database import marks
from smara.errors import DatabaseError, DeadlineError, SmaraError


def insert(session, name):
    session.run("INSERT INTO projects (id, name, created_at) VALUES (?, ?, 1)", (name, name))


def names(database):
    with database.read() as session:
        return [row[0] for row in session.all("SELECT id FROM projects ORDER BY id")]


def test_a_write_that_ends_well_is_seen(database):
    with database.write() as session:
        insert(session, "a")
    assert names(database) == ["a"]


def test_a_write_that_fails_is_undone_and_its_error_comes_out(database):
    with pytest.raises(KeyError), database.write() as session:
        insert(session, "a")
        raise KeyError("in the middle")
    assert names(database) == []


def test_a_statement_that_fails_undoes_what_came_before_it(database):
    with pytest.raises(DatabaseError), database.write() as session:
        insert(session, "a")
        insert(session, "a")
    assert names(database) == []


def test_the_database_serves_on_after_a_failure(database):
    with pytest.raises(SmaraError), database.write() as session:
        session.run("SELECT * FROM nowhere")
    with database.write() as session:
        insert(session, "b")
    assert names(database) == ["b"]


def test_what_is_not_committed_is_not_seen_by_others(database):
    with database.write() as session:
        insert(session, "a")
        assert names(database) == []


def test_a_snapshot_sees_one_moment(database):
    with database.snapshot() as session:
        before = session.one("SELECT count(*) FROM projects")
        with database.write() as other:
            insert(other, "a")
        assert session.one("SELECT count(*) FROM projects") == before
    assert names(database) == ["a"]


def test_run_says_how_many_rows_it_changed(database):
    with database.write() as session:
        insert(session, "a")
        insert(session, "b")
        assert session.run("UPDATE projects SET name = ?", ("x",)) == 2
        assert session.run("UPDATE projects SET name = ? WHERE id = ?", ("x", "nobody")) == 0


def test_run_many_runs_once_for_each_row(database):
    with database.write() as session:
        session.run_many(
            "INSERT INTO projects (id, name, created_at) VALUES (?, ?, 1)",
            [(name, name) for name in "cab"],
        )
    assert names(database) == ["a", "b", "c"]


def test_one_gives_a_row_or_nothing(database):
    with database.read() as session:
        assert session.one("SELECT id FROM projects") is None
        assert session.one("SELECT 7, 'x'") == (7, "x")


def test_values_are_bound_and_never_read_as_sql(database):
    nasty = "'; DROP TABLE projects; -- %s ? $1 \\ é 会"
    with database.write() as session:
        insert(session, nasty)
    assert names(database) == [nasty]


def test_writers_in_many_threads_take_turns(database):
    def write(number):
        with database.write() as session:
            insert(session, f"p{number:03}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert len(names(database)) == 40


def test_a_read_past_its_deadline_is_stopped(database):
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    with (
        pytest.raises(DeadlineError, match="in time"),
        database.read(deadline_seconds=0.05) as session,
    ):
        session.one(endless)
    assert names(database) == []


def test_facts_say_what_the_database_is(database):
    facts = database.facts()
    assert facts["engine"] == database.kind
    assert facts["version"]
    assert facts["fileBytes"] > 0


def test_closing_twice_is_safe(database):
    database.close()
    database.close()


def test_marks_are_question_marks():
    assert (marks(3), marks(1), marks(0)) == ("?, ?, ?", "?", "")
