"""The former release works in a store to which a newer one has added something.

It opens the store (`smara.database.migrate`), and loses nothing there that it does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import smara
from smara.adapters.hosts.precompute import prepare_ahead
from smara.adapters.hosts.reply import choose
from smara.config import Settings
from smara.database.migrate import HEAD
from smara.doctor import examine
from smara.environment import spool_folder
from smara.errors import SchemaTooNewError
from smara.testing import FakeClock

DAY = 86_400
WORDS = "The quokka password phrase is zanzibar marmalade"
TABLE = "CREATE TABLE notes (no BIGINT PRIMARY KEY, project_no BIGINT NOT NULL, text TEXT)"
COLUMN = "ALTER TABLE threads ADD COLUMN mood TEXT"
INDEX = "CREATE INDEX threads_mood ON threads (created_at)"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def open_at(address: str, clock: FakeClock) -> smara.Memory:
    return smara.open(
        address, project="shop", clock=clock, embedder="off", retention={"messages_days": 1}
    )


def rows_of(database) -> dict[str, list[Any]]:
    names = ("messages", "threads", "words", "notes", "erasures", "tombstones", "projects")
    with database.read() as session:
        return {name: sorted(session.all(f"SELECT * FROM {name}"), key=repr) for name in names}


def add_step(database, step: str) -> None:
    """Take a step of a newer release that only adds something."""
    with database.write() as session:
        session.run(step)
        session.run(
            "INSERT INTO migrations (number, name, applied_at, opened_by) VALUES (?, 'new', 1, ?)",
            (HEAD + 1, HEAD),
        )
        if database.kind == "sqlite":
            session.run(f"PRAGMA user_version = {HEAD + 1}")


@pytest.fixture
def newer(address: str, clock: FakeClock, request: pytest.FixtureRequest):
    """A store with what was said, and with a step of a newer release."""
    memory = open_at(address, clock)
    memory.messages.add(thread_id="t", role="user", content=WORDS)
    memory.messages.add(thread_id="u", role="user", content="Something that stays")
    add_step(memory.internals.database, request.param)
    yield memory
    memory.close()


WITH_TABLE = pytest.mark.parametrize("newer", [TABLE], indirect=True)
WITH_COLUMN = pytest.mark.parametrize("newer", [COLUMN], indirect=True)
WITH_INDEX = pytest.mark.parametrize("newer", [INDEX], indirect=True)


@WITH_TABLE
def test_an_older_release_refuses_to_erase_in_tables_it_does_not_know(newer, address, clock):
    """1. The new table repeats what was said. 2. Every way to remove it is refused, and nothing is
    gone. 3. What works in the background leaves it, and goes on.
    """
    database, privacy = newer.internals.database, newer.privacy
    with database.write() as session:
        session.run("INSERT INTO notes SELECT 1, no, ? FROM projects", (WORDS,))
    clock.advance(9 * DAY)
    before = rows_of(database)
    for refused in (
        lambda: privacy.plan_erase(threads=["t"]),
        lambda: privacy.erase(threads=["t"]),
        lambda: privacy.erase(text=WORDS),
        lambda: privacy.erase(is_project=True),
        lambda: privacy.erase(is_everything=True),
        newer.retention.erase,
        privacy.finish_erase,
    ):
        with pytest.raises(SchemaTooNewError, match=r"notes.*pip install --upgrade") as caught:
            refused()
        assert (caught.value.found, caught.value.known) == (HEAD + 1, HEAD)
    assert newer.retention.run_due(is_patient=True) == 0
    assert rows_of(database) == before
    with database.write() as session:
        session.run(
            "INSERT INTO erasures (id, erased_at, actor, target, counts, outcome)"
            " VALUES ('e', 1, 'ann', 'threads', '{}', 'removed')"
        )
    findings = [each.text for each in examine(Settings(db=address, project="shop"), fix=True)]
    assert any("notes" in each and "--upgrade" in each for each in findings), findings


@WITH_TABLE
def test_words_in_a_table_that_is_not_known_are_a_trace(newer):
    """A newer release may make the table while an older one erases."""
    with newer.internals.database.write() as session:
        session.run("INSERT INTO notes SELECT 1, no, ? FROM projects", ("only a note says walrus",))
    assert "notes" in newer.privacy.scrub(["only a note says walrus"])


@WITH_COLUMN
def test_an_older_release_erases_in_the_tables_that_it_knows(newer, clock):
    receipt = newer.privacy.erase(threads=["t"])
    assert receipt.is_clean, receipt.traces
    clock.advance(9 * DAY)
    assert newer.retention.erase() == {"messages": 1}


@pytest.mark.parametrize("newer", [TABLE, COLUMN, INDEX], indirect=True, ids=str.split)
def test_an_older_release_restores_its_own_backup(newer, address, clock, tmp_path):
    report = newer.privacy.backup(tmp_path / "b")
    if report.kind == "sqlite":
        newer.messages.add(thread_id="t", role="user", content="later")
    newer.privacy.restore(tmp_path / "b")
    with open_at(address, clock) as again:
        assert [each.content for each in again.messages.list(thread_id="t")] == [WORDS]
        with again.internals.database.read() as session:
            assert session.one("SELECT max(number) FROM migrations") == (HEAD + 1,)


@pytest.mark.parametrize(
    ("newer", "name"), [(TABLE, "notes"), (COLUMN, "threads.mood")], indirect=["newer"]
)
def test_a_copy_that_would_leave_something_out_is_refused_with_the_way_to_do_it(
    newer, name, address, tmp_path
):
    with pytest.raises(SchemaTooNewError, match=f"{name}, .*pip install --upgrade"):
        smara.copy_store(address, tmp_path / "copy.db")


@WITH_INDEX
def test_a_newer_store_of_which_nothing_is_left_out_is_copied(newer, address, tmp_path, clock):
    assert smara.copy_store(address, tmp_path / "copy.db").tables["messages"].rows == 2
    with open_at(str(tmp_path / "copy.db"), clock) as copied:
        assert [each.content for each in copied.messages.list(thread_id="t")] == [WORDS]


def test_a_copy_into_a_newer_store_leaves_its_schema(address, open_database, clock, tmp_path):
    with open_at(str(tmp_path / "from.db"), clock) as source:
        source.messages.add(thread_id="t", role="user", content=WORDS)
    smara.open(address).close()
    database = open_database(address)
    with database.write() as session:
        session.run("DELETE FROM projects")
    add_step(database, TABLE)
    smara.copy_store(tmp_path / "from.db", address)
    with database.read() as session:
        assert session.one("SELECT max(number) FROM migrations") == (HEAD + 1,)
        if database.kind == "sqlite":
            assert session.one("PRAGMA user_version") == (HEAD + 1,)
    with open_at(address, clock) as target:
        assert [each.content for each in target.messages.list(thread_id="t")] == [WORDS]


def test_a_brief_is_prepared_in_a_newer_store_and_used(tmp_path, monkeypatch, clock):
    path, root = tmp_path / "smara.db", tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("SMARA_DB", str(path))
    monkeypatch.setenv("SMARA_PROJECT", "shop")
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    with open_at(str(path), clock) as memory:
        memory.memories.add("Count in cents", type="gotcha", files=["cart.py"], by="person")
        add_step(memory.internals.database, COLUMN)
    assert prepare_ahead(".", ["claude"])
    with open_at(str(path), clock) as memory:
        memory.messages.add(thread_id="t", role="user", content="the file has another stamp now")
    call = {"tool_name": "Read", "tool_input": {"file_path": "other.py"}}
    told = {"session_id": "s1", "cwd": str(Path.cwd()), **call}
    assert choose("claude", "PostToolUse", told, folder=spool_folder()) == []
