"""One issue of beads as a task, and the task as that issue again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from smara.adapters.beads.issues import (
    IssueEdge,
    circular,
    edge_of,
    fold,
    implied_parent,
    issue_of,
    rfc3339,
    take,
    unfold,
    with_residue,
)
from smara.adapters.beads.sync import FIELDS, render
from smara.tasks.models import NewTask, Task

TIMES = {
    "created_at": "2025-11-02T21:58:07.295058-08:00",
    "updated_at": "2025-11-26T23:36:24.908588941Z",
}


def issue(**fields: Any) -> dict[str, Any]:
    return {
        "id": "bd-1",
        "title": "T",
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        **TIMES,
    } | fields


def stored(new: NewTask) -> Task:
    """The task that a store would make of it."""
    return Task(
        "uuid",
        new.short_id or "",
        new.title,
        description=new.description,
        status=new.status,
        priority=new.priority,
        type=new.type,
        assignee=new.assignee,
        session_id=None,
        claimed_at=None,
        created_at=new.created_at or 5,
        created_by=new.created_by,
        updated_at=new.updated_at or 5,
        closed_at=new.closed_at,
        close_reason=new.close_reason,
        summary=new.summary,
        labels=tuple(new.labels),
        metadata=new.metadata,
    )


def came(record: dict[str, Any]) -> Task:
    return stored(with_residue(record, take(record)))


def test_fields_with_a_counterpart_become_those():
    task = take(
        issue(
            description="All of it",
            assignee="anna",
            created_by="ben",
            labels=["b", "a"],
            priority=0,
            issue_type="bug",
            metadata={"sprint": 7},
        )
    )
    assert (task.short_id, task.title, task.description, task.assignee) == (
        "bd-1",
        "T",
        "All of it",
        "anna",
    )
    assert (task.created_by, task.labels, task.priority, task.type) == ("ben", ("a", "b"), 0, "bug")
    assert (task.created_at, task.updated_at) == (1762149487295, 1764200184909)
    assert task.metadata == {"sprint": 7}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("open", "open"), ("in_progress", "in_progress"), ("closed", "closed"), ("tombstone",
        "closed"),
        ("hooked", "in_progress"), ("blocked", "open"), ("deferred", "open"), ("pinned", "open"),
        ("review", "open"),
        (None, "open"), (7, "open"),
    ],
)  # fmt: skip
def test_status_becomes_the_nearest_of_ours_and_goes_out_as_it_was(theirs, ours):
    task = came(issue(status=theirs))
    assert task.status == ours
    assert issue_of(task) == (issue(status=theirs), False)


def test_unknown_status_with_a_time_of_closing_is_closed():
    assert take(issue(status="done", closed_at="2026-01-01T00:00:00Z")).status == "closed"


@pytest.mark.parametrize("type_", ["molecule", "merge-request", "", None, 3])
def test_type_that_we_do_not_have_is_a_task_and_goes_out_as_it_was(type_):
    task = came(issue(issue_type=type_))
    assert task.type == "task"
    assert issue_of(task)[0]["issue_type"] == type_


@pytest.mark.parametrize(
    ("said", "reason", "summary"),
    [
        ("Merged to main", "completed", "Merged to main"),
        ("wontfix: too rare", "wontfix", "too rare"),
        ("duplicate", "duplicate", None),
        ("completed: wontfix: quoted", "completed", "wontfix: quoted"),
        ("", "completed", None),
    ],
)
def test_reason_for_closing_is_free_text_or_begins_with_one_of_ours(said, reason, summary):
    record = issue(status="closed", closed_at="2026-01-01T00:00:00Z", close_reason=said)
    task = came(record)
    assert (task.close_reason, task.summary) == (reason, summary)
    assert issue_of(task) == (record, False)


def test_deleted_issue_is_closed_when_it_was_deleted_and_stays_a_tombstone():
    record = issue(
        status="tombstone",
        deleted_at="2026-01-01T00:00:00Z",
        deleted_by="x",
        delete_reason="batch delete",
    )
    task = came(record)
    assert (task.status, task.close_reason, task.summary) == ("closed", "wontfix", "batch delete")
    assert task.closed_at == 1767225600000
    assert issue_of(task) == (record, False)


def test_reopened_here_is_not_deleted_any_more():
    record = issue(
        status="tombstone",
        deleted_at="2026-01-01T00:00:00Z",
        delete_reason="batch delete",
        owner="o",
    )
    reopened = replace(
        came(record), status="open", closed_at=None, close_reason=None, summary=None, updated_at=9
    )
    written, is_changed = issue_of(reopened)
    assert is_changed
    assert written == issue(status="open", owner="o", updated_at="1970-01-01T00:00:00.009Z")


def test_exact_times_are_kept_until_the_task_changes():
    task = came(issue())
    assert issue_of(task)[0]["created_at"] == TIMES["created_at"]
    changed = issue_of(replace(task, priority=0, updated_at=1_770_841_013_366))[0]
    assert changed == issue(priority=0, updated_at="2026-02-11T20:16:53.366Z")


@pytest.mark.parametrize(
    "title",
    ["x" * 600, "two\nlines", " padded ", "", None, ["no text"]],
    ids=["long", "lines", "spaces", "no", "-", "list"],
)
def test_title_of_any_kind_goes_out_as_it_was(title):
    task = came(issue(title=title))
    assert 0 < len(task.title) <= 500
    assert issue_of(task) == (issue(title=title), False)


def test_title_changed_here_wins():
    assert issue_of(replace(came(issue(title="x" * 600)), title="Short"))[0]["title"] == "Short"


def test_fields_that_nobody_knows_are_kept():
    extra = {
        "owner": "o",
        "estimated_minutes": 30,
        "comments": [{"id": 1, "text": "hm"}],
        "x": {"deep": [1, None, 2.5]},
    }
    assert issue_of(came(issue(**extra))) == (issue(**extra), False)


@pytest.mark.parametrize(
    "odd",
    [
        {"priority": 9}, {"priority": -1}, {"priority": "1"}, {"priority": True},
            {"priority": None},
        {"assignee": ""}, {"assignee": 5}, {"assignee": "a\nb"}, {"labels": []}, {"labels": None},
            {"labels": "a"},
        {"labels": ["b", "a", "a", " ", 7]}, {"description": ""}, {"description": None},
            {"metadata": []},
        {"metadata": {"beads": 1, "a": 2}}, {"metadata": {}},
            {"created_at": "0001-01-01T00:00:00Z"},
        {"created_at": "yesterday"}, {"updated_at": 5}, {"created_by": ""}, {"design": None},
            {"notes": ["x"]},
        {"closed_at": "2026-01-01T00:00:00Z"}, {"close_reason": "while open"}, {"_type": "issue"},
    ],
    ids=str,
)  # fmt: skip
def test_odd_values_go_out_as_they_were(odd):
    assert issue_of(came(issue(**odd))) == (issue(**odd), False)


@pytest.mark.parametrize(
    "missing", ["title", "status", "priority", "issue_type", "created_at", "updated_at"]
)
def test_missing_fields_stay_missing(missing):
    record = {name: value for name, value in issue().items() if name != missing}
    assert issue_of(came(record)) == (record, False)


def test_what_a_store_fills_in_is_no_change():
    bare = {"id": "bd-1", "title": "T"}
    filled = replace(came(bare), created_by="importer", created_at=7, updated_at=7)
    assert issue_of(filled) == (bare, False)


def test_task_that_was_born_here_is_a_proper_issue():
    new = NewTask(
        "Sign webhooks",
        "t-k3f9",
        description="With HMAC",
        status="closed",
        priority=1,
        type="feature",
        assignee="me",
        created_at=1_770_841_013_366,
        created_by="me",
        updated_at=1_770_841_014_000,
        closed_at=1_770_841_014_000,
        close_reason="duplicate",
        summary="See t-x2m1",
        labels=("b",),
        metadata={"k": 1},
    )
    record, _ = issue_of(stored(new))
    assert record == {
        "id": "t-k3f9",
        "title": "Sign webhooks",
        "description": "With HMAC",
        "status": "closed",
        "priority": 1,
        "issue_type": "feature",
        "assignee": "me",
        "created_at": "2026-02-11T20:16:53.366Z",
        "created_by": "me",
        "updated_at": "2026-02-11T20:16:54Z",
        "closed_at": "2026-02-11T20:16:54Z",
        "close_reason": "duplicate: See t-x2m1",
        "metadata": {"k": 1},
        "labels": ["b"],
    }
    assert with_residue(record, take(record)) == new, "and comes in again as it was"


def test_who_works_on_it_is_told_and_the_session_is_not():
    held = replace(came(issue()), status="in_progress", session_id="s-1", assignee="claude")
    assert issue_of(held)[0]["assignee"] == "claude"
    assert "s-1" not in str(issue_of(held))


TEXTS = {
    "description": "Why",
    "design": "How",
    "acceptance_criteria": "- [ ] it works",
    "notes": "later\n\nmore",
}


def test_four_texts_become_sections_of_one_and_come_apart_again():
    text = fold(TEXTS)
    assert text == (
        "Why\n\n## Design\n\nHow\n\n## Acceptance criteria\n\n- [ ] it works\n\n## "
        "Notes\n\nlater\n\nmore"
    )
    assert unfold(text, ["design", "acceptance_criteria", "notes"]) == TEXTS


@pytest.mark.parametrize("names", [[], ["notes"], ["design", "notes"], ["description", "design"]])
def test_texts_that_are_not_there_leave_no_heading(names):
    some = {name: TEXTS[name] for name in names}
    assert unfold(fold(some), [name for name in names if name != "description"]) == some


def test_description_edited_here_is_taken_apart_at_its_headings():
    task = came(issue(**TEXTS))
    edited = replace(
        task, description=task.description.replace("How", "How else").replace("Why", "Because")
    )
    written = issue_of(edited)[0]
    assert {name: written[name] for name in TEXTS} == {
        **TEXTS,
        "description": "Because",
        "design": "How else",
    }


def test_description_without_its_headings_is_all_description():
    written = issue_of(replace(came(issue(**TEXTS)), description="All new"))[0]
    assert {name: written.get(name) for name in TEXTS} == dict.fromkeys(TEXTS) | {
        "description": "All new"
    }


@pytest.mark.parametrize(
    "texts",
    [
        {"description": "a\n\n## Notes\n\nb", "notes": "c"},
        {"description": "a", "notes": "b\n\n## Notes\n\nc"},
        {"description": "## Design\n\nx", "design": "y"},
        {"description": "\n\n", "notes": "\n"},
        {"notes": "## Design\n\nz", "design": "y"},
    ],
)
def test_texts_that_look_like_headings_go_out_as_they_were(texts):
    assert issue_of(came(issue(**texts))) == (issue(**texts), False)


def test_compacted_task_goes_out_whole():
    task = came(issue(**TEXTS))
    short = replace(task, description="Why.", original_content=task.description, compaction_level=1)
    assert issue_of(short) == (issue(**TEXTS), False)


@pytest.mark.parametrize(
    ("name", "edge"),
    [
        ("blocks", IssueEdge("a", "b", "blocks")), ("blocked-by", IssueEdge("a", "b", "blocks")),
        ("parent-child", IssueEdge("a", "b", "parent-child")), ("parent-of", IssueEdge("b", "a",
        "parent-child")),
        ("related", IssueEdge("a", "b", "related")), ("discovered-from", IssueEdge("a", "b",
        "related")),
        ("tracks", IssueEdge("a", "b", "related")), ("waits-for", IssueEdge("a", "b", "blocks")),
        ("authored-by", None),
    ],
)  # fmt: skip
def test_dependency_says_what_its_type_means(name, edge):
    assert edge_of("a", {"issue_id": "a", "depends_on_id": "b", "type": name}) == edge


@pytest.mark.parametrize(
    "odd", [None, "b", {}, {"depends_on_id": 4}, {"depends_on_id": "b", "type": 4}]
)
def test_odd_dependency_says_nothing(odd):
    assert edge_of("a", odd) is None


@pytest.mark.parametrize(
    ("name", "parent"),
    [("bd-1.2", "bd-1"), ("bd-1.2.3", "bd-1.2"), ("bd-1", None), ("v1.x", None), (".1", None)],
)
def test_hierarchical_id_names_its_parent(name, parent):
    assert implied_parent(name) == parent


def needs(*pairs: str) -> list[IssueEdge]:
    return [IssueEdge(pair[0], pair[1], "blocks") for pair in pairs]


def test_edge_that_closes_a_circle_is_refused_and_the_ones_before_it_stand():
    assert circular(needs("ab", "bc", "ca", "cd"), []) == set(needs("ca"))


def test_parent_waits_for_its_child():
    edges = [IssueEdge("child", "epic", "parent-child"), IssueEdge("child", "epic", "blocks")]
    assert circular(edges, []) == {edges[1]}
    assert circular([edges[0], IssueEdge("epic", "child", "blocks")], []) == set()


def test_what_stands_already_comes_first():
    assert circular(needs("ab"), needs("ba")) == set(needs("ab"))


def test_related_tasks_wait_for_nothing_and_nobody_for_itself():
    loop = [IssueEdge("a", "b", "related"), IssueEdge("b", "a", "related")]
    assert circular([*loop, IssueEdge("a", "a", "related"), IssueEdge("a", "a", "blocks")], []) == {
        IssueEdge("a", "a", "related"),
        IssueEdge("a", "a", "blocks"),
    }


def test_tasks_between_two_circles_are_in_none():
    assert circular(needs("ab", "ba", "bx", "xc", "cd", "dc"), []) == set(needs("ba", "dc"))


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "1970-01-01T00:00:00Z"), (1_770_841_013_360, "2026-02-11T20:16:53.36Z"), (None, None)],
)
def test_time_is_written_as_beads_does(milliseconds, text):
    assert rfc3339(milliseconds) == text


def test_fields_are_written_in_the_order_of_beads_and_others_follow_by_name():
    shuffled = dict.fromkeys(["zz", "labels", "aa", *reversed(FIELDS)])
    assert list(json.loads(render(shuffled))) == [*FIELDS, "aa", "zz"]
