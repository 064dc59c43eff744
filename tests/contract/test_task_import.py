"""Import and export: everything a task had elsewhere is kept; twice is the same as once."""

from __future__ import annotations

from dataclasses import replace

import smara
from smara.tasks.models import NewTask, TaskTotals
from tests.contract.both import EACH_DATABASE, kinds
from tests.contract.task_place import titles

pytestmark = EACH_DATABASE

WHOLE = NewTask(
    "Mend the door",
    short_id="bd-7a2",
    description="It squeaks.",
    status="closed",
    priority=0,
    type="bug",
    assignee="ann",
    created_at=1_700_000_000_000,
    created_by="bob",
    updated_at=1_700_000_500_000,
    closed_at=1_700_000_600_000,
    close_reason="duplicate",
    summary="See the other one.",
    labels=["house"],
    metadata={"k": [1]},
)


def test_everything_an_imported_task_had_is_kept(tasks):
    done = tasks.put_many([WHOLE], actor="importer")
    assert (done.added, done.changed, done.unchanged, done.dependencies, done.refused) == (
        1,
        0,
        0,
        0,
        (),
    )
    kept = tasks.get("bd-7a2")
    for name in (
        "title",
        "short_id",
        "description",
        "status",
        "priority",
        "type",
        "assignee",
        "created_at",
        "created_by",
        "updated_at",
        "closed_at",
        "close_reason",
        "summary",
        "metadata",
    ):
        assert getattr(kept, name) == getattr(WHOLE, name), name
    assert kept.labels == ("house",)
    (event,) = tasks.history("bd-7a2")
    assert (event.kind, event.actor) == ("imported", "importer")


def test_an_imported_task_is_found_by_its_short_id_without_its_prefix(tasks):
    tasks.put_many([WHOLE])
    assert tasks.get("7a2").title == tasks.get("BD-7A2").title == "Mend the door"


def test_importing_twice_is_the_same_as_once(tasks):
    batch = [WHOLE, NewTask("child", short_id="bd-7a2.1", depends_on=[("bd-7a2", "parent-child")])]
    tasks.put_many(batch)
    before = list(tasks.export()), tasks.history("bd-7a2"), tasks.history("bd-7a2.1")
    again = tasks.put_many(batch)
    assert (again.added, again.changed, again.unchanged, again.newer_here) == (0, 0, 2, 0)
    assert (list(tasks.export()), tasks.history("bd-7a2"), tasks.history("bd-7a2.1")) == before


def test_the_same_short_id_with_other_words_is_brought_up_to_date(tasks):
    tasks.put_many([WHOLE])
    before = tasks.get("bd-7a2")
    done = tasks.put_many(
        [replace(WHOLE, title="Mend the gate", priority=3, updated_at=WHOLE.updated_at + 1_000)]
    )
    assert (done.added, done.changed, done.unchanged, done.newer_here) == (0, 1, 0, 0)
    after = tasks.get("bd-7a2")
    assert (after.id, after.title, after.priority) == (before.id, "Mend the gate", 3)
    assert tasks.totals().all == 1
    assert len(tasks.history("bd-7a2")) == 2


def test_a_task_that_was_changed_here_later_is_left_as_it_is(tasks):
    tasks.put_many([WHOLE])
    mine = tasks.update("bd-7a2", title="Changed here")
    done = tasks.put_many(
        [replace(WHOLE, title="Changed there", updated_at=WHOLE.updated_at + 1_000)]
    )
    assert (done.added, done.changed, done.newer_here) == (0, 0, 1)
    assert tasks.get("bd-7a2") == mine


def test_a_task_that_was_closed_elsewhere_meanwhile_is_closed_here(tasks):
    is_open = replace(
        WHOLE,
        status="open",
        closed_at=None,
        close_reason=None,
        summary=None,
        updated_at=WHOLE.created_at,
    )
    tasks.put_many(
        [is_open, NewTask("later", short_id="bd-9zz", depends_on=[("bd-7a2", "blocks")])]
    )
    assert titles(tasks.ready()) == ["Mend the door"]
    tasks.put_many([WHOLE])
    assert titles(tasks.ready()) == ["later"]


def test_dependencies_may_name_tasks_that_come_later_in_the_batch(tasks):
    done = tasks.put_many(
        [
            NewTask(
                "third", short_id="x-333", depends_on=[("x-222", "blocks"), ("x-111", "related")]
            ),
            NewTask("second", short_id="x-222", depends_on=[("x-111", "blocks")]),
            NewTask("first", short_id="x-111"),
        ]
    )
    assert (done.added, done.dependencies, done.refused) == (3, 3, ())
    assert titles(tasks.ready()) == ["first"]


def test_dependencies_may_name_tasks_that_are_known_here(tasks):
    known = tasks.add("known")
    tasks.put_many([NewTask("new", short_id="x-111", depends_on=[(known.short_id, "blocks")])])
    assert titles(tasks.show("x-111").blocking_tasks) == ["known"]


def test_a_dependency_on_an_unknown_task_is_reported_and_the_task_is_kept(tasks):
    done = tasks.put_many([NewTask("new", short_id="x-111", depends_on=[("x-999", "blocks")])])
    assert (done.added, done.dependencies) == (1, 0)
    (refused,) = done.refused
    assert refused.task == "x-111"
    assert "x-999" in refused.what + refused.why
    assert tasks.get("x-111").dependencies == ()
    assert titles(tasks.ready()) == ["new"]


def test_a_cycle_in_an_import_is_broken_and_reported(tasks):
    done = tasks.put_many(
        [
            NewTask("a", short_id="x-111", depends_on=[("x-222", "blocks")]),
            NewTask("b", short_id="x-222", depends_on=[("x-333", "blocks")]),
            NewTask("c", short_id="x-333", depends_on=[("x-111", "blocks"), ("x-333", "blocks")]),
        ]
    )
    assert (done.added, done.dependencies, len(done.refused)) == (3, 2, 2)
    assert all(each.why for each in done.refused)
    assert len(tasks.ready()) == 1
    assert len(tasks.critical_path()) == 3


def test_an_import_without_short_ids_gives_each_task_one(tasks):
    done = tasks.put_many([NewTask("a"), NewTask("b")])
    assert done.added == 2
    assert len({each.short_id for each in tasks.export()}) == 2


def test_an_empty_import_does_nothing(tasks):
    done = tasks.put_many([])
    assert (done.added, done.changed, done.unchanged, done.dependencies, done.refused) == (
        0,
        0,
        0,
        0,
        (),
    )


def test_an_import_may_be_a_stream(tasks):
    assert (
        tasks.put_many(
            NewTask(f"{number}", short_id=f"x-{number:04}") for number in range(300)
        ).added
        == 300
    )
    assert tasks.totals() == TaskTotals(open=300, ready=300)


def test_imported_tasks_are_worked_on_like_any_other(memory, tasks):
    tasks.put_many([replace(WHOLE, status="open", closed_at=None, close_reason=None, summary=None)])
    claimed = tasks.claim("bd-7a2", session_id="s1")
    assert claimed.holder == "s1"
    tasks.close("7a2", "done", session_id="s1")
    assert titles(hit.task for hit in memory.search_tasks("squeaks").hits) == ["Mend the door"]
    assert kinds(tasks.history("bd-7a2")) == ["imported", "claimed", "closed"]


def test_imported_tasks_keep_their_age_in_the_order_of_what_is_ready(tasks):
    tasks.add("today")
    tasks.put_many([NewTask("new", created_at=2_000), NewTask("old", created_at=1_000)])
    assert titles(tasks.ready()) == ["old", "new", "today"]


def test_export_gives_every_task_by_age(tasks, task):
    for title in ("a", "b", "c"):
        task(title)
    tasks.close(tasks.list()[0].id, "done")
    tasks.put_many([NewTask("oldest", created_at=1_000)])
    assert titles(tasks.export()) == ["oldest", "a", "b", "c"]
    assert all(each == tasks.get(each.id) for each in tasks.export())


def test_what_is_exported_can_be_imported_elsewhere_and_is_the_same(tasks, task, tmp_path, clock):
    epic = task("epic", type="epic", labels=["x"], metadata={"nul\x00": ["\ud800"]})
    first = task("first", parent=epic.id, priority=0)
    second = task("second", parent=epic.id, depends_on=[first.id])
    tasks.depend(second.id, epic.id, type="related")
    tasks.claim(first.id, actor="ann")
    done = task("done")
    tasks.close(done.id, "because", reason="wontfix")
    names = NewTask.__dataclass_fields__.keys() - {"depends_on", "labels", "metadata"}
    moved = [
        NewTask(
            **{name: getattr(each, name) for name in names},
            labels=each.labels,
            metadata=each.metadata,
            depends_on=[(needed.depends_on_id, needed.type) for needed in each.dependencies],
        )
        for each in tasks.export()
    ]
    with smara.open(tmp_path / "elsewhere.db", clock=clock) as other:
        assert other.tasks.put_many(moved).refused == ()
        for mine, theirs in zip(tasks.export(), other.tasks.export(), strict=True):
            assert replace(theirs, dependencies=(), claimed_at=None) == replace(
                mine, dependencies=(), claimed_at=None
            )
            assert {(each.depends_on_id, each.type) for each in theirs.dependencies} == {
                (each.depends_on_id, each.type) for each in mine.dependencies
            }
        assert other.tasks.totals() == tasks.totals()
        assert titles(other.tasks.ready()) == titles(tasks.ready())
