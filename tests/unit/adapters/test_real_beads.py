"""Real trackers of beads, kept by coding agents: they come in whole, go out again, and come in
without change.

They are found through SMARA_EVAL_DATA, and are no part of a clone.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.beads import BeadsReport, export_beads, import_beads
from smara.memory import Memory
from smara.tasks.models import Task, TaskTotals
from smara.testing import open_temporary
from tests.faults.sizes import count

FOLDER = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "beads"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))
OURS = {"open", "in_progress", "closed"}
BLOCK = count(400, 100_000)
"""Of a long tracker a small run takes the beginning, the middle and the end: blocks, because issues
depend on those near them.
"""

pytestmark = pytest.mark.skipif(
    not FILES, reason="no beads in SMARA_EVAL_DATA; set it to the folder of evaluation data"
)


@cache
def originals_of(path: Path) -> tuple[dict[str, Any], ...]:
    with gzip.open(path) as file:
        return tuple(json.loads(line) for line in file)


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name)
def tracker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Memory, BeadsReport]]:
    """A tracker, a store that it was brought into, and the report."""
    path = request.param
    with gzip.open(path) as file:
        lines = file.readlines()
    if len(lines) > 3 * BLOCK:
        middle = len(lines) // 2
        path = tmp_path_factory.mktemp("beads") / path.name
        with gzip.open(path, "wb") as file:
            file.writelines(lines[:BLOCK] + lines[middle : middle + BLOCK] + lines[-BLOCK:])
    with open_temporary(durability="normal", token_model="estimate") as memory:
        yield path, memory, import_beads(memory, path)


def text_of(memory: Memory) -> str:
    out = io.StringIO()
    export_beads(memory, out)
    return out.getvalue()


def test_every_line_is_an_issue_or_a_record_of_another_kind(tracker):
    path, memory, report = tracker
    issues = [record for record in originals_of(path) if "id" in record]
    assert report.lines == len(originals_of(path)) == report.issues + report.others.total()
    assert report.added == report.issues == len(issues) == memory.tasks.totals().all
    assert (report.unreadable, report.repeated, report.refused, report.redacted) == ([], [], (), 0)


def test_it_goes_out_as_it_came(tracker):
    path, memory, _ = tracker
    written = [json.loads(line) for line in text_of(memory).split("\n") if line]
    by_name = {record.get("id", record.get("key")): record for record in written}
    assert len(by_name) == len(written)
    assert by_name == {record.get("id", record.get("key")): record for record in originals_of(path)}


def test_fields_are_in_the_order_in_which_beads_writes_them(tracker):
    path, memory, _ = tracker
    order = {record["id"]: list(record) for record in originals_of(path) if "id" in record}
    for line in text_of(memory).split("\n"):
        record = json.loads(line or "{}")
        assert list(record) == order.get(record.get("id"), list(record))


def test_it_comes_in_again_without_change(tracker, tmp_path):
    path, memory, report = tracker
    before, tasks = text_of(memory), list(memory.tasks.export())
    again = import_beads(memory, path)
    assert list(memory.tasks.export()) == tasks
    assert (again.added, again.changed, again.newer_here, again.unchanged) == (
        0,
        0,
        0,
        report.issues,
    )
    own = tmp_path / "own.jsonl"
    own.write_text(before, encoding="utf-8")
    assert import_beads(memory, own).unchanged == report.issues
    assert text_of(memory) == before


def test_a_fresh_store_gives_the_same_bytes(tracker, tmp_path):
    _, memory, report = tracker
    first = text_of(memory)
    own = tmp_path / "own.jsonl"
    own.write_text(first, encoding="utf-8")
    with open_temporary(durability="normal", token_model="estimate") as fresh:
        again = import_beads(fresh, own)
        assert (again.added, again.dependencies) == (report.issues, report.dependencies)
        assert text_of(fresh) == first
        assert fresh.tasks.totals() == memory.tasks.totals()


def test_every_dependency_stands_or_is_counted(tracker):
    path, memory, report = tracker
    told = sum(len(record.get("dependencies", ())) for record in originals_of(path))
    apart = sum(
        count
        for what, count in report.kept_in_metadata.items()
        if "dependency" in what and " → " not in what
    )
    assert report.dependencies == told - apart + report.implied_parents
    assert sum(len(task.dependencies) for task in memory.tasks.export()) == report.dependencies


def test_what_has_no_counterpart_is_counted(tracker):
    path, _, report = tracker
    issues = [record for record in originals_of(path) if "id" in record]
    for name in ("owner", "external_ref", "comments", "deleted_at", "started_at"):
        assert report.kept_in_metadata[f"field {name}"] == sum(name in record for record in issues)
    foreign = sum(record["status"] not in OURS for record in issues)
    assert (
        sum(count for what, count in report.kept_in_metadata.items() if what.startswith("status"))
        == foreign
    )
    assert report.tombstones == sum(record["status"] == "tombstone" for record in issues)


def test_what_is_ready_waits_for_nothing_unfinished(tracker):
    path, memory, _ = tracker
    unfinished = {
        record["id"]
        for record in originals_of(path)
        if record.get("status") not in ("closed", "tombstone", None)
    }
    blockers = {
        record["id"]: {
            each["depends_on_id"]
            for each in record.get("dependencies", ())
            if each["type"] == "blocks"
        }
        for record in originals_of(path)
        if "id" in record
    }
    for task in memory.tasks.ready(limit=1000):
        assert task.short_id in unfinished
        assert blockers[task.short_id].isdisjoint(unfinished)


def test_words_of_every_section_are_found(tracker):
    path, memory, _ = tracker
    sample = [
        record
        for record in originals_of(path)
        if record.get("notes") or record.get("acceptance_criteria")
    ][:5]
    for record in sample:
        words = " ".join((record.get("notes") or record["acceptance_criteria"]).split()[:8])
        assert record["id"] in [hit.task.short_id for hit in memory.search_tasks(words, 10)]


# What is ready, computed again.


def issues_of(path: Path) -> dict[str, dict[str, Any]]:
    """The issues of a file by their id; a later line stands for the issue as it became."""
    return {
        record["id"]: record
        for record in originals_of(path)
        if record.get("id") and record.get("status")
    }


def waiting(tasks: list[Task]) -> dict[str, list[str]]:
    """What each task waits for, from one look at every dependency."""
    waits: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for needed in task.dependencies:
            if needed.type == "blocks":
                waits[task.id].append(needed.depends_on_id)
            if needed.type == "parent-child":
                waits[needed.depends_on_id].append(task.id)
    return waits


def test_the_ready_tasks_are_those_of_a_recount(tracker):
    _, memory, _ = tracker
    tasks = list(memory.tasks.export())
    status = {task.id: task.status for task in tasks}
    waits = waiting(tasks)
    unfinished = [task for task in tasks if status[task.id] != "closed"]
    blocked = {
        task.id
        for task in unfinished
        if any(status[needed] != "closed" for needed in waits[task.id])
    }
    ready = {task.id for task in unfinished if task.status == "open"} - blocked
    found = memory.tasks.ready(limit=10_000)
    assert {task.id for task in found} == ready
    assert (found.ready_count, found.blocked_count) == (len(ready), len(blocked))
    assert all(
        (one.priority, one.created_at) <= (two.priority, two.created_at)
        for one, two in pairwise(found)
    ), "by priority, then age"
    assert memory.tasks.totals() == TaskTotals(
        open=sum(each == "open" for each in status.values()),
        in_progress=sum(each == "in_progress" for each in status.values()),
        closed=sum(each == "closed" for each in status.values()),
        ready=len(ready),
        blocked=len(blocked),
    )


def test_no_task_waits_for_itself(tracker):
    """What waits for nothing is taken away, again and again; a circle would be left."""
    _, memory, _ = tracker
    left = {task: set(needed) for task, needed in waiting(list(memory.tasks.export())).items()}
    while free := [task for task, needed in left.items() if not needed & left.keys()]:
        for task in free:
            del left[task]
    assert left == {}


def test_every_issue_is_a_task_with_its_title_priority_and_age(tracker):
    path, memory, _ = tracker
    by_short = {task.short_id: task for task in memory.tasks.export()}
    living = {
        issue_id: issue
        for issue_id, issue in issues_of(path).items()
        if issue["status"] != "tombstone"
    }
    assert living.keys() <= by_short.keys()
    for issue_id, issue in living.items():
        task = by_short[issue_id]
        assert task.priority == issue["priority"]
        assert (task.status == "closed") == (issue["status"] == "closed"), issue_id
        assert len(task.title) <= 500


def test_a_blocker_between_two_issues_is_left_out_only_when_it_would_close_a_circle(tracker):
    path, memory, _ = tracker
    tasks = list(memory.tasks.export())
    by_short = {task.short_id: task for task in tasks}
    waits = waiting(tasks)
    for issue_id, issue in issues_of(path).items():
        for edge in issue.get("dependencies") or []:
            needed = by_short.get(edge["depends_on_id"])
            if edge["type"] != "blocks" or issue_id not in by_short or needed is None:
                continue
            task = by_short[issue_id]
            is_kept = (needed.id, "blocks") in {
                (each.depends_on_id, each.type) for each in task.dependencies
            }
            assert is_kept or task.id in reached(needed.id, waits), (
                f"{issue_id} needs {needed.short_id}"
            )


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


def test_some_of_what_is_written_in_each_tracker_is_found(tracker):
    _, memory, _ = tracker
    tasks = [task for task in memory.tasks.export() if len(task.title) > 20]
    for task in tasks[:: max(1, len(tasks) // 12)]:
        same = {each.id for each in tasks if each.title == task.title}
        found = {hit.task.id for hit in memory.search_tasks(task.title, limit=10).hits}
        assert found & same, task.title
