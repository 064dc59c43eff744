"""Real trackers of coding agents: what is ready in them, computed again the slow way.

They are found through SMARA_EVAL_DATA, and are no part of a clone.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.tasks.models import Task, TaskTotals
from smara.testing import open_temporary

FOLDER = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "beads"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))

pytestmark = pytest.mark.skipif(
    not FILES, reason="no beads in SMARA_EVAL_DATA; set it to the folder of evaluation data"
)


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def tracker(request: pytest.FixtureRequest) -> Iterator[tuple[smara.Memory, Path]]:
    """A memory with one tracker imported, and the file it came from."""
    from smara.adapters.beads import import_beads

    with open_temporary(token_model="estimate", durability="normal") as memory:
        import_beads(memory, request.param)
        yield memory, request.param


def originals(path: Path) -> dict[str, dict[str, Any]]:
    """The issues of a file by their id; a later line stands for the issue as it became."""
    with gzip.open(path) as file:
        records = [json.loads(line) for line in file]
    return {record["id"]: record for record in records if record.get("id") and record.get("status")}


def waiting(tasks: list[Task]) -> dict[str, list[str]]:
    """What each task waits for: one look at every dependency for every task, as slow as it is obvious."""
    waits: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for other in tasks:
            for needed in other.dependencies:
                if needed.type == "blocks" and other.id == task.id:
                    waits[task.id].append(needed.depends_on_id)
                if needed.type == "parent-child" and needed.depends_on_id == task.id:
                    waits[task.id].append(other.id)
    return waits


def with_edges(tasks: list[Task]) -> list[Task]:
    """The tasks that have to do with any dependency; all others wait for nothing."""
    named = {each.depends_on_id for task in tasks for each in task.dependencies}
    return [task for task in tasks if task.dependencies or task.id in named]


def test_the_ready_tasks_are_those_of_a_slow_recount(tracker: tuple[smara.Memory, Path]) -> None:
    memory, _ = tracker
    tasks = list(memory.tasks.export())
    status = {task.id: task.status for task in tasks}
    waits = {**{task.id: [] for task in tasks}, **waiting(with_edges(tasks))}
    unfinished = [task for task in tasks if status[task.id] != "closed"]
    blocked = [task for task in unfinished if any(status[needed] != "closed" for needed in waits[task.id])]
    ready = [task for task in unfinished if task.status == "open" and task not in blocked]
    found = memory.tasks.ready(limit=10_000)
    assert {task.id for task in found} == {task.id for task in ready}
    assert (found.ready_count, found.blocked_count) == (len(ready), len(blocked))
    assert all(
        (one.priority, one.created_at) <= (two.priority, two.created_at) for one, two in pairwise(found)
    ), "by priority, then age"  # fmt: skip
    assert memory.tasks.totals() == TaskTotals(
        open=sum(each == "open" for each in status.values()),
        in_progress=sum(each == "in_progress" for each in status.values()),
        closed=sum(each == "closed" for each in status.values()),
        ready=len(ready),
        blocked=len(blocked),
    )


def test_no_task_waits_for_itself(tracker: tuple[smara.Memory, Path]) -> None:
    """What waits for nothing is taken away, again and again; a circle would be left."""
    memory, _ = tracker
    left = {task: set(needed) for task, needed in waiting(with_edges(list(memory.tasks.export()))).items()}
    while free := [task for task, needed in left.items() if not needed & left.keys()]:
        for task in free:
            del left[task]
    assert left == {}


def test_every_issue_is_a_task_with_its_title_priority_and_age(tracker: tuple[smara.Memory, Path]) -> None:
    memory, path = tracker
    by_short = {task.short_id: task for task in memory.tasks.export()}
    living = {issue_id: issue for issue_id, issue in originals(path).items() if issue["status"] != "tombstone"}
    assert living.keys() <= by_short.keys()
    for issue_id, issue in living.items():
        task = by_short[issue_id]
        assert task.priority == issue["priority"]
        assert (task.status == "closed") == (issue["status"] == "closed"), issue_id
        assert len(task.title) <= 500


def test_a_blocker_between_two_issues_is_left_out_only_when_it_would_close_a_circle(
    tracker: tuple[smara.Memory, Path],
) -> None:
    memory, path = tracker
    tasks = list(memory.tasks.export())
    by_short = {task.short_id: task for task in tasks}
    waits = waiting(with_edges(tasks))
    for issue_id, issue in originals(path).items():
        for edge in issue.get("dependencies") or []:
            needed = by_short.get(edge["depends_on_id"])
            if edge["type"] != "blocks" or issue_id not in by_short or needed is None:
                continue
            task = by_short[issue_id]
            is_kept = (needed.id, "blocks") in {(each.depends_on_id, each.type) for each in task.dependencies}
            assert is_kept or task.id in reached(needed.id, waits), f"{issue_id} needs {needed.short_id}"


def reached(start: str, waits: dict[str, list[str]]) -> set[str]:
    """Everything that a task waits for, directly or through others, and itself."""
    seen: set[str] = set()
    to_see = [start]
    while to_see:
        task_id = to_see.pop()
        if task_id not in seen:
            seen.add(task_id)
            to_see += waits.get(task_id, [])
    return seen


def test_importing_again_changes_nothing(tracker: tuple[smara.Memory, Path]) -> None:
    from smara.adapters.beads import import_beads

    memory, path = tracker
    before = list(memory.tasks.export())
    import_beads(memory, path)
    assert list(memory.tasks.export()) == before


def test_some_of_what_is_written_in_each_tracker_is_found(tracker: tuple[smara.Memory, Path]) -> None:
    memory, _ = tracker
    tasks = [task for task in memory.tasks.export() if len(task.title) > 20]
    for task in tasks[:: max(1, len(tasks) // 12)]:
        same = {each.id for each in tasks if each.title == task.title}
        found = {hit.task.id for hit in memory.search_tasks(task.title, limit=10).hits}
        assert found & same, task.title
