"""The files of both databases hold nothing of what was erased."""

from __future__ import annotations

import json

import psycopg
import pytest

from smara.database.servers import split_schema
from smara.testing import HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.test_erasing import CANARY, say, talk
from tests.stores import files_of

pytestmark = EACH_DATABASE
LONG = " ".join(f"word{number} of {CANARY}" for number in range(2_000))
"""Long enough for TOAST, which keeps it apart from its row."""


@pytest.fixture
def memory(place):
    return place.open(project="shop", embedding_model=HashEmbedder(), embedder="hash")


@pytest.fixture
def spool(monkeypatch, tmp_path):
    folder = tmp_path / "x.db-spool"
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "x.db"))
    for name in ("briefs", "told", "unreadable"):
        (folder / name).mkdir(parents=True)
    return folder


def files_with(memory, words: bytes) -> list[str]:
    """Return the files of the database, without a server's log, that hold words."""
    found = []
    for path in files_of(memory.internals.database):
        try:
            content = path.read_bytes().lower() if path.is_file() else b""
        except FileNotFoundError:
            continue
        found += [str(path)] * (words in content)
    return found


def test_no_file_holds_a_window_of_what_was_erased(memory):
    """Rows, long values, indexes, statistics of columns and vectors' indexes are written again."""
    talk(memory)
    for number in range(30):
        say(memory, f"{LONG} {number}", f"long{number}")
        say(memory, f"Plain words {number} about rivers", "plain")
    if memory.internals.database.kind == "postgres":
        with memory.internals.database.read() as session:
            session.run("ANALYZE")
    before = files_with(memory, CANARY.encode())
    assert before
    receipt = memory.privacy.erase(text=CANARY)
    assert receipt.is_clean, receipt.traces
    windows = {CANARY[at : at + 12].encode() for at in range(len(CANARY) - 11)}
    assert [files_with(memory, window) for window in sorted(windows)] == [[]] * len(windows)
    assert memory.search("plain words rivers").hits


def test_probe_finds_what_is_left_in_a_file(memory, monkeypatch):
    """Without the rewriting the bytes are there, and the receipt says so."""
    first, _ = talk(memory)
    database = memory.internals.database
    with database.read() as session:
        session.run(
            "PRAGMA wal_checkpoint(TRUNCATE)" if database.kind == "sqlite" else "CHECKPOINT"
        )
    monkeypatch.setattr(type(database), "vacuum", lambda self, projects: None)
    monkeypatch.setattr(type(database), "shrink_log", lambda self: True)
    receipt = memory.privacy.erase(messages=[first.id])
    assert receipt.traces
    assert not receipt.is_clean


def test_who_is_in_the_way_is_named_and_the_erase_is_finished_later(place, memory, monkeypatch):
    first, _ = talk(memory)
    database = memory.internals.database
    if database.kind == "sqlite":
        pytest.skip("a process of its own is needed, see the tests of the command")
    begin = database._begin.replace("lock_timeout TO 30000", "lock_timeout TO 50")
    assert begin != database._begin
    monkeypatch.setattr(database, "_begin", begin)
    monkeypatch.setattr("smara.database.vacuum._MOST_WAITS", 3)  # this one stays
    with psycopg.connect(split_schema(str(place.address))[0]) as reader:
        reader.execute(f"SET search_path TO {database.schema}; SET application_name TO 'report'")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        receipt = memory.privacy.erase(messages=[first.id])
        assert receipt.traces
        assert any("(report" in each for each in receipt.held_by), receipt.held_by
        assert memory.privacy.problems()
    monkeypatch.undo()  # those of other tests end
    assert memory.privacy.finish_erase()
    assert memory.privacy.problems() == []
    assert files_with(memory, CANARY.encode()) == []


def test_receipt_tells_how_long_copies_are_kept(memory):
    first, _ = talk(memory)
    told = "\n".join(memory.privacy.erase(messages=[first.id]).out_of_reach)
    assert "backups" in told
    if memory.internals.database.kind == "postgres":
        assert "max_wal_size" in told
        assert "checkpoint_timeout" in told
        assert "archive_mode is off" in told


def test_files_of_the_spool_that_hold_it_go_and_others_stay(memory, spool):
    words = talk(memory)[0].raw_content
    events = {
        "1.event": {"session_id": "t", "prompt": "anything"},
        "2.event": {"session_id": "u", "prompt": words.upper()},
        "3.event": {"session_id": "u", "prompt": "Plain words"},
        "unreadable/4.event": {"session_id": "t"},
    }  # fmt: skip
    for name, payload in events.items():
        (spool / name).write_text("smara1\tclaude\tx\t1\t\t\n" + json.dumps(payload))
    (spool / "briefs" / "a.json").write_text(CANARY)
    (spool / "told" / "said-1").write_text(f"start\t{CANARY}")
    assert memory.privacy.erase(threads=["t"]).is_clean
    assert [path.name for path in spool.rglob("*") if path.is_file()] == ["3.event"]
