"""A round of retention that is killed at any statement is continued, and nothing else goes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import smara
from tests import stores
from tests.faults import recount
from tests.faults.conftest import Start
from tests.faults.retention_workers import keep, open_at
from tests.faults.sizes import count
from tests.faults.test_copies import exported


def fill(address: str) -> None:
    """Conversations of two ages, one of them evidence; closed tasks; versions of a page."""
    with open_at(address) as memory:
        talk(memory, range(count(8, 60)))
        message = memory.messages.list(thread_id="t1")[0]
        memory.memories.add("Doors stay blue", type="gotcha", evidence=[f"message:{message.id}"])
        for number in range(6):
            memory.tasks.close(memory.tasks.add(f"Task {number}").id, "done")
            memory.working.put(f"# Page\n- {number}", scope="resource", resource_id="ann")
    with open_at(address, day=39) as memory:
        talk(memory, range(100, 103))


def talk(memory: smara.Memory, numbers: range) -> None:
    for number in numbers:
        for part in "ab":
            memory.messages.add(
                thread_id=f"t{number}", role="user", content=f"Words {number}{part} about doors"
            )


def state(memory: smara.Memory) -> list[Any]:
    return [(each.kind, each.rows, each.removed) for each in memory.retention.list()]


@pytest.mark.parametrize("kind", stores.BOTH)
def test_a_round_killed_at_any_statement_is_continued(
    kind: str, start: Start, rng: random.Random, tmp_path: Path
) -> None:
    """1. Measure on one store. 2. Kill on another until a round comes to its end. 3. Compare."""
    with stores.empty_store(kind, tmp_path) as address:
        fill(address)
        (total,) = start(keep, address, 0).rest()
        with open_at(address, day=40) as memory:
            whole, left = state(memory), sorted(each.id for each in memory.threads.list())
    assert left == ["t1", "t100", "t101", "t102"]
    other = tmp_path / "killed"
    other.mkdir()
    with stores.empty_store(kind, other) as address:
        fill(address)
        kills = 0
        while kills < count(5, 60) and not start(keep, address, rng.randint(1, total)).rest():
            kills += 1
        start(keep, address, 0).rest()
        with open_at(address, day=40) as memory:
            # A released lease of a round that was killed may have gone, too.
            assert [each for each in state(memory) if each[0] != "leases"] == [
                each for each in whole if each[0] != "leases"
            ]
            assert sorted(each.id for each in memory.threads.list()) == left
            assert recount.problems(memory) == []
            assert memory.tasks.problems() == []
            assert memory.memories.problems() == []
            assert exported(memory, tmp_path / "a.zip")
