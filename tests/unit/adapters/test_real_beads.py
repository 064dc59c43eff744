"""Real trackers of beads, kept by coding agents: they come in whole, go out again, and come in without change.

They are found through SMARA_EVAL_DATA, and are no part of a clone.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.beads import BeadsImported, export_beads, import_beads
from smara.memory import Memory
from smara.testing import open_temporary

FOLDER = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "beads"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))
OURS = {"open", "in_progress", "closed"}

pytestmark = pytest.mark.skipif(
    not FILES, reason="no beads in SMARA_EVAL_DATA; set it to the folder of evaluation data"
)


@cache
def originals_of(path: Path) -> tuple[dict[str, Any], ...]:
    with gzip.open(path) as file:
        return tuple(json.loads(line) for line in file)


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name)
def tracker(request: pytest.FixtureRequest) -> Iterator[tuple[Path, Memory, BeadsImported]]:
    """A tracker, a store that it was brought into, and the report."""
    with open_temporary(durability="normal") as memory:
        yield request.param, memory, import_beads(memory, request.param)


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
    before = text_of(memory)
    again = import_beads(memory, path)
    assert (again.added, again.changed, again.newer_here, again.unchanged) == (0, 0, 0, report.issues)
    own = tmp_path / "own.jsonl"
    own.write_text(before, encoding="utf-8")
    assert import_beads(memory, own).unchanged == report.issues
    assert text_of(memory) == before


def test_a_fresh_store_gives_the_same_bytes(tracker, tmp_path):
    _, memory, report = tracker
    first = text_of(memory)
    own = tmp_path / "own.jsonl"
    own.write_text(first, encoding="utf-8")
    with open_temporary(durability="normal") as fresh:
        again = import_beads(fresh, own)
        assert (again.added, again.dependencies) == (report.issues, report.dependencies)
        assert text_of(fresh) == first
        assert fresh.tasks.totals() == memory.tasks.totals()


def test_every_dependency_stands_or_is_counted(tracker):
    path, memory, report = tracker
    told = sum(len(record.get("dependencies", ())) for record in originals_of(path))
    apart = sum(count for what, count in report.kept_in_metadata.items() if "dependency" in what and " → " not in what)
    assert report.dependencies == told - apart + report.implied_parents
    assert sum(len(task.dependencies) for task in memory.tasks.export()) == report.dependencies


def test_what_has_no_counterpart_is_counted(tracker):
    path, _, report = tracker
    issues = [record for record in originals_of(path) if "id" in record]
    for name in ("owner", "external_ref", "comments", "deleted_at", "started_at"):
        assert report.kept_in_metadata[f"field {name}"] == sum(name in record for record in issues)
    foreign = sum(record["status"] not in OURS for record in issues)
    assert sum(count for what, count in report.kept_in_metadata.items() if what.startswith("status")) == foreign
    assert report.tombstones == sum(record["status"] == "tombstone" for record in issues)


def test_what_is_ready_waits_for_nothing_unfinished(tracker):
    path, memory, _ = tracker
    unfinished = {
        record["id"] for record in originals_of(path) if record.get("status") not in ("closed", "tombstone", None)
    }
    blockers = {
        record["id"]: {each["depends_on_id"] for each in record.get("dependencies", ()) if each["type"] == "blocks"}
        for record in originals_of(path)
        if "id" in record
    }
    for task in memory.tasks.ready(limit=1000):
        assert task.short_id in unfinished
        assert blockers[task.short_id].isdisjoint(unfinished)


def test_words_of_every_section_are_found(tracker):
    path, memory, _ = tracker
    sample = [record for record in originals_of(path) if record.get("notes") or record.get("acceptance_criteria")][:5]
    for record in sample:
        words = " ".join((record.get("notes") or record["acceptance_criteria"]).split()[:8])
        assert record["id"] in [hit.task.short_id for hit in memory.search_tasks(words, 10)]
