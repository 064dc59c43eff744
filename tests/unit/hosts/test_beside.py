"""What hooks left is taken in beside a server that an agent keeps running."""

from __future__ import annotations

import os
import threading

import pytest

import smara
from smara.adapters.hosts import spool
from smara.adapters.hosts.hook_store import ServerDrain
from tests.unit.hosts.hooks import claude, spooled


@pytest.fixture
def db(tmp_path, monkeypatch):
    path = tmp_path / "smara.db"
    monkeypatch.setenv("SMARA_DB", str(path))
    monkeypatch.chdir(tmp_path)
    smara.open(path, durability="normal").close()
    return path


def wait_until_empty(folder: str) -> None:
    """As long as it takes: the thread is at work, and nothing else touches the spool."""
    while spool.names(folder):
        os.sched_yield()


def test_what_waits_is_taken_in_and_what_comes_later_too(db, tmp_path):
    folder = f"{db}-spool"
    spooled(folder, claude("UserPromptSubmit", prompt="Before"))
    beside = ServerDrain(folder, first=0.0, every=0.01)
    beside.start()
    wait_until_empty(folder)
    spooled(folder, claude("UserPromptSubmit", prompt="After"))
    wait_until_empty(folder)
    beside.stop()
    with smara.open(db) as memory:
        assert [each.raw_content for each in memory.messages.list(thread_id="s1")] == [
            "Before",
            "After",
        ]


def test_told_to_stop_it_begins_nothing_more_and_leaves_what_waits(db):
    folder = f"{db}-spool"
    spooled(folder, claude("UserPromptSubmit", prompt="Later"))
    beside = ServerDrain(folder, first=600.0)
    beside.start()
    beside.stop()
    assert len(spool.names(folder)) == 1
    assert "smara-beside" not in {thread.name for thread in threading.enumerate()}


def test_events_of_a_store_that_cannot_be_opened_are_kept(db):
    folder = f"{db}-spool"
    db.write_bytes(b"not a database, and long enough to be taken for one" * 100)
    spooled(folder, claude("UserPromptSubmit", prompt="Kept"))
    beside = ServerDrain(folder)
    with pytest.raises(smara.errors.SmaraError):
        beside._drain()
    beside.stop()
    assert len(spool.names(folder)) == 1
