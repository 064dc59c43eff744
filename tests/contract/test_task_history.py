"""History: every change is one event that says who, when, before and after; nearly every one can be
taken back.
"""

from __future__ import annotations

import pytest

from smara.errors import ConflictError, DependencyCycleError, SmaraError
from smara.tasks.models import NewTask
from tests.contract.both import EACH_DATABASE, kinds
from tests.contract.task_place import DAY, HOUR, titles

pytestmark = EACH_DATABASE

S1 = {"actor": "ann", "session_id": "s1"}
S2 = {"actor": "bob", "session_id": "s2"}


def held(tasks):
    return tasks.claim(tasks.add("x", actor="zoe").id, **S1).id


def closed(tasks):
    return tasks.close(tasks.add("x", actor="zoe").id, "done", **S1).id


def dependent(tasks):
    hinge = tasks.add("hinge")
    return tasks.depend(tasks.add("x", actor="zoe").id, hinge.id, **S1).id


def hinge_of(tasks, task_id):
    return tasks.get(task_id).dependencies[0].depends_on_id


# What is there before, the change, the kind of its event.
CHANGES = {
    "title": (lambda t: t.add("x").id, lambda t, i: t.update(i, title="y", **S1), "updated"),
    "everything": (
        lambda t: t.add("x", description="d", labels=["a"], metadata={"k": 1, "l": 2},
            assignee="eve").id,
        lambda t, i: t.update(
            i, title="y", description="", labels=["b", "c"], metadata={"k": None, "m": 3},
            assignee="", priority=0,
            type="bug", **S1,
        ),
        "updated",
    ),
    "claim": (lambda t: t.add("x").id, lambda t, i: t.claim(i, **S1), "claimed"),
    "claim of a person": (lambda t: t.add("x", assignee="eve").id, lambda t, i: t.claim(i,
    actor="ann"), "claimed"),
    "release": (held, lambda t, i: t.release(i, **S1), "released"),
    "hand over": (held, lambda t, i: t.hand_over(i, to_session="s2", **S1), "handed_over"),
    "hand over to a person": (held, lambda t, i: t.hand_over(i, to_assignee="bob", **S1),
    "handed_over"),
    "close": (lambda t: t.add("x").id, lambda t, i: t.close(i, "done", reason="wontfix", **S1),
    "closed"),
    "close what is held": (held, lambda t, i: t.close(i, "done", **S1), "closed"),
    "reopen": (closed, lambda t, i: t.reopen(i, **S1), "reopened"),
    "depend": (lambda t: t.add("x").id, lambda t, i: t.depend(i, t.add("hinge").id, **S1),
    "dependency_added"),
    "parent": (
        lambda t: t.add("x").id, lambda t, i: t.depend(i, t.add("epic").id, type="parent-child",
            **S1),
        "dependency_added",
    ),
    "undepend": (dependent, lambda t, i: t.undepend(i, hinge_of(t, i), **S1), "dependency_removed"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_one_event_with_its_actor_session_and_time(tasks, clock, change):
    prepare, act, kind = CHANGES[change]
    task_id = prepare(tasks)
    before = tasks.history(task_id)
    clock.advance(7)
    act(tasks, task_id)
    newest, *rest = tasks.history(task_id)
    assert rest == before
    assert (newest.kind, newest.actor, newest.at, newest.task_id) == (
        kind,
        "ann",
        clock.now_ms(),
        task_id,
    )
    assert newest.session_id == (None if change == "claim of a person" else "s1")
    assert newest.is_undone is False
    assert newest.before != newest.after


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_can_be_taken_back(tasks, clock, change):
    prepare, act, kind = CHANGES[change]
    task_id = prepare(tasks)
    before, events = facts(tasks, task_id), kinds(tasks.history(task_id))
    clock.advance(7)
    act(tasks, task_id)
    assert facts(tasks, task_id) != before
    clock.advance(7)
    undone = tasks.undo(task_id, force=True, **S1)
    assert undone == tasks.get(task_id)
    assert facts(tasks, task_id) == before
    assert kinds(tasks.history(task_id)) == [*events, kind, "undone"]


def facts(tasks, task_id):
    """A task without the times that say when it was last touched."""
    kept = tasks.get(task_id)
    return (
        kept.title,
        kept.description,
        kept.status,
        kept.priority,
        kept.type,
        kept.assignee,
        kept.session_id,
        kept.holder,
        kept.close_reason,
        kept.summary,
        frozenset(kept.labels),
        dict(kept.metadata),
        kept.closed_at,
        frozenset((each.depends_on_id, each.type) for each in kept.dependencies),
    )


def test_dependencies_of_several_types_taken_away_together_are_one_change(tasks):
    task_id = dependent(tasks)
    hinge = hinge_of(tasks, task_id)
    tasks.depend(task_id, hinge, type="related")
    before = facts(tasks, task_id)
    tasks.undepend(task_id, hinge)
    assert kinds(tasks.history(task_id)) == [
        "created",
        *["dependency_added"] * 2,
        "dependency_removed",
    ]
    tasks.undo(task_id)
    assert facts(tasks, task_id) == before


def test_an_event_shows_only_what_changed_before_and_after(tasks):
    added = tasks.add("old", description="kept", priority=3)
    tasks.update(added.id, title="new", priority=1)
    event = tasks.history(added.id)[0]
    assert dict(event.before) == {"title": "old", "priority": 3}
    assert dict(event.after) == {"title": "new", "priority": 1}


def test_a_created_event_says_what_was_created(tasks, clock):
    added = tasks.add("Mend the door", actor="ann", session_id="s1")
    (event,) = tasks.history(added.id)
    assert (event.kind, event.actor, event.session_id, event.at) == (
        "created",
        "ann",
        "s1",
        clock.now_ms(),
    )
    assert dict(event.before) == {}
    assert event.after["title"] == "Mend the door"


def test_a_close_event_says_how_it_was_closed(tasks):
    added = tasks.add("x")
    tasks.close(added.id, "It was the hinge.", reason="duplicate")
    event = tasks.history(added.id)[0]
    assert (event.before["status"], event.after["status"]) == ("open", "closed")
    assert (event.after["summary"], event.after["close_reason"]) == (
        "It was the hinge.",
        "duplicate",
    )


def test_history_shows_the_newest_first_and_as_many_as_asked_for(tasks, clock):
    added = tasks.add("0")
    for number in range(1, 60):
        clock.advance(1)
        tasks.update(added.id, title=f"{number}")
    history = tasks.history(added.id)
    assert len(history) == 50
    assert [event.after["title"] for event in history[:3]] == ["59", "58", "57"]
    assert len(tasks.history(added.id, limit=1_000)) == 60
    assert [event.after["title"] for event in tasks.history(added.id, limit=2)] == ["59", "58"]


def test_changes_of_the_same_millisecond_keep_their_order(tasks):
    added = tasks.add("0")
    for number in range(1, 10):
        tasks.update(added.id, title=f"{number}")
    assert [event.after["title"] for event in tasks.history(added.id)][:9] == [
        f"{n}" for n in range(9, 0, -1)
    ]


def test_event_ids_are_all_different_and_events_never_change(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, **S1)
    first = tasks.history(added.id)
    tasks.close(added.id, "done", **S1)
    assert tasks.history(added.id)[1:] == first
    assert len({event.id for event in tasks.history(added.id)}) == 3


def test_a_change_of_one_task_is_no_event_of_another(tasks):
    door, hinge = tasks.add("door"), tasks.add("hinge")
    tasks.depend(door.id, hinge.id)
    tasks.add("child", parent=hinge.id)
    assert kinds(tasks.history(hinge.id)) == ["created"]
    tasks.close(hinge.id, "done", force=True)
    assert kinds(tasks.history(door.id)) == ["created", "dependency_added"]


def test_a_refused_change_is_no_event(tasks):
    task_id = held(tasks)
    for act in (
        lambda: tasks.claim(task_id, **S2),
        lambda: tasks.release(task_id, **S2),
        lambda: tasks.close(task_id, "done", **S2),
        lambda: tasks.close(task_id, " ", **S1),
        lambda: tasks.depend(task_id, task_id, **S1),
        lambda: tasks.update(task_id, priority=7, **S1),
    ):
        with pytest.raises(SmaraError):
            act()
    assert kinds(tasks.history(task_id)) == ["created", "claimed"]


# Taking back.


def test_undo_repeated_goes_further_back_to_the_beginning(tasks, clock):
    added = tasks.add("0")
    for number in range(1, 4):
        clock.advance(1)
        tasks.update(added.id, title=f"{number}")
    assert [tasks.undo(added.id).title for _ in range(3)] == ["2", "1", "0"]
    with pytest.raises(ConflictError) as caught:
        tasks.undo(added.id)
    assert caught.value.hint.strip()
    assert tasks.get(added.id).title == "0"
    assert kinds(tasks.history(added.id)) == ["created", *["updated"] * 3, *["undone"] * 3]


def test_undo_marks_the_event_it_took_back(tasks):
    added = tasks.add("0")
    tasks.update(added.id, title="1")
    tasks.update(added.id, title="2")
    tasks.undo(added.id)
    history = tasks.history(added.id)
    assert [(event.kind, event.is_undone) for event in history] == [
        ("undone", False),
        ("updated", True),
        ("updated", False),
        ("created", False),
    ]


def test_undo_is_an_event_with_its_actor_and_what_it_changed(tasks, clock):
    added = tasks.add("old")
    tasks.update(added.id, title="new", **S1)
    clock.advance(5)
    tasks.undo(added.id, **S2)
    event = tasks.history(added.id)[0]
    assert (event.kind, event.actor, event.session_id, event.at) == (
        "undone",
        "bob",
        "s2",
        clock.now_ms(),
    )
    assert (event.before["title"], event.after["title"]) == ("new", "old")


def test_a_change_after_an_undo_is_the_next_to_be_taken_back(tasks):
    added = tasks.add("0")
    tasks.update(added.id, title="1")
    tasks.update(added.id, title="2")
    tasks.undo(added.id)
    tasks.update(added.id, title="3")
    assert tasks.undo(added.id).title == "1"
    assert tasks.undo(added.id).title == "0"
    with pytest.raises(ConflictError):
        tasks.undo(added.id)


def test_a_whole_life_can_be_taken_back_step_by_step(tasks):
    hinge = tasks.add("hinge")
    added = tasks.add("door")
    steps = [
        lambda: tasks.update(added.id, priority=0),
        lambda: tasks.depend(added.id, hinge.id),
        lambda: tasks.undepend(added.id, hinge.id),
        lambda: tasks.claim(added.id, **S1),
        lambda: tasks.release(added.id, **S1),
        lambda: tasks.close(added.id, "done", **S1),
        lambda: tasks.reopen(added.id, **S1),
    ]
    seen = []
    for step in steps:
        seen.append(facts(tasks, added.id))
        step()
    back = []
    for _ in steps:
        tasks.undo(added.id, **S1)
        back.append(facts(tasks, added.id))
    assert back == seen[::-1]
    with pytest.raises(ConflictError):
        tasks.undo(added.id)


def test_what_was_created_or_imported_cannot_be_undone(tasks):
    tasks.put_many([NewTask("imported", short_id="t-imp1")])
    added = tasks.add("created")
    for each in ("t-imp1", added.id):
        with pytest.raises(ConflictError):
            tasks.undo(each)
    assert tasks.totals().open == 2


def test_a_refused_undo_writes_no_event(tasks):
    added = tasks.add("x")
    with pytest.raises(ConflictError):
        tasks.undo(added.id)
    assert kinds(tasks.history(added.id)) == ["created"]


def test_undo_never_makes_a_cycle(tasks):
    """1. a needs b. 2. No longer. 3. b needs a. 4. Taking back step 2 would close the circle."""
    a, b = tasks.add("a"), tasks.add("b")
    tasks.depend(a.id, b.id)
    tasks.undepend(a.id, b.id)
    tasks.depend(b.id, a.id)
    with pytest.raises(DependencyCycleError):
        tasks.undo(a.id)
    assert tasks.get(a.id).dependencies == ()
    assert kinds(tasks.history(a.id)) == ["created", "dependency_added", "dependency_removed"]
    tasks.undo(b.id)
    assert len(tasks.undo(a.id).dependencies) == 1


def test_undo_never_makes_a_cycle_through_a_parent(tasks):
    epic, child = tasks.add("epic"), tasks.add("child")
    tasks.depend(child.id, epic.id, type="parent-child")
    tasks.undepend(child.id, epic.id)
    tasks.depend(child.id, epic.id)
    tasks.undepend(child.id, epic.id)
    tasks.depend(epic.id, child.id)
    with pytest.raises(DependencyCycleError):
        tasks.undo(child.id)


def test_undo_of_a_claim_frees_the_task_for_everybody(tasks):
    task_id = held(tasks)
    tasks.undo(task_id, **S1)
    assert titles(tasks.ready()) == ["x"]
    assert tasks.claim(task_id, **S2).holder == "s2"


def test_undo_never_leaves_two_holders_or_none_of_a_task_in_work(tasks, clock):
    """s1 gave it back, s2 took it: what is taken back first is the claim of s2, then the giving
    back of s1.
    """
    task_id = held(tasks)
    tasks.release(task_id, **S1)
    tasks.claim(task_id, **S2)
    undone = tasks.undo(task_id, **S2)
    assert (undone.status, undone.holder, undone.session_id) == ("open", None, None)
    undone = tasks.undo(task_id, **S1)
    assert (undone.status, undone.holder) == ("in_progress", "s1")
    with pytest.raises(ConflictError):
        tasks.claim(task_id, **S2)


def test_undo_of_a_close_blocks_again_what_waited_for_it(tasks):
    hinge = tasks.add("hinge")
    tasks.add("door", depends_on=[hinge.id])
    tasks.close(hinge.id, "done")
    assert titles(tasks.ready()) == ["door"]
    tasks.undo(hinge.id)
    assert titles(tasks.ready()) == ["hinge"]


def test_an_expired_claim_can_be_taken_back_or_is_refused_and_is_never_held_by_a_stranger(
    tasks, clock
):
    task_id = held(tasks)
    clock.advance(5 * HOUR)
    tasks.expire()
    try:
        undone = tasks.undo(task_id, **S1)
    except ConflictError:
        undone = tasks.get(task_id)
    assert (undone.status, undone.holder) in (("in_progress", "s1"), ("open", None))


def test_undo_of_a_compaction_gives_the_text_back(tasks, clock):
    text = "The hinge of the door squeaks in the morning. " * 200
    added = tasks.add("x", description=text)
    tasks.close(added.id, "done")
    clock.advance(40 * DAY)
    assert tasks.compact() == 1
    assert kinds(tasks.history(added.id)) == ["created", "closed", "compacted"]
    undone = tasks.undo(added.id)
    assert (undone.description, undone.compaction_level, undone.status) == (text, 0, "closed")


def test_metadata_of_any_shape_is_taken_back_exactly(tasks):
    before = {"keep": [1, {"x": None}], "change": 10**30, "nul\x00": "\ud800"}
    added = tasks.add("x", metadata=before)
    tasks.update(added.id, metadata={"change": "y", "new": 1, "nul\x00": None})
    assert tasks.undo(added.id).metadata == before
