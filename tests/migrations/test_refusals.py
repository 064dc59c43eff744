"""What is not ours, or not yet ours, is refused politely and left as it is."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

import smara
from smara.config import Settings
from smara.database.migrate import HEAD, Migration, migrate
from smara.doctor import examine
from smara.errors import CannotOpenError, CorruptError, SchemaTooNewError
from smara.testing import FakeClock
from tests.migrations.dump import schema_of


def raise_version(database, opened_by=None):
    """What a newer Smara would have left behind."""
    with database.write() as session:
        session.run("CREATE TABLE dreams (no INTEGER PRIMARY KEY)")
        session.run(
            "INSERT INTO migrations (number, name, applied_at, opened_by)"
            " VALUES (?, 'dreams', 1, ?)",
            (HEAD + 1, opened_by),
        )
        if database.kind == "sqlite":
            session.run(f"PRAGMA user_version = {HEAD + 1}")


def test_an_older_program_refuses_a_newer_database_and_says_what_to_do(address, open_database):
    database = open_database(address)
    migrate(database, FakeClock())
    raise_version(database)
    before = schema_of(database)
    with pytest.raises(SchemaTooNewError, match="pip install --upgrade") as caught:
        smara.open(address)
    assert (caught.value.found, caught.value.known, caught.value.code) == (
        HEAD + 1,
        HEAD,
        "schema_too_new",
    )
    assert schema_of(database) == before


def test_a_newer_database_is_opened_if_its_steps_only_added_something(address, open_database):
    database = open_database(address)
    migrate(database, FakeClock())
    raise_version(database, opened_by=HEAD)
    with smara.open(address) as memory:
        memory.messages.add(thread_id="t", role="user", content="the former release goes on")
        assert memory.search("former release")[0].content == "the former release goes on"
    found = {each.check: each for each in examine(Settings(db=str(address)))}
    assert (found["schema"].level, "may use it" in found["schema"].text) == ("ok", True)
    with database.write() as session:
        session.run("UPDATE migrations SET opened_by = ?", (HEAD + 1,))
    with pytest.raises(SchemaTooNewError):
        smara.open(address)


def test_a_step_says_which_code_may_open_what_it_made():
    assert Migration(60, "x", "-- Opened by schema 58 and later.\nSELECT 1;").opened_by == 58
    assert Migration(60, "x", "SELECT 1;\n-- Opened by schema 58 and later.\n").opened_by == 60


def test_a_newer_file_is_not_touched_by_a_byte(tmp_path, open_database):
    path = tmp_path / "smara.db"
    with smara.open(path) as memory:
        memory.messages.add(thread_id="t", role="user", content="hello")
        raise_version(memory._rooms.database)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(SchemaTooNewError):
        smara.open(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    "mark", ["PRAGMA application_id = 12345", "PRAGMA user_version = 3", "SELECT 1"]
)
def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path, mark):
    path = tmp_path / "browser.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.execute(mark)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CannotOpenError, match="another program"):
        smara.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, only a few notes about one\n" * 50)
    with pytest.raises((CorruptError, CannotOpenError), match="another path"):
        smara.open(path)
    assert path.read_text().startswith("not a database")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(CannotOpenError, match="folder"):
        smara.open(tmp_path)


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "smara.db"
    path.touch()
    with smara.open(path) as memory:
        assert memory.threads.list() == []
