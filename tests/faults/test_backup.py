"""A backup taken while others write opens as a consistent beginning of what was written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import smara
from tests.faults import recount, workers
from tests.faults.conftest import Start
from tests.faults.sizes import count
from tests.faults.workers import text_of


def by_api(source: str, target: str) -> None:
    """SQLite's backup API, a few pages at a time, as a tool that is kind to writers does."""
    connection, copy = apsw.Connection(source), apsw.Connection(target)
    connection.set_busy_timeout(30_000)
    with copy.backup("main", connection, "main") as backup:
        while not backup.done:
            # A write in between starts the copy over; the last attempt takes all pages at once.
            backup.step(
                -1 if backup.page_count and backup.remaining < backup.page_count // 2 else 8
            )
    copy.close()
    connection.close()


def by_product(source: str, target: str) -> None:
    """``smara backup``."""
    with smara.open(source) as memory:
        report = memory.privacy.backup(target)
    copy = apsw.Connection(target)
    assert copy.execute("SELECT count(*) FROM messages").get == report.counts["messages"]
    copy.close()
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600


@pytest.mark.parametrize("back_up", [by_api, by_product])
def test_backup_under_load_is_a_consistent_beginning(
    store: str, tmp_path: Path, start: Start, back_up: Callable[[str, str], None]
) -> None:
    writer = start(workers.append, store, 0, "normal")
    acknowledged: list[str] = []
    writer.first(3)
    for trial in range(count(2, 50)):
        before = _acknowledged(writer.first(2))
        target = str(tmp_path / f"backup{trial}.db")
        back_up(store, target)
        after = _acknowledged(writer.first(1))
        with smara.open(target) as memory:
            assert recount.problems(memory) == []
            assert memory.warnings == []
            stored = set(recount.contents(memory))
            assert set(acknowledged) | set(before) <= stored, (
                "what was acknowledged before the backup began"
            )
            for thread in memory.threads.list():
                assert [m.seq for m in memory.messages.list(thread_id=thread.id)] == list(
                    range(1, thread.message_count + 1)
                )
            assert all(text == text_of(each) for each, text in recount.contents(memory).items())
            memory.messages.add(thread_id="t0", role="user", content="the copy can be used")
        acknowledged += before + after
        Path(target).unlink()
    writer.kill()
    with smara.open(store) as memory:
        assert set(acknowledged) <= set(recount.contents(memory))
        assert recount.problems(memory) == []


def _acknowledged(told: list[list[str]]) -> list[str]:
    return [each for ids in told for each in ids]
