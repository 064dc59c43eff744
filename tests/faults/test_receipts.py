"""A process is killed at any statement while something is told: its receipt is whole or absent, and
there is one.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from smara.adapters.hosts.session_log import NOTICE
from smara.adapters.hosts.spool import names, put
from smara.context.models import Receipt
from smara.memory import Memory
from tests.faults.receipt_workers import AT_MS, die_while_saying, opened, teach, told, work
from tests.faults.sizes import IS_LARGE

FORKED = multiprocessing.get_context("forkserver")
STATEMENTS = range(1, 120) if IS_LARGE else (1, 3, 6, 12)
LAST = 1_000


def kills(where: str, what: str, folder: str) -> Iterator[None]:
    """Let process after process die a little later, until one gets through."""
    for number in STATEMENTS:
        worker = FORKED.Process(target=die_while_saying, args=(where, number, what, folder))
        worker.start()
        worker.join(120)
        assert worker.exitcode in (0, -9)
        yield
        if worker.exitcode == 0:
            return


def receipts(where: str) -> list[Receipt]:
    with opened(where, LAST) as memory:
        return memory.moments.receipts()


def are_whole(found: list[Receipt]) -> bool:
    return all(len(each.items) == 2 and each.text.count("[Memory #") == 2 for each in found)


def notice(memory: Memory, folder: str) -> None:
    facts = {
        "session_id": "s1",
        "source": "startup",
        "cwd": "",
        "agent": "claude",
        "told": asdict(told(memory)),
    }
    put(folder, *NOTICE, json.dumps(facts).encode(), "default", "", is_clean=True)


@pytest.mark.parametrize("what", ["tell", "deliver", "drain"])
def test_a_receipt_is_whole_or_absent_and_nothing_is_told_or_receipted_twice(what, where, tmp_path):
    """1. Processes die at one statement after another. 2. Another does it, twice. 3. There is one
    receipt.
    """
    folder = str(tmp_path / "spool")
    with opened(where, 0) as memory:
        teach(memory)
        notice(memory, folder)
    for _ in kills(where, what, folder):
        found = receipts(where)
        assert len(found) <= 1
        assert are_whole(found)
    with opened(where, LAST) as memory:
        was_kept = bool(memory.moments.receipts())
        first, second = work(memory, what, folder), work(memory, what, folder)
        if what == "tell":
            assert (
                first is None
            ) is was_kept  # whoever died after the receipt was kept is not spoken for again
            assert second is None
        assert what != "drain" or not names(folder)
        (found,) = memory.moments.receipts()
        assert are_whole([found])
        assert memory.moments.totals().receipts == 1


def test_what_came_of_it_is_kept_whole_and_counted_once(where, tmp_path):
    """Use stands in the receipt and in its items, or in neither; the memory that helped has been
    used once at most.
    """
    with opened(where, 0) as memory:
        teach(memory)
        memory.moments.deliver(told(memory), session_id="s1", source="startup", at_ms=AT_MS)
    for _ in kills(where, "heed", ""):
        (found,) = receipts(where)
        assert found.is_used == any(each.outcome == "used" for each in found.items)
    with opened(where, LAST) as memory:
        for _ in range(2):
            work(memory, "heed", "")
        (found,) = memory.moments.receipts()
        assert (found.used_how, [each.outcome for each in found.items].count("used")) == ("ran", 1)
        assert sum(each.verified_uses for each in memory.memories.list()) <= 1
