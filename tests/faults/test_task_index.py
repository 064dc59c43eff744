"""The index of tasks and their totals: damage is seen, named and mended from the tasks."""

from __future__ import annotations

import pytest

import smara
from smara.config import Settings
from smara.doctor import examine
from tests.faults.test_index_health import damage

TASKS = 60


@pytest.fixture
def filled(store: str) -> str:
    """A store with tasks, closed."""
    with smara.open(store) as memory:
        for number in range(TASKS):
            memory.tasks.add(
                f"Mend gate {number}", description=f"see handle_{number}()", labels=["fence"]
            )
    return store


def assert_whole(memory: smara.Memory) -> None:
    assert memory.internals.index.problems(deep=True) == []
    assert memory.search_tasks("handle_7")[0].task.title == "Mend gate 7"
    assert memory.search_tasks("fence", limit=100).total_hits == TASKS
    assert memory.tasks.problems() == []


@pytest.mark.parametrize(
    "lost",
    [
        "DELETE FROM record_index_data", "DELETE FROM record_index_data WHERE id = 1",
        "DELETE FROM record_index_data WHERE id = 10", "DROP TABLE record_index_data",
        "DROP TABLE record_index_idx",
        "DELETE FROM record_index WHERE rowid > 400000",
        "UPDATE index_state SET rows = 5 WHERE name = 'record_index'",
    ],
)  # fmt: skip
def test_damage_seen_at_open_is_repaired_from_the_tasks(filled, lost):
    damage(filled, lost)
    with smara.open(filled) as memory:
        assert any("rebuilt" in warning for warning in memory.warnings)
        assert_whole(memory)
    with smara.open(filled) as memory:
        assert memory.warnings == []
        assert_whole(memory)


def test_the_doctor_finds_a_task_that_the_index_holds_wrongly(filled):
    damage(
        filled,
        "UPDATE record_index_content SET c1 = 'other words' WHERE id = (SELECT min(id) FROM "
        "record_index_content)",
    )
    with smara.open(filled) as memory:
        assert memory.internals.index.problems(deep=True) != []
        memory.internals.index.rebuild()
        assert_whole(memory)


def test_the_doctor_counts_totals_again(filled):
    damage(filled, "UPDATE task_totals SET ready = ready + 3")
    found = {finding.check: finding for finding in examine(Settings(db=filled))}
    assert found["tasks"].level == "problem"
    fixed = {finding.check: finding for finding in examine(Settings(db=filled), fix=True)}
    assert (fixed["tasks"].level, fixed["tasks"].is_fixed) == ("ok", True)
    with smara.open(filled) as memory:
        assert_whole(memory)
