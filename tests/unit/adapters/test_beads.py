"""Trackers of beads: in, out as they were, in again without change; nothing of ours undone, nothing
lost.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smara
from smara.adapters.beads import export_beads, import_beads
from smara.adapters.beads.sync import render
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.testing import FakeClock, open_temporary

Write = Callable[..., Path]
NOON = "2025-10-01T12:00:00.123456-07:00"  # before the clock of the tests

NOTE = {
    "_type": "memory",
    "key": "deploy-needs-direnv",
    "value": "make deploy needs `direnv allow` first",
}


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with open_temporary(clock=clock, durability="normal", actor="me") as memory:
        yield memory


def issue(name: str, *needs: str, **fields: Any) -> dict[str, Any]:
    """An issue; ``needs`` are dependencies, each as ``type:id``."""
    record: dict[str, Any] = {
        "id": name,
        "title": f"Issue {name}",
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "created_at": NOON,
        "updated_at": NOON,
    }
    if needs:
        record["dependencies"] = [needed(name, each) for each in needs]
    return record | fields


def needed(name: str, need: str) -> dict[str, Any]:
    type_, _, other = need.partition(":")
    return {
        "issue_id": name,
        "depends_on_id": other,
        "type": type_,
        "created_at": NOON,
        "created_by": "x",
    }


def exported(memory: Memory) -> dict[str, dict[str, Any]]:
    records = [json.loads(line) for line in text_of(memory).split("\n") if line]
    return {record.get("id", record.get("key")): record for record in records}


def text_of(memory: Memory) -> str:
    out = io.StringIO()
    export_beads(memory, out)
    return out.getvalue()


def bring(memory: Memory, write: Write, *records: Any) -> Any:
    return import_beads(memory, write(*records))


def test_issues_come_in_go_out_and_come_in_again(memory, write):
    records = [
        issue(
            "bd-1",
            status="closed",
            closed_at=NOON,
            close_reason="Done in 3f0c1a7",
            owner="o@example.com",
        ),
        issue(
            "bd-2",
            "blocks:bd-1",
            "discovered-from:bd-1",
            notes="n",
            comments=[{"id": 1, "text": "c"}],
        ),
        issue("bd-2.1", "parent-child:bd-2", issue_type="molecule", status="hooked"),
    ]
    report = bring(memory, write, *records)
    assert (report.lines, report.issues, report.added, report.dependencies) == (3, 3, 3, 3)
    assert exported(memory) == {record["id"]: record for record in records}
    again = bring(memory, write, *records)
    assert (again.added, again.changed, again.unchanged, again.newer_here) == (0, 0, 3, 0)


@pytest.mark.postgres
def test_postgresql_gives_the_same_bytes(memory, write, postgres_url):
    records = [
        issue(
            "bd-2",
            "blocks:bd-1",
            "odd:bd-1",
            notes="n",
            x={"b": 1, "a": [None, 2.5]},
            title="Zoë\u0000 重",
        ),
        issue("bd-1", status="tombstone", deleted_at=NOON),
        NOTE,
    ]
    bring(memory, write, *records)
    with smara.open(postgres_url) as other:
        assert bring(other, write, *records).added == 2
        assert text_of(other) == text_of(memory)
        assert bring(other, write, *records).unchanged == 2


def test_what_has_no_counterpart_is_counted(memory, write):
    report = bring(
        memory,
        write,
        issue(
            "a",
            "relates-to:b",
            "authored-by:b",
            "blocks:nowhere",
            owner="o",
            status="deferred",
            notes="n",
        ),
        issue("b", "blocks:c", title="x" * 501, issue_type="role"),
        issue("c", "blocks:b", status="tombstone"),
    )
    assert report.kept_in_metadata == {
        "status deferred → open": 1,
        "status tombstone → closed": 1,
        "issue_type role → task": 1,
        "field owner": 1,
        "title of more than 500 characters": 1,
        "dependency relates-to → related": 1,
        "dependency authored-by of a type that has no counterpart": 1,
        "dependency on an issue that is not there": 1,
        "dependency that would close a circle": 1,
    }
    assert (report.folded, report.tombstones, report.dependencies) == ({"notes": 1}, 1, 2)
    assert report.refused == ()


def test_task_is_found_by_its_sections_and_shows_them(memory, write):
    bring(
        memory, write, issue("bd-1", description="Short", acceptance_criteria="The zeppelin lands")
    )
    assert (
        memory.tasks.get("bd-1").description
        == "Short\n\n## Acceptance criteria\n\nThe zeppelin lands"
    )
    assert [hit.task.short_id for hit in memory.search_tasks("zeppelin")] == ["bd-1"]


def test_blockers_of_the_file_decide_what_is_ready(memory, write):
    bring(
        memory,
        write,
        issue("a", "blocks:b"),
        issue("b"),
        issue("e", issue_type="epic"),
        issue("c", "parent-child:e"),
    )
    assert {task.short_id for task in memory.tasks.ready(limit=10)} == {"b", "c"}


def test_child_is_known_by_its_id_where_the_file_tells_no_parent(memory, write):
    records = [
        issue("bd-1"),
        issue("bd-1.1"),
        issue("bd-1.2", "parent-child:bd-9"),
        issue("bd-9"),
        issue("bd-7.1"),
    ]
    report = bring(memory, write, *records)
    assert report.implied_parents == 1
    assert [task.short_id for task in memory.tasks.show("bd-1").children] == ["bd-1.1"]
    assert exported(memory)["bd-1.1"] == records[1], "and the file stays without that dependency"


def test_parent_of_is_told_by_the_parent_and_held_by_the_child(memory, write):
    records = [issue("p", "parent-of:c"), issue("c")]
    bring(memory, write, *records)
    assert [task.short_id for task in memory.tasks.show("p").children] == ["c"]
    assert exported(memory) == {record["id"]: record for record in records}
    memory.tasks.undepend("c", "p")
    assert "dependencies" not in exported(memory)["p"]


def test_parent_of_that_comes_later_reaches_a_child_that_is_unchanged(memory, write):
    bring(memory, write, issue("p"), issue("c"))
    records = [issue("p", "parent-of:c", updated_at="2025-10-02T00:00:00Z"), issue("c")]
    report = bring(memory, write, *records)
    assert [task.short_id for task in memory.tasks.show("p").children] == ["c"]
    assert exported(memory) == {record["id"]: record for record in records}
    assert report.added == 0


def test_dependency_gone_from_the_file_goes_and_one_made_here_stays(memory, write, clock):
    bring(memory, write, issue("a", "blocks:b"), issue("b"), issue("c"))
    memory.tasks.depend("a", "c")
    later = "2026-01-01T00:00:00Z"
    assert bring(memory, write, issue("a", updated_at=later), issue("b"), issue("c")).changed == 1
    assert [each.depends_on for each in memory.tasks.get("a").dependencies] == ["c"]


def test_circle_is_set_apart_the_same_way_each_time(memory, write):
    records = [issue("a", "blocks:b"), issue("b", "blocks:c"), issue("c", "blocks:a", "blocks:c")]
    first = bring(memory, write, *records)
    assert first.kept_in_metadata == {"dependency that would close a circle": 2}
    assert exported(memory) == {record["id"]: record for record in records}
    again = bring(memory, write, *records)
    assert (again.unchanged, again.kept_in_metadata) == (3, first.kept_in_metadata)


def test_circle_with_a_dependency_made_here_is_set_apart_too(memory, write):
    bring(memory, write, issue("a"), issue("b"))
    memory.tasks.depend("b", "a")
    report = bring(memory, write, issue("a", "blocks:b", updated_at="2026-01-01T00:00:00Z"))
    assert report.kept_in_metadata == {"dependency that would close a circle": 1}
    assert exported(memory)["a"]["dependencies"] == [needed("a", "blocks:b")]


def test_dependency_on_an_issue_of_another_file_stands_once_that_is_there(memory, write):
    one = issue("hq-1", "blocks:bd-1")
    assert bring(memory, write, one).kept_in_metadata == {
        "dependency on an issue that is not there": 1
    }
    bring(memory, write, issue("bd-12"))
    assert memory.tasks.get("hq-1").dependencies == (), "a longer id is another task"
    bring(memory, write, issue("bd-1"))
    report = bring(memory, write, one)
    assert (report.changed, report.dependencies) == (1, 1)
    assert memory.tasks.show("hq-1").is_blocked
    assert exported(memory)["hq-1"] == one


def test_change_made_here_goes_out_and_the_rest_as_it_was(memory, write):
    record = issue(
        "bd-1", owner="o", notes="n", content_hash="abc", dependency_count=0, dependent_count=0
    )
    bring(memory, write, record, issue("bd-2"))
    memory.tasks.update("bd-1", priority=0)
    memory.tasks.depend("bd-1", "bd-2")
    written = exported(memory)["bd-1"]
    assert {
        name: written[name] for name in ("priority", "dependency_count", "dependent_count")
    } == {"priority": 0, "dependency_count": 1, "dependent_count": 0}
    assert "content_hash" not in written
    assert written["updated_at"] != NOON
    assert [each["depends_on_id"] for each in written["dependencies"]] == ["bd-2"]
    same = set(record) - {"priority", "content_hash", "updated_at", "dependency_count"}
    assert {name: written[name] for name in same} == {name: record[name] for name in same}


def test_change_made_here_is_not_undone_by_the_old_file(memory, write):
    records = [issue("bd-1", assignee="x"), issue("bd-2")]
    bring(memory, write, *records)
    memory.tasks.close("bd-1", "Done")
    report = bring(memory, write, *records)
    assert (report.newer_here, report.unchanged, report.changed) == (1, 1, 0)
    assert memory.tasks.get("bd-1").status == "closed"


def test_issue_that_stays_as_it_is_here_is_accounted_for_all_the_same(memory, write):
    record = issue("bd-1", "odd:bd-2", "tracks:bd-2", owner="o")
    bring(memory, write, record, issue("bd-2"))
    memory.tasks.update("bd-1", priority=0)
    report = bring(memory, write, record, issue("bd-2"))
    assert (report.newer_here, report.kept_in_metadata["field owner"]) == (1, 1)


def test_newer_file_brings_its_change(memory, write):
    bring(memory, write, issue("bd-1"))
    report = bring(
        memory,
        write,
        issue("bd-1", status="closed", closed_at=NOON, updated_at="2025-10-02T00:00:00Z"),
    )
    assert (report.changed, memory.tasks.get("bd-1").status) == (1, "closed")


def test_own_export_changes_nothing_not_even_a_claim(memory, write, tmp_path):
    bring(memory, write, issue("bd-1"), issue("bd-2"))
    here = memory.tasks.add("Born here", labels=["x"], metadata={"k": [1]}, depends_on=["bd-1"])
    memory.tasks.claim("bd-1", session_id="s-1")
    file = tmp_path / "own.jsonl"
    file.write_text(text_of(memory))
    report = import_beads(memory, file)
    assert (report.unchanged, report.changed, report.newer_here) == (3, 0, 0)
    assert memory.tasks.get("bd-1").session_id == "s-1"
    assert memory.tasks.get(here.short_id) == here


def test_task_born_here_comes_in_elsewhere_as_it_was(memory, write, tmp_path, clock):
    parent = memory.tasks.add("Epic", type="epic")
    task = memory.tasks.add(
        "Part", description="All\n\n## Notes\n\nof it", parent=parent.short_id, metadata={"k": 1}
    )
    memory.tasks.close(task.short_id, "No need", reason="wontfix")
    file = tmp_path / "own.jsonl"
    file.write_text(text_of(memory))
    with open_temporary(clock=clock, durability="normal") as other:
        import_beads(other, file)
        there = other.tasks.get(task.short_id)
        assert (
            there.title,
            there.description,
            there.close_reason,
            there.summary,
            there.metadata["k"],
        ) == ("Part", "All\n\n## Notes\n\nof it", "wontfix", "No need", 1)
        assert [each.depends_on for each in there.dependencies] == [parent.short_id]
        assert text_of(other) == text_of(memory)


def test_compaction_is_no_change(memory, write, clock):
    record = issue(
        "bd-1",
        status="closed",
        closed_at=NOON,
        close_reason="Done",
        description="Long text. " * 200,
    )
    bring(memory, write, record)
    clock.advance(400 * 86_400)
    assert memory.tasks.compact() == 1
    assert memory.tasks.get("bd-1").is_compacted
    assert exported(memory)["bd-1"] == record
    assert bring(memory, write, record).unchanged == 1


def test_notes_are_kept_as_messages_found_by_search_and_given_back(memory, write):
    report = bring(memory, write, issue("bd-1"), NOTE, {"_type": "config", "deep": [1]})
    assert report.others == {"memory": 1, "config": 1}
    assert report.lines == report.issues + report.others.total()
    hit = memory.search("direnv")[0]
    assert (hit.thread_id, hit.content) == (
        "beads",
        "deploy-needs-direnv\n\nmake deploy needs `direnv allow` first",
    )
    assert text_of(memory).splitlines()[1:] == [
        render({"_type": "config", "deep": [1]}),
        render(NOTE),
    ]


def test_note_that_came_again_is_kept_once_and_a_new_wording_is_the_one_given_back(memory, write):
    for value in ("one", "one", "two", "one"):
        bring(memory, write, issue("bd-1"), NOTE | {"value": value})
        assert exported(memory)["deploy-needs-direnv"]["value"] == value
    assert memory.threads.get("beads").message_count == 3


def test_every_line_is_accounted_for(memory, write):
    report = bring(
        memory,
        write,
        issue("bd-1", updated_at="2025-10-02T00:00:00Z"),
        b"",
        b"{broken",
        {"title": "no id"},
        issue("bd-1"),
        issue("BD-1"),
        {"id": "x", "role": "user"},
        [1],
        NOTE,
    )
    assert (
        report.lines
        == 9
        == report.issues + report.others.total() + len(report.repeated) + len(report.unreadable)
    )
    assert [line for line, _ in report.unreadable] == [2, 3, 4, 7, 8]
    assert report.repeated == [
        (5, "bd-1 is older than in line 1"),
        (6, "BD-1 is older than in line 1"),
    ]
    assert any('no "id"' in reason for _, reason in report.unreadable)


def test_compressed_tracker_is_read_as_well(memory, tmp_path):
    path = tmp_path / "issues.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(issue("bd-1")).encode()))
    assert import_beads(memory, path).added == 1


def test_file_of_another_kind_is_refused_with_what_to_do(memory, write):
    path = write({"role": "user", "content": "hello"})
    with pytest.raises(
        InvalidInputError, match=r"line 1: no issue.*issues\.jsonl of a \.beads folder"
    ):
        import_beads(memory, path)
    assert memory.tasks.totals().all == 0


def test_missing_file_is_not_found(memory, tmp_path):
    with pytest.raises(NotFoundError):
        import_beads(memory, tmp_path / "nope.jsonl")


def test_empty_file_is_an_empty_tracker(memory, write):
    path = write(end=b"")
    assert import_beads(memory, path).lines == 0
    assert text_of(memory) == ""


def test_secret_is_replaced_before_anything_is_stored_and_counted(memory, write):
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    record = issue(
        "bd-1", title=f"Use {token} " + "x" * 500, notes=token, comments=[{"text": token}]
    )
    report = bring(memory, write, record)
    assert report.redacted == 3
    assert token not in text_of(memory)
    assert exported(memory)["bd-1"]["title"] == record["title"].replace(
        token, "[REDACTED:github-token]"
    )
    assert bring(memory, write, record).unchanged == 1


def test_export_is_written_as_beads_writes_it(memory, write):
    bring(memory, write, issue("b"), issue("a", title="<b> & é \u2028 重"))
    first = text_of(memory).splitlines()[0]
    assert first.startswith(
        '{"id":"a","title":"\\u003cb\\u003e \\u0026 é \\u2028 重","status":"open","priority":2,'
    )


def test_progress_is_told_while_tasks_are_stored(memory, write):
    seen: list[tuple[int, int]] = []
    path = write(*(issue(f"bd-{n}") for n in range(5)))
    import_beads(memory, path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 5) for n in range(1, 6)]


# Whatever a tracker holds, it goes out as it came.

NAMES = ["bd-1", "bd-1.1", "bd-1.2", "bd-2", "UI-7", "hq-cv-x"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = st.sampled_from(
    ["", "a", "a\n\n## Notes\n\nb", "## Design\n\nx", "## Notes\n\n", "\n\n", " a ", "wontfix: x"]
)
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), TEXT, st.lists(TEXT, max_size=2), LINES
)
TIME = st.sampled_from(
    [NOON, "2025-11-26T23:36:24.9Z", "2025-12-01T00:00:00Z", "0001-01-01T00:00:00Z", "", "soon"]
)
DEPENDENCY = st.fixed_dictionaries(
    {
        "depends_on_id": st.sampled_from([*NAMES, "nowhere"]),
        "type": st.sampled_from(
            ["blocks", "parent-child", "parent-of", "related", "tracks", "odd"]
        ),
    }
)
RECORD = st.fixed_dictionaries(
    {"title": st.one_of(TEXT, LINES, st.just("y" * 600))},
    optional={
        "status": st.sampled_from(["open", "in_progress", "closed", "tombstone", "hooked", "x"])
        | ODD,
        "priority": st.integers(0, 4) | ODD,
        "issue_type": st.sampled_from(["bug", "epic", "molecule"]) | ODD,
        "description": LINES | ODD,
        "design": LINES | ODD,
        "acceptance_criteria": LINES | ODD,
        "notes": LINES | ODD,
        "created_at": TIME | ODD,
        "updated_at": TIME | ODD,
        "closed_at": TIME | ODD,
        "deleted_at": TIME | ODD,
        "close_reason": LINES | ODD,
        "delete_reason": ODD,
        "assignee": ODD,
        "created_by": ODD,
        "labels": ODD,
        "metadata": st.dictionaries(TEXT, ODD, max_size=2) | ODD,
        "owner": ODD,
        "_type": st.just("issue"),
        "dependencies": st.lists(DEPENDENCY | ODD, max_size=4) | ODD,
        "dependency_count": ODD,
    },
)
TRACKER = st.dictionaries(st.sampled_from(NAMES), RECORD, min_size=1, max_size=5)


@given(tracker=TRACKER)
@settings(max_examples=60)
def test_whatever_a_tracker_holds_goes_out_as_it_came(write, tmp_path, tracker):
    records = {name: {"id": name, **record} for name, record in tracker.items()}
    path = write(*records.values())
    with open_temporary() as memory:
        report = import_beads(memory, path)
        assert (report.added, report.refused) == (len(records), ())
        first = text_of(memory)
        assert exported(memory) == records
        assert import_beads(memory, path).unchanged == len(records)
        assert text_of(memory) == first
    again = tmp_path / "again.jsonl"
    again.write_text(first, encoding="utf-8")
    with open_temporary() as memory:
        import_beads(memory, again)
        assert text_of(memory) == first


ACTS: dict[str, Callable[[Memory, str, str], Any]] = {
    "title": lambda memory, one, other: memory.tasks.update(one, title=f"Renamed {other}"),
    "text": lambda memory, one, other: memory.tasks.update(one,
    description=memory.tasks.get(one).description + "more"),
    "retype": lambda memory, one, other: memory.tasks.update(one, type="bug", priority=4,
    labels=["new"], assignee=""),
    "close": lambda memory, one, other: memory.tasks.close(one, "wontfix: quoted",
    reason="completed", force=True),
    "refuse": lambda memory, one, other: memory.tasks.close(one, "Not now", reason="wontfix",
    force=True),
    "reopen": lambda memory, one, other: memory.tasks.reopen(one),
    "claim": lambda memory, one, other: memory.tasks.claim(one, session_id="s-1"),
    "release": lambda memory, one, other: memory.tasks.release(one, force=True),
    "need": lambda memory, one, other: memory.tasks.depend(one, other),
    "parent": lambda memory, one, other: memory.tasks.depend(one, other, type="parent-child"),
    "part": lambda memory, one, other: memory.tasks.undepend(one, other),
    "undo": lambda memory, one, other: memory.tasks.undo(one),
    "add": lambda memory, one, other: memory.tasks.add("Born here", depends_on=[one], parent=other,
    metadata={"k": 1}),
    "compact": lambda memory, one, other: memory.tasks.compact(now=4_000_000_000_000),
}  # fmt: skip


@given(
    tracker=TRACKER,
    acts=st.lists(
        st.tuples(st.sampled_from(list(ACTS)), st.integers(0), st.integers(0)), max_size=8
    ),
)
@settings(max_examples=60)
def test_whatever_happens_here_goes_out_and_no_file_undoes_it(write, tmp_path, tracker, acts):
    """The file is older than all that is done here."""
    path = write(*({"id": name, **record} for name, record in tracker.items()))
    names, clock = list(tracker), FakeClock(1_800_000_000_000)
    with open_temporary(clock=clock) as memory:
        import_beads(memory, path)
        for act, one, other in acts:
            clock.advance(1)
            with suppress(
                ConflictError, InvalidInputError
            ):  # a circle, a claim of another, nothing to undo
                ACTS[act](memory, names[one % len(names)], names[other % len(names)])
        out = text_of(memory)
        own = tmp_path / "own.jsonl"
        own.write_text(out, encoding="utf-8")
        report = import_beads(memory, own)
        assert (report.unchanged, report.issues) == (memory.tasks.totals().all,) * 2
        import_beads(memory, path)
        assert text_of(memory) == out
    with open_temporary(clock=clock) as fresh:
        import_beads(fresh, own)
        assert text_of(fresh) == out
