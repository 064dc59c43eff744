"""Dependencies: what waits for what is computed whenever somebody asks, and nothing ever waits for
itself.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import pytest

from smara.errors import DependencyCycleError, InvalidInputError, NotFoundError, TaskBlockedError
from smara.tasks.models import TaskProgress, TaskTotals
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.task_place import titles

pytestmark = EACH_DATABASE


@pytest.fixture
def named(task):
    """Adds tasks named by letters: ``a, b = named("ab")``."""
    return lambda names: [task(name) for name in names]


def edges(task):
    return {(each.depends_on_id, each.type) for each in task.dependencies}


# What blocks.


def test_a_task_with_an_open_blocker_is_blocked_and_the_blocker_is_named(tasks, named):
    door, hinge = named(["door", "hinge"])
    door = tasks.depend(door.id, hinge.id)
    assert edges(door) == {(hinge.id, "blocks")}
    shown = tasks.show(door.id)
    assert (shown.is_blocked, titles(shown.blocking_tasks)) == (True, ["hinge"])
    assert titles(tasks.show(hinge.id).dependents) == ["door"]
    assert titles(tasks.ready()) == ["hinge"]
    assert (tasks.ready().ready_count, tasks.ready().blocked_count) == (1, 1)


def test_closing_the_last_blocker_frees_a_task_and_reopening_blocks_it_again(tasks, named):
    door, hinge, screw = named(["door", "hinge", "screw"])
    tasks.depend(door.id, hinge.id)
    tasks.depend(door.id, screw.id)
    tasks.close(hinge.id, "done")
    assert titles(tasks.show(door.id).blocking_tasks) == ["screw"]
    tasks.close(screw.id, "done")
    assert tasks.show(door.id).is_blocked is False
    assert titles(tasks.ready()) == ["door"]
    tasks.reopen(hinge.id)
    assert titles(tasks.show(door.id).blocking_tasks) == ["hinge"]
    assert titles(tasks.ready()) == ["hinge"]


@pytest.mark.parametrize("reason", ["completed", "wontfix", "duplicate"])
def test_a_blocker_closed_for_any_reason_blocks_no_more(tasks, named, reason):
    door, hinge = named(["door", "hinge"])
    tasks.depend(door.id, hinge.id)
    tasks.close(hinge.id, "done", reason=reason)
    assert titles(tasks.ready()) == ["door"]


def test_a_blocker_in_work_blocks_too(tasks, named):
    door, hinge = named(["door", "hinge"])
    tasks.depend(door.id, hinge.id)
    tasks.claim(hinge.id, session_id="s1")
    assert titles(tasks.show(door.id).blocking_tasks) == ["hinge"]
    assert list(tasks.ready()) == []
    assert tasks.ready().blocked_count == 1


def test_a_chain_is_worked_off_one_after_the_other(tasks, named):
    chain = named("abcd")
    for later, earlier in zip(chain[1:], chain, strict=False):
        tasks.depend(later.id, earlier.id)
    done = []
    while (taken := tasks.claim_next(session_id="s1")) is not None:
        assert (tasks.ready().ready_count, tasks.ready().blocked_count) == (0, 3 - len(done))
        done.append(taken.title)
        tasks.close(taken.id, "done", session_id="s1")
    assert done == ["a", "b", "c", "d"]


def test_related_never_blocks(tasks, named):
    door, paint = named(["door", "paint"])
    tasks.depend(door.id, paint.id, type="related")
    tasks.depend(paint.id, door.id, type="related")
    assert titles(tasks.ready()) == ["door", "paint"]
    shown = tasks.show(door.id)
    assert (shown.is_blocked, shown.blocking_tasks, shown.dependents) == (False, (), ())
    assert titles(shown.related) == ["paint"]
    assert tasks.claim(door.id, session_id="s1").status == "in_progress"


def test_a_parent_waits_for_its_children(tasks, named):
    (epic,) = named(["epic"])
    children = [tasks.add(f"child {number}", parent=epic.id) for number in range(2)]
    assert edges(children[0]) == {(epic.id, "parent-child")}
    assert titles(tasks.ready()) == ["child 0", "child 1"]
    refused(lambda: tasks.claim(epic.id, session_id="s1"), TaskBlockedError)
    shown = tasks.show(epic.id)
    assert (titles(shown.children), titles(shown.blocking_tasks)) == (
        ["child 0", "child 1"],
        ["child 0", "child 1"],
    )
    assert [titles(tasks.show(each.id).parents) for each in children] == [["epic"], ["epic"]]
    assert titles(tasks.show(children[0].id).dependents) == ["epic"]
    for child in children:
        tasks.close(child.id, "done")
    assert titles(tasks.ready()) == ["epic"]


def test_a_child_does_not_wait_for_its_parent(tasks, named):
    (epic,) = named(["epic"])
    child = tasks.add("child", parent=epic.id)
    assert tasks.show(child.id).is_blocked is False
    assert tasks.claim(child.id, session_id="s1").status == "in_progress"


def test_a_grandparent_waits_through_its_children(tasks, named):
    (epic,) = named(["epic"])
    child = tasks.add("child", parent=epic.id)
    grandchild = tasks.add("grandchild", parent=child.id)
    assert titles(tasks.ready()) == ["grandchild"]
    assert tasks.totals() == TaskTotals(open=3, ready=1, blocked=2)
    tasks.close(grandchild.id, "done")
    assert titles(tasks.ready()) == ["child"]
    tasks.close(child.id, "done")
    assert titles(tasks.ready()) == ["epic"]


def test_blocking_goes_one_step_a_closed_task_in_between_hides_what_it_waited_for(tasks, named):
    a, b, c = named("abc")
    tasks.depend(c.id, b.id)
    tasks.depend(b.id, a.id)
    tasks.close(b.id, "not needed", reason="wontfix", force=True)
    assert titles(tasks.ready()) == ["a", "c"]


def test_blockers_of_a_parent_do_not_block_its_children(tasks, named):
    epic, blocker = named(["epic", "blocker"])
    tasks.depend(epic.id, blocker.id)
    tasks.add("child", parent=epic.id)
    assert titles(tasks.ready()) == ["blocker", "child"]


def test_blocked_is_computed_and_never_a_status(tasks, named):
    door, hinge = named(["door", "hinge"])
    tasks.depend(door.id, hinge.id)
    assert tasks.get(door.id).status == "open"
    before = tasks.get(door.id)
    tasks.close(hinge.id, "done")
    assert tasks.get(door.id) == before


def test_a_task_in_work_that_became_blocked_stays_in_work_and_counts_as_blocked(tasks, named):
    door, hinge = named(["door", "hinge"])
    tasks.claim(door.id, session_id="s1")
    tasks.depend(door.id, hinge.id)
    assert tasks.get(door.id).status == "in_progress"
    assert tasks.show(door.id).is_blocked is True
    assert tasks.totals() == TaskTotals(open=1, in_progress=1, ready=1, blocked=1)


# Adding and taking away.


def test_add_takes_a_parent_and_what_it_depends_on_by_any_id(tasks, named):
    epic, hinge, screw = named(["epic", "hinge", "screw"])
    added = tasks.add("door", parent=epic.short_id, depends_on=[hinge.id, screw.short_id[2:]])
    assert edges(added) == {(epic.id, "parent-child"), (hinge.id, "blocks"), (screw.id, "blocks")}
    assert added == tasks.get(added.id)
    assert kinds(tasks.history(added.id)) == ["created"]


def test_add_with_an_unknown_task_adds_nothing(tasks, named):
    (hinge,) = named(["hinge"])
    for given in ({"parent": "t-zzzzzzz"}, {"depends_on": [hinge.id, "t-zzzzzzz"]}):
        refused(lambda: tasks.add("door", **given), NotFoundError)  # noqa: B023
    assert titles(tasks.list()) == ["hinge"]


def test_add_below_and_behind_the_same_task_is_a_cycle(tasks, named):
    """The parent waits for the child, and the child would wait for the parent."""
    (epic,) = named(["epic"])
    refused(lambda: tasks.add("child", parent=epic.id, depends_on=[epic.id]), DependencyCycleError)
    assert titles(tasks.list()) == ["epic"]


def test_depend_twice_is_the_same_as_once(tasks, named):
    door, hinge = named(["door", "hinge"])
    first = tasks.depend(door.id, hinge.id)
    assert tasks.depend(door.short_id, hinge.short_id) == first
    assert kinds(tasks.history(door.id)) == ["created", "dependency_added"]


def test_a_dependency_of_each_type_may_stand_between_the_same_two(tasks, named):
    epic, child = named(["epic", "child"])
    tasks.depend(epic.id, child.id)
    tasks.depend(epic.id, child.id, type="related")
    tasks.depend(child.id, epic.id, type="parent-child")
    assert edges(tasks.get(epic.id)) == {(child.id, "blocks"), (child.id, "related")}
    shown = tasks.show(epic.id)
    assert (titles(shown.blocking_tasks), titles(shown.children)) == (["child"], ["child"])
    assert tasks.ready().blocked_count == 1


def test_an_unknown_type_of_dependency_is_refused_with_the_known_ones(tasks, named):
    door, hinge = named(["door", "hinge"])
    for act in (tasks.depend, tasks.undepend):
        with pytest.raises(InvalidInputError, match="blocks, parent-child, related"):
            act(door.id, hinge.id, type="needs")


def test_undepend_takes_away_one_type_or_all(tasks, named):
    door, hinge = named(["door", "hinge"])
    tasks.depend(door.id, hinge.id)
    tasks.depend(door.id, hinge.id, type="related")
    assert edges(tasks.undepend(door.id, hinge.id, type="related")) == {(hinge.id, "blocks")}
    tasks.depend(door.id, hinge.id, type="related")
    assert edges(tasks.undepend(door.id, hinge.id)) == set()
    assert titles(tasks.ready()) == ["door", "hinge"]


def test_undepend_of_what_is_not_there_changes_nothing(tasks, named):
    door, hinge = named(["door", "hinge"])
    before = tasks.depend(door.id, hinge.id)
    assert tasks.undepend(door.id, hinge.id, type="related") == before
    assert tasks.undepend(hinge.id, door.id) == tasks.get(hinge.id)
    assert kinds(tasks.history(door.id)) == ["created", "dependency_added"]
    assert kinds(tasks.history(hinge.id)) == ["created"]


def test_a_dependency_knows_who_made_it_and_when(tasks, named, clock):
    door, hinge = named(["door", "hinge"])
    clock.advance(5)
    (made,) = tasks.depend(door.id, hinge.id, actor="ann").dependencies
    assert (made.task_id, made.created_at, made.created_by) == (door.id, clock.now_ms(), "ann")


# Cycles.


@pytest.mark.parametrize("type", ["blocks", "parent-child", "related"])
def test_a_task_cannot_depend_on_itself(tasks, named, type):
    (door,) = named(["door"])
    error = refused(lambda: tasks.depend(door.id, door.short_id, type=type), DependencyCycleError)
    assert list(error.path) == [door.short_id, door.short_id]
    assert str(error).startswith("A task cannot wait for itself")
    assert tasks.get(door.id).dependencies == ()


def assert_cycle(tasks, error, waits_for):
    """The path is a real circle: every step is one that waits for the next, or the one that was
    refused.
    """
    by_short = {each.short_id: each for each in tasks.export()}
    assert error.path[0] == error.path[-1]
    assert len(set(error.path)) == len(error.path) - 1
    steps = {(by_short[one].title, by_short[two].title) for one, two in pairwise(error.path)}
    assert steps <= waits_for or {(two, one) for one, two in steps} <= waits_for
    assert (error.code, bool(error.hint.strip()), bool(error.brief)) == (
        "dependency_cycle",
        True,
        True,
    )
    assert all(each in str(error) for each in error.path[:2])


def test_two_tasks_cannot_wait_for_each_other(tasks, named):
    a, b = named("ab")
    tasks.depend(a.id, b.id)
    error = refused(lambda: tasks.depend(b.id, a.id), DependencyCycleError)
    assert_cycle(tasks, error, {("a", "b"), ("b", "a")})
    assert len(error.path) == 3
    assert tasks.get(b.id).dependencies == ()
    assert kinds(tasks.history(b.id)) == ["created"]


def test_three_tasks_cannot_wait_in_a_circle(tasks, named):
    a, b, c = named("abc")
    tasks.depend(a.id, b.id)
    tasks.depend(b.id, c.id)
    error = refused(lambda: tasks.depend(c.id, a.id), DependencyCycleError)
    assert_cycle(tasks, error, {("a", "b"), ("b", "c"), ("c", "a")})
    assert len(error.path) == 4


def test_a_long_circle_is_refused_with_its_whole_path(tasks, task):
    chain = [task(f"{number}") for number in range(60)]
    for earlier, later in pairwise(chain):
        tasks.depend(earlier.id, later.id)
    error = refused(lambda: tasks.depend(chain[-1].id, chain[0].id), DependencyCycleError)
    assert len(error.path) == 61
    assert_cycle(tasks, error, {(f"{number}", f"{(number + 1) % 60}") for number in range(60)})


def test_a_child_cannot_wait_for_its_parent(tasks, named):
    (epic,) = named(["epic"])
    child = tasks.add("child", parent=epic.id)
    error = refused(lambda: tasks.depend(child.id, epic.id), DependencyCycleError)
    assert_cycle(tasks, error, {("epic", "child"), ("child", "epic")})
    assert tasks.depend(epic.id, child.id).id == epic.id


def test_a_task_cannot_be_below_its_own_child(tasks, named):
    a, b, c = named("abc")
    tasks.depend(b.id, a.id, type="parent-child")
    tasks.depend(c.id, b.id, type="parent-child")
    for parent, child in ((c, a), (b, a)):
        below = partial(tasks.depend, child.id, parent.id, type="parent-child")
        refused(below, DependencyCycleError)


def test_a_circle_through_blockers_and_parents_is_refused(tasks, named):
    """epic waits for child, child for hinge; hinge cannot wait for epic, nor be its parent's
    parent.
    """
    epic, hinge = named(["epic", "hinge"])
    child = tasks.add("child", parent=epic.id, depends_on=[hinge.id])
    steps = {("epic", "child"), ("child", "hinge"), ("hinge", "epic")}
    assert_cycle(
        tasks, refused(lambda: tasks.depend(hinge.id, epic.id), DependencyCycleError), steps
    )
    below = refused(
        lambda: tasks.depend(epic.id, hinge.id, type="parent-child"), DependencyCycleError
    )
    assert_cycle(tasks, below, steps)
    assert edges(tasks.get(hinge.id)) == set()
    assert tasks.depend(hinge.id, epic.id, type="parent-child").title == "hinge"
    assert child.title == "child"


def test_a_circle_of_related_tasks_is_fine(tasks, named):
    a, b, c = named("abc")
    for one, two in ((a, b), (b, c), (c, a)):
        tasks.depend(one.id, two.id, type="related")
    tasks.depend(a.id, b.id)
    tasks.depend(b.id, a.id, type="related")
    assert titles(tasks.ready()) == ["b", "c"]


def test_a_circle_through_a_closed_task_is_refused_since_it_may_be_reopened(tasks, named):
    a, b = named("ab")
    tasks.depend(a.id, b.id)
    tasks.close(b.id, "done")
    refused(lambda: tasks.depend(b.id, a.id), DependencyCycleError)


def test_two_ways_to_the_same_task_are_no_circle(tasks, named):
    top, left, right, bottom = named(["top", "left", "right", "bottom"])
    for one, two in ((top, left), (top, right), (left, bottom), (right, bottom)):
        tasks.depend(one.id, two.id)
    assert titles(tasks.ready()) == ["bottom"]


def test_a_dependency_taken_away_may_be_turned_around(tasks, named):
    a, b = named("ab")
    tasks.depend(a.id, b.id)
    tasks.undepend(a.id, b.id)
    assert edges(tasks.depend(b.id, a.id)) == {(a.id, "blocks")}


def test_many_ways_through_many_layers_are_searched_in_no_time(tasks, task):
    """12 layers of 3, each task needing the whole layer below: half a million ways, and still an
    answer.
    """
    layers = [[task(f"{layer}{place}") for place in range(3)] for layer in range(12)]
    for below, above in pairwise(layers):
        for each in above:
            for needed in below:
                tasks.depend(each.id, needed.id)
    refused(lambda: tasks.depend(layers[0][0].id, layers[-1][0].id), DependencyCycleError)
    assert len(tasks.critical_path()) == 12
    assert len(tasks.tree(layers[-1][0].id)) == 1


# Trees, paths, progress.


def test_a_tree_shows_children_and_needs_with_their_progress(tasks, task):
    epic = task("epic", type="epic")
    first = task("first", parent=epic.id)
    second = task("second", parent=epic.id, depends_on=[first.id])
    task("grandchild", parent=second.id)
    tasks.close(first.id, "done")
    (root,) = tasks.tree(epic.id)
    assert (root.task.title, root.relation, root.is_blocked, root.progress) == (
        "epic",
        "root",
        True,
        TaskProgress(1, 3),
    )
    nodes = {node.task.title: node for node in root.nodes}
    assert {title: node.relation for title, node in nodes.items()} == {
        "first": "child",
        "second": "child",
    }
    inner = {(node.task.title, node.relation) for node in nodes["second"].nodes}
    assert inner == {("grandchild", "child"), ("first", "needs")}
    assert (nodes["first"].is_blocked, nodes["second"].is_blocked) == (False, True)
    assert nodes["first"].progress is None


def test_a_task_that_stands_in_the_tree_already_is_not_opened_again(tasks, named):
    top, left, right, shared, deep = named(["top", "left", "right", "shared", "deep"])
    for one, two in ((top, left), (top, right), (left, shared), (right, shared), (shared, deep)):
        tasks.depend(one.id, two.id)

    def walk(node):
        yield node
        for each in node.nodes:
            yield from walk(each)

    (root,) = tasks.tree(top.id)
    nodes = list(walk(root))
    assert sorted(node.task.title for node in nodes) == [
        "deep",
        "left",
        "right",
        "shared",
        "shared",
        "top",
    ]
    assert sorted(node.is_repeated for node in nodes if node.task.title == "shared") == [
        False,
        True,
    ]
    assert all(node.nodes == () for node in nodes if node.is_repeated)


def test_related_tasks_are_not_in_the_tree(tasks, named):
    a, b = named("ab")
    tasks.depend(a.id, b.id, type="related")
    (root,) = tasks.tree(a.id)
    assert root.nodes == ()


def test_the_whole_tree_begins_with_every_task_without_a_parent(tasks, named):
    epic, alone = named(["epic", "alone"])
    tasks.add("child", parent=epic.id)
    roots = tasks.tree()
    assert {node.task.title for node in roots} == {"epic", "alone"}
    assert {node.relation for node in roots} == {"root"}
    assert {each.task.title for node in roots for each in node.nodes} == {"child"}
    assert alone.title == "alone"


def test_the_critical_path_is_the_longest_chain_first_to_do_first(tasks, named):
    a, b, c, d, short = named(["a", "b", "c", "d", "short"])
    for later, earlier in ((d, c), (c, b), (b, a), (d, short)):
        tasks.depend(later.id, earlier.id)
    assert titles(tasks.critical_path()) == ["a", "b", "c", "d"]
    assert titles(tasks.critical_path(d.id)) == ["a", "b", "c", "d"]
    assert titles(tasks.critical_path(b.short_id)) == ["a", "b"]
    tasks.close(a.id, "done")
    assert titles(tasks.critical_path()) == ["b", "c", "d"]


def test_the_critical_path_goes_through_children(tasks, named):
    epic, hinge = named(["epic", "hinge"])
    child = tasks.add("child", parent=epic.id, depends_on=[hinge.id])
    assert titles(tasks.critical_path(epic.id)) == ["hinge", "child", "epic"]
    tasks.claim(hinge.id, session_id="s1")
    assert titles(tasks.critical_path()) == ["hinge", "child", "epic"]
    assert titles(tasks.critical_path(child.id)) == ["hinge", "child"]


def test_related_tasks_make_no_critical_path(tasks, named):
    a, b = named("ab")
    tasks.depend(a.id, b.id, type="related")
    assert len(tasks.critical_path()) <= 1


def test_progress_counts_children_and_their_children_each_once_and_not_itself(tasks, task):
    epic = task("epic")
    left, right = task("left", parent=epic.id), task("right", parent=epic.id)
    shared = task("shared", parent=left.id)
    tasks.depend(shared.id, right.id, type="parent-child")
    assert tasks.progress(epic.id) == TaskProgress(0, 3)
    tasks.close(shared.id, "done")
    assert tasks.progress(epic.id) == TaskProgress(1, 3)
    assert tasks.progress(epic.id).percent == 33
    assert tasks.show(epic.id).progress == TaskProgress(1, 3)
    assert tasks.progress(right.id) == TaskProgress(1, 1)


def test_progress_of_a_task_without_children_is_nothing_of_nothing(tasks, named):
    (door,) = named(["door"])
    tasks.depend(door.id, tasks.add("hinge").id)
    assert tasks.progress(door.id) == TaskProgress(0, 0)
    assert tasks.show(door.id).progress is None


# All of it, against the obvious way.


def test_everything_computed_equals_a_slow_recount(tasks, task):
    """Sixty tasks with random dependencies and states: ready, blocked, totals and the longest
    path.
    """
    rng = random.Random(20_251_115)
    made = [task(f"{number}", priority=rng.randrange(5)) for number in range(60)]
    for _ in range(90):
        one, two = rng.sample(made, 2)
        try:
            tasks.depend(
                one.id, two.id, type=rng.choice(["blocks", "blocks", "parent-child", "related"])
            )
        except DependencyCycleError:
            continue
    for each in rng.sample(made, 20):
        tasks.close(each.id, "done")
    for number in range(6):
        tasks.claim_next(session_id=f"s{number}")
    known = {each.id: each for each in tasks.export()}
    waits = {each: set() for each in known}
    for each in known.values():
        for needed in each.dependencies:
            if needed.type == "blocks":
                waits[each.id].add(needed.depends_on_id)
            elif needed.type == "parent-child":
                waits[needed.depends_on_id].add(each.id)
    unfinished = {each for each, kept in known.items() if kept.status != "closed"}
    blocked = {each for each in unfinished if waits[each] & unfinished}
    ready = [kept for kept in known.values() if kept.status == "open" and kept.id not in blocked]
    ready.sort(key=lambda kept: (kept.priority, kept.created_at, kept.id))
    found = tasks.ready(limit=1_000)
    assert [each.id for each in found] == [each.id for each in ready]
    assert (found.ready_count, found.blocked_count) == (len(ready), len(blocked))
    status = [kept.status for kept in known.values()]
    counted = TaskTotals(
        status.count("open"),
        status.count("in_progress"),
        status.count("closed"),
        ready=len(ready),
        blocked=len(blocked),
    )
    assert tasks.totals() == counted
    assert {each for each in known if tasks.show(each).is_blocked and each in unfinished} == blocked
    depth = {}

    def longest(each):
        if each not in depth:
            depth[each] = 1 + max((longest(other) for other in waits[each] & unfinished), default=0)
        return depth[each]

    path = tasks.critical_path()
    assert len(path) == max(longest(each) for each in unfinished)
    assert all(earlier.id in waits[later.id] for earlier, later in pairwise(path))
    assert {each.id for each in path} <= unfinished
