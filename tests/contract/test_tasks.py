"""Tasks: what goes in comes out, by any of its ids; what may be worked on comes first."""

from __future__ import annotations

import getpass
import re
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara.errors import InvalidInputError, NotFoundError, UsageError
from smara.tasks.models import NewTask, TaskTotals
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.task_place import titles

pytestmark = EACH_DATABASE

ODD_TEXTS = [
    "nul\x00inside", "lone \ud800 surrogate \udfff", "\ufdd0 and \ufdd00000", "e\u0301 é", "重跑测试",  # noqa: E501
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "שלום \u202e right to left", "\ufeffbom", "'; DROP TABLE tasks; --", "%s ? :project $1",
    '"quoted" \\ back', "%_%",
]  # fmt: skip
NOBODY = "t-zzzzzzzz"


def test_add_gives_back_the_task_as_it_is_kept(tasks, clock):
    added = tasks.add(
        "Mend the door",
        description="It squeaks.",
        type="bug",
        priority=1,
        labels=("house", "urgent"),
        assignee="ann",
        metadata={"room": [1, {"x": None}]},
        actor="bob",
    )
    assert added == tasks.get(added.id) == tasks.find(added.id)
    assert (added.title, added.description, added.type, added.priority) == (
        "Mend the door",
        "It squeaks.",
        "bug",
        1,
    )
    assert (set(added.labels), added.assignee) == ({"house", "urgent"}, "ann")
    assert added.metadata == {"room": [1, {"x": None}]}
    assert (added.status, added.session_id, added.claimed_at, added.holder) == (
        "open",
        None,
        None,
        None,
    )
    assert (added.created_at, added.updated_at, added.created_by) == (
        clock.now_ms(),
        clock.now_ms(),
        "bob",
    )
    assert (added.closed_at, added.close_reason, added.summary) == (None, None, None)
    assert (added.compaction_level, added.original_content, added.dependencies) == (0, None, ())


def test_only_a_title_is_needed(tasks):
    added = tasks.add("Mend the door")
    assert (added.description, added.type, added.priority, added.labels) == ("", "task", 2, ())
    assert (added.assignee, dict(added.metadata)) == (None, {})


def test_an_id_is_a_uuid_of_version_7_and_a_short_id_can_be_typed(tasks, clock):
    added = tasks.add("Mend the door")
    assert UUID(added.id).version == 7
    assert re.fullmatch(r"t-[0-9a-z]{3,12}", added.short_id)


def test_every_task_has_a_short_id_of_its_own(task):
    assert len({task(f"number {number}").short_id for number in range(40)}) == 40


def test_a_title_must_not_be_blank(tasks):
    for blank in ("", "   ", "\n\t "):
        error = refused(lambda: tasks.add(blank), InvalidInputError)  # noqa: B023
        assert "title" in str(error)
    assert tasks.totals().all == 0


def test_a_title_of_500_characters_is_kept_and_one_of_501_refused(tasks):
    assert tasks.add("x" * 500).title == "x" * 500
    error = refused(lambda: tasks.add("x" * 501), InvalidInputError)
    assert "title" in str(error)
    assert "500" in str(error)
    assert tasks.totals().all == 1


def test_a_title_is_never_cut_in_silence_by_an_update(tasks):
    added = tasks.add("Mend the door")
    refused(lambda: tasks.update(added.id, title="x" * 501), InvalidInputError)
    refused(lambda: tasks.update(added.id, title="  "), InvalidInputError)
    assert tasks.get(added.id) == added


@pytest.mark.parametrize("priority", [-1, 5, 100, "1", None, 1.5, True])
def test_a_priority_outside_0_to_4_is_refused_and_the_range_is_told(tasks, priority):
    with pytest.raises(InvalidInputError, match="priority") as caught:
        tasks.add("Mend the door", priority=priority)
    assert re.search(r"0.*4", str(caught.value))


def test_every_priority_from_0_to_4_is_kept(tasks):
    assert [tasks.add("x", priority=priority).priority for priority in range(5)] == [0, 1, 2, 3, 4]


def test_every_type_is_kept(tasks):
    types = ("bug", "feature", "task", "epic", "chore")
    assert tuple(tasks.get(tasks.add("x", type=each).id).type for each in types) == types


def test_an_unknown_type_is_refused_with_the_known_ones(tasks):
    for wrong in ("story", "", None, "BUG"):
        with pytest.raises(InvalidInputError, match="bug, feature, task, epic, chore"):
            tasks.add("x", type=wrong)
    added = tasks.add("x")
    with pytest.raises(InvalidInputError, match="bug, feature, task, epic, chore"):
        tasks.update(added.id, type="story")
    with pytest.raises(InvalidInputError, match="bug, feature, task, epic, chore"):
        tasks.ready(type="story")


def test_an_unknown_status_is_refused_with_the_known_ones(tasks, memory):
    for wrong in ("blocked", "", "OPEN", "done"):
        with pytest.raises(InvalidInputError, match="open, in_progress, closed"):
            tasks.list(status=wrong)
        with pytest.raises(InvalidInputError, match="open, in_progress, closed"):
            memory.search_tasks("door", status=wrong)


def test_metadata_that_json_cannot_hold_is_refused_before_anything_is_stored(tasks):
    for bad in ({"at": object()}, {"x": float("nan")}, ["a", "list"]):
        with pytest.raises(InvalidInputError, match="metadata"):
            tasks.add("x", metadata=bad)
    assert tasks.totals().all == 0


def test_labels_given_as_one_text_are_not_taken_apart_into_letters(tasks):
    with suppress(InvalidInputError):
        assert tasks.add("x", labels="urgent").labels == ("urgent",)


def test_any_text_comes_back_unchanged(tasks):
    for text in ODD_TEXTS:
        added = tasks.add(text, description=text, labels=[text], metadata={text: [text]})
        kept = tasks.get(added.id)
        assert kept == added
        assert (kept.title, kept.description, kept.labels, kept.metadata) == (
            text,
            text,
            (text,),
            {text: [text]},
        )
        assert tasks.close(added.id, text).summary == text
        assert tasks.get(added.id).summary == text


def test_a_description_keeps_its_lines_and_spaces(tasks):
    for text in ("two\nlines\r\n", "  indented\n\n\n    code()\n", "\ttab"):
        assert tasks.get(tasks.add("x", description=text).id).description == text


def test_a_description_of_a_million_characters_is_kept(tasks):
    text = "the walrus mends doors; " * 45_000
    assert tasks.get(tasks.add("x", description=text).id).description == text


def test_metadata_comes_back_unchanged(tasks):
    metadata = {
        "big": 2**200,
        "float": 1e-300,
        "text": "nul\x00 \ud800 é",
        "nested": {"list": [1, [2, {"x": None}]]},
    }
    assert tasks.get(tasks.add("x", metadata=metadata).id).metadata == metadata


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=20))
def test_any_description_comes_back_unchanged(tasks, text):
    assert tasks.get(tasks.add("x", description=text).id).description == text


def test_a_task_is_there_after_reopening(memory, open_again):
    first = memory.tasks.add("the first", labels=["a"])
    before = memory.tasks.add("the second", depends_on=[first.id])
    memory.close()
    again = open_again().tasks
    assert again.get(before.id) == before
    assert again.history(before.id)[0].kind == "created"


def test_the_actor_is_the_operating_systems_user_when_nobody_says(tasks):
    assert tasks.add("x").created_by == getpass.getuser()


def test_the_actor_and_the_session_of_the_settings_are_used_when_none_is_given(open_again):
    tasks = open_again(actor="carol", session="s-9").tasks
    added = tasks.add("x")
    assert added.created_by == "carol"
    assert tasks.claim(added.id).session_id == "s-9"
    newest = tasks.history(added.id)[0]
    assert (newest.actor, newest.session_id) == ("carol", "s-9")
    assert tasks.update(added.id, title="y", actor="dave", session_id="s-1").title == "y"
    newest = tasks.history(added.id)[0]
    assert (newest.actor, newest.session_id) == ("dave", "s-1")


# Ids: any of them, or a piece that can mean only one.


@pytest.fixture
def known(tasks):
    """Tasks with short ids that are known: t-abcd1, t-abcd2, t-xyz9."""
    tasks.put_many(
        [NewTask(short_id, short_id=short_id) for short_id in ("t-abcd1", "t-abcd2", "t-xyz9")]
    )
    return tasks


def test_a_task_is_found_by_its_uuid_its_short_id_and_its_short_id_without_prefix(tasks):
    added = tasks.add("x")
    for each in (added.id, added.short_id, added.short_id.removeprefix("t-")):
        assert tasks.get(each) == added
        assert tasks.find(each) == added
        assert tasks.show(each).task == added


def test_a_task_is_found_by_a_prefix_that_no_other_has(known):
    for prefix in ("t-xyz", "xyz", "xyz9", "t-xyz9", "t-x"):
        assert known.get(prefix).title == "t-xyz9"
    assert known.get("abcd2").title == known.get("t-abcd2").title == "t-abcd2"


def test_a_prefix_of_a_uuid_is_enough_when_no_other_has_it(tasks, clock):
    first = tasks.add("first")
    clock.advance(86_400 * 400)
    second = tasks.add("second")
    assert tasks.get(first.id[:10]) == first
    assert tasks.get(second.id[:10]) == second


def test_ids_are_found_in_upper_and_lower_case(known):
    added = known.add("x")
    for each in (
        added.id.upper(),
        added.short_id.upper(),
        added.short_id.removeprefix("t-").upper(),
    ):
        assert known.get(each) == added
    assert known.get("T-XYZ").title == known.get("XyZ9").title == "t-xyz9"


def test_a_prefix_of_several_is_refused_with_those_it_could_mean(known):
    for prefix in ("t-abcd", "abcd", "abc", "ABC"):
        error = refused(lambda: known.get(prefix), InvalidInputError)  # noqa: B023
        assert set(error.candidates) == {"t-abcd1", "t-abcd2"}
        assert "t-abcd1" in str(error)


def test_an_ambiguous_prefix_of_uuids_is_refused_with_the_short_ids(tasks):
    first, second = tasks.add("first"), tasks.add("second")
    error = refused(lambda: tasks.get(first.id[:8]), InvalidInputError)
    assert set(error.candidates) == {first.short_id, second.short_id}


def test_a_whole_id_wins_over_a_longer_one_that_begins_with_it(tasks):
    tasks.put_many([NewTask("long", short_id="t-abcd12"), NewTask("short", short_id="t-abcd")])
    assert tasks.get("t-abcd").title == tasks.get("abcd").title == "short"


def test_a_prefix_of_fewer_than_three_characters_finds_nothing(known):
    for prefix in ("x", "xy", "ab"):
        with pytest.raises((NotFoundError, InvalidInputError)):
            known.get(prefix)


def test_an_unknown_id_is_not_found_and_said_as_the_specification_says_it(tasks):
    assert tasks.find("task-xyz") is None
    error = refused(lambda: tasks.get("task-xyz"), NotFoundError)
    assert error.brief == "Task not found: task-xyz"
    assert error.hint.strip()


VERBS = {
    "get": lambda tasks, id: tasks.get(id),
    "show": lambda tasks, id: tasks.show(id),
    "claim": lambda tasks, id: tasks.claim(id),
    "release": lambda tasks, id: tasks.release(id),
    "hand_over": lambda tasks, id: tasks.hand_over(id, to_session="s"),
    "close": lambda tasks, id: tasks.close(id, "done"),
    "reopen": lambda tasks, id: tasks.reopen(id),
    "update": lambda tasks, id: tasks.update(id, title="y"),
    "depend": lambda tasks, id: tasks.depend(id, tasks.add("other").id),
    "depend on": lambda tasks, id: tasks.depend(tasks.add("other").id, id),
    "undepend": lambda tasks, id: tasks.undepend(id, tasks.add("other").id),
    "history": lambda tasks, id: tasks.history(id),
    "undo": lambda tasks, id: tasks.undo(id),
    "tree": lambda tasks, id: tasks.tree(id),
    "critical_path": lambda tasks, id: tasks.critical_path(id),
    "progress": lambda tasks, id: tasks.progress(id),
    "restore": lambda tasks, id: tasks.restore(id),
    "list by parent": lambda tasks, id: tasks.list(parent=id),
    "add below": lambda tasks, id: tasks.add("child", parent=id),
    "add behind": lambda tasks, id: tasks.add("later", depends_on=[id]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_that_an_unknown_task_is_not_found(tasks, verb):
    error = refused(lambda: VERBS[verb](tasks, NOBODY), NotFoundError)
    assert error.brief == f"Task not found: {NOBODY}"
    assert error.hint.strip()


@pytest.mark.parametrize(
    "verb", ["get", "claim", "close", "update", "history", "tree", "add below"]
)
def test_every_verb_takes_any_id(tasks, verb):
    for spelled in (lambda t: t.id, lambda t: t.short_id, lambda t: t.short_id[2:].upper()):
        VERBS[verb](tasks, spelled(tasks.add("x")))


def test_an_id_that_no_task_can_have_is_told_so_and_nothing_worse(tasks):
    tasks.add("x")
    for odd in (
        "",
        "   ",
        "\x00",
        "lone \ud800",
        "x" * 10_000,
        "'",
        "%%%",
        "___",
        "t-%",
        "t-",
        "---",
        "*",
    ):
        for read in (tasks.find, tasks.get, tasks.show, tasks.history, tasks.claim):
            with suppress(UsageError):
                assert read(odd) is None


# What is ready.


def test_ready_is_ordered_by_priority_then_age(tasks, task):
    for title, priority in (("b", 2), ("a", 0), ("d", 4), ("c", 2), ("z", 0)):
        task(title, priority=priority)
    assert titles(tasks.ready()) == ["a", "z", "b", "c", "d"]


def test_tasks_of_the_same_millisecond_are_ready_in_the_order_they_were_added(tasks):
    for number in range(8):
        tasks.add(f"{number}")
    assert titles(tasks.ready(limit=8)) == [f"{number}" for number in range(8)]


def test_ready_shows_five_and_counts_all(tasks, task):
    for number in range(8):
        task(f"{number}")
    blocked = task("blocked", depends_on=[tasks.list()[0].id])
    found = tasks.ready()
    assert titles(found) == ["0", "1", "2", "3", "4"]
    assert (found.ready_count, found.blocked_count) == (8, 1)
    assert blocked.id not in [each.id for each in tasks.ready(limit=100)]


def test_ready_can_be_paged(tasks, task):
    for number in range(5):
        task(f"{number}")
    first = tasks.ready(limit=2)
    second = tasks.ready(limit=2, offset=first.next_offset)
    third = tasks.ready(limit=2, offset=second.next_offset)
    assert [titles(page) for page in (first, second, third)] == [["0", "1"], ["2", "3"], ["4"]]
    assert third.next_offset is None
    assert {page.ready_count for page in (first, second, third)} == {5}


def test_a_last_page_that_is_full_has_no_next(tasks, task):
    for number in range(4):
        task(f"{number}")
    assert tasks.ready(limit=2, offset=2).next_offset is None
    assert tasks.list(limit=4).next_offset is None


def test_claimed_and_closed_tasks_are_not_ready(tasks, task):
    for title in ("open", "claimed", "closed"):
        task(title)
    tasks.claim(tasks.list()[1].id, session_id="s1")
    tasks.close(tasks.list(status="open")[1].id, "done")
    assert len(tasks.ready()) == 1
    assert tasks.ready().ready_count == 1
    assert tasks.totals() == TaskTotals(open=1, in_progress=1, closed=1, ready=1, blocked=0)


def test_ready_filters_by_type_label_and_assignee_and_still_counts_the_whole(tasks, task):
    task("bug", type="bug", labels=["x", "y"])
    task("feature", type="feature", labels=["x"], assignee="ann")
    blocker = task("chore", type="chore")
    task("blocked bug", type="bug", depends_on=[blocker.id])
    filters = (
        {"type": "bug"},
        {"label": "x"},
        {"label": "y"},
        {"assignee": "ann"},
        {"type": "bug", "label": "z"},
    )
    found = [tasks.ready(**each) for each in filters]
    assert [titles(page) for page in found] == [
        ["bug"],
        ["bug", "feature"],
        ["bug"],
        ["feature"],
        [],
    ]
    assert {(page.ready_count, page.blocked_count) for page in found} == {(3, 1)}


def test_a_filter_is_a_word_and_not_a_pattern(tasks, task):
    task("x", labels=["abc"], assignee="ann")
    for pattern in ("a%", "%", "_bc", "ab", "abc%", '"', "'"):
        assert titles(tasks.ready(label=pattern)) == titles(tasks.list(label=pattern)) == []
        assert titles(tasks.ready(assignee=pattern)) == []


def test_an_empty_project_has_nothing_ready(tasks):
    found = tasks.ready()
    assert (list(found), found.ready_count, found.blocked_count, found.next_offset) == (
        [],
        0,
        0,
        None,
    )
    assert tasks.totals() == TaskTotals()
    assert (list(tasks.list()), tasks.tree(), tasks.critical_path(), list(tasks.export())) == (
        [],
        [],
        [],
        [],
    )


def test_a_limit_or_offset_that_is_negative_is_refused(tasks):
    for wrong in ({"limit": -1}, {"offset": -1}):
        refused(lambda: tasks.ready(**wrong), InvalidInputError)  # noqa: B023
        refused(lambda: tasks.list(**wrong), InvalidInputError)  # noqa: B023


# Lists.


def test_a_list_shows_what_is_in_work_then_what_is_open_then_what_is_closed(tasks, task, clock):
    made = {
        title: task(title, priority=priority)
        for title, priority in (
            ("open low", 3),
            ("work low", 4),
            ("open high", 0),
            ("work high", 1),
            ("open old", 2),
            ("open new", 2),
            ("closed first", 0),
            ("closed last", 4),
        )
    }
    for title in ("work low", "work high"):
        tasks.claim(made[title].id, session_id="s1")
    for title in ("closed first", "closed last"):
        clock.advance(1)
        tasks.close(made[title].id, "done")
    expected = [
        "work high",
        "work low",
        "open high",
        "open old",
        "open new",
        "open low",
        "closed last",
        "closed first",
    ]
    assert titles(tasks.list()) == expected
    assert titles(tasks.list(status="open")) == expected[2:6]
    assert titles(tasks.list(status="in_progress")) == expected[:2]
    assert titles(tasks.list(status="closed")) == expected[6:]


def test_a_list_can_be_paged_without_losing_or_repeating(tasks, task):
    for number in range(7):
        task(f"{number}", priority=number % 3)
    whole, paged, offset = titles(tasks.list()), [], 0
    while offset is not None:
        page = tasks.list(limit=2, offset=offset)
        paged += titles(page)
        offset = page.next_offset
    assert paged == whole
    assert titles(tasks.list(offset=100)) == []


def test_a_list_shows_fifty_unless_told(tasks):
    tasks.put_many([NewTask(f"{number}", created_at=1_000 + number) for number in range(53)])
    page = tasks.list()
    assert (len(page), page.next_offset) == (50, 50)
    assert len(tasks.list(limit=1_000)) == 53


def test_a_list_is_filtered_by_everything_it_can_be(tasks, task):
    epic = task("epic", type="epic", priority=0)
    task("child", parent=epic.id, labels=["x"], assignee="ann")
    task("other", type="bug", labels=["x", "y"], priority=4)
    cases = {"epic": {"type": "epic"}, "child": {"assignee": "ann"}, "other": {"label": "y"}}
    for title, given_filter in cases.items():
        assert titles(tasks.list(**given_filter)) == [title]
    assert titles(tasks.list(priority=0)) == ["epic"]
    assert titles(tasks.list(priority=4)) == ["other"]
    assert set(titles(tasks.list(label="x"))) == {"child", "other"}
    assert titles(tasks.list(label="x", type="bug")) == ["other"]
    for spelled in (epic.id, epic.short_id, epic.short_id[2:]):
        assert titles(tasks.list(parent=spelled)) == ["child"]


def test_a_parent_lists_its_children_and_not_what_blocks_it_or_their_children(tasks, task):
    epic, blocker = task("epic"), task("blocker")
    tasks.depend(epic.id, blocker.id)
    tasks.depend(epic.id, task("friend").id, type="related")
    child = task("child", parent=epic.id)
    task("grandchild", parent=child.id)
    assert titles(tasks.list(parent=epic.id)) == ["child"]


# Updates.


def test_update_changes_the_named_fields_and_leaves_the_rest(tasks, clock):
    before = tasks.add("old", description="text", labels=["a"], assignee="ann", metadata={"k": 1})
    clock.advance(5)
    after = tasks.update(before.id, title="new", priority=0)
    assert after == tasks.get(before.id)
    assert (after.title, after.priority, after.updated_at) == ("new", 0, clock.now_ms())
    assert (after.description, after.labels, after.assignee, after.metadata) == (
        "text",
        ("a",),
        "ann",
        {"k": 1},
    )
    assert (after.created_at, after.short_id, after.status) == (
        before.created_at,
        before.short_id,
        "open",
    )


def test_update_can_change_every_field(tasks):
    before = tasks.add("old")
    after = tasks.update(
        before.id,
        title="new",
        description="d",
        priority=4,
        type="bug",
        labels=["x"],
        assignee="ann",
        metadata={"k": 1},
    )
    assert (after.title, after.description, after.priority, after.type) == ("new", "d", 4, "bug")
    assert (after.labels, after.assignee, after.metadata) == (("x",), "ann", {"k": 1})


def test_update_merges_metadata_and_takes_out_what_is_none(tasks):
    added = tasks.add("x", metadata={"a": 1, "b": 2})
    assert tasks.update(added.id, metadata={"b": None, "c": 3}).metadata == {"a": 1, "c": 3}


def test_update_clears_an_assignee_a_description_and_labels_with_something_empty(tasks):
    added = tasks.add("x", description="text", labels=["a"], assignee="ann")
    assert tasks.update(added.id, assignee="").assignee is None
    assert tasks.update(added.id, description="").description == ""
    assert tasks.update(added.id, labels=[]).labels == ()


def test_update_with_what_is_there_already_changes_nothing_and_writes_no_event(tasks, clock):
    before = tasks.add("x", description="d", labels=["a"], metadata={"k": {"n": 1}}, assignee="ann")
    clock.advance(5)
    same = {
        "title": "x",
        "description": "d",
        "labels": ["a"],
        "metadata": {"k": {"n": 1}},
        "assignee": "ann",
    }
    for part in ({}, same, {"metadata": {"absent": None}}, {"priority": 2, "type": "task"}):
        assert tasks.update(before.id, **part) == before
    assert kinds(tasks.history(before.id)) == ["created"]


def test_update_can_change_a_closed_task(tasks):
    added = tasks.add("x")
    tasks.close(added.id, "done")
    assert tasks.update(added.id, title="y").status == "closed"


def test_a_refused_update_changes_nothing_at_all(tasks):
    before = tasks.add("x")
    for wrong in ({"priority": 9}, {"type": "story"}, {"metadata": {"x": object()}}):
        with pytest.raises(InvalidInputError):
            tasks.update(before.id, title="y", **wrong)
    assert tasks.get(before.id) == before
    assert kinds(tasks.history(before.id)) == ["created"]


# The async face.


def test_tasks_are_awaited_in_the_async_face(place):
    import asyncio

    import smara

    async def story():
        async with await smara.open_async(
            place.address, clock=place.clock, durability="normal"
        ) as memory:
            added = await memory.tasks.add("x")
            await memory.links.claim(added.id, thread_id="t", session_id="s1")
            await memory.tasks.close(added.id, "done", session_id="s1")
            exported = [each.title async for each in memory.tasks.export()]
            return (
                exported,
                await memory.tasks.totals(),
                (await memory.search_tasks("x")).total_hits,
            )

    assert asyncio.run(story()) == (["x"], TaskTotals(closed=1), 1)
