"""Threads: conversations, each belonging to a resource."""

from __future__ import annotations

import pytest

from smara import NewThread
from smara.errors import ConflictError, InvalidInputError, NotFoundError


def test_a_thread_is_made_by_its_first_message(memory, say, clock):
    say("hello", thread_id="new")
    thread = memory.threads.get("new")
    assert (thread.id, thread.resource_id, thread.kind, thread.message_count) == (
        "new",
        "default",
        "conversation",
        1,
    )
    assert thread.created_at == thread.updated_at == clock.now_ms()


def test_a_thread_that_was_never_used_is_not_found(memory):
    assert memory.threads.find("nobody") is None
    with pytest.raises(NotFoundError, match="nobody"):
        memory.threads.get("nobody")


def test_add_gives_back_what_was_given(memory):
    thread = memory.threads.add(
        "t",
        resource_id="ann",
        title="Login form",
        metadata={"activeTaskId": "T1"},
        kind="subagent",
        parent_id="main",
    )
    assert thread == memory.threads.get("t")
    assert (thread.resource_id, thread.title, thread.kind, thread.parent_id) == (
        "ann",
        "Login form",
        "subagent",
        "main",
    )
    assert thread.active_task_id == "T1"


def test_add_without_an_id_makes_one(memory):
    first, second = memory.threads.add(), memory.threads.add()
    assert first.id
    assert first.id != second.id


def test_add_of_a_taken_id_is_a_conflict_and_changes_nothing(memory):
    before = memory.threads.add("t", title="first")
    with pytest.raises(ConflictError, match="exists already"):
        memory.threads.add("t", title="second")
    assert memory.threads.get("t") == before


def test_add_keeps_a_given_time(memory):
    assert memory.threads.add("t", created_at=1_700_000_000_000).created_at == 1_700_000_000_000


def test_an_id_that_cannot_be_printed_or_is_too_long_is_refused(memory, say):
    for bad in ("", "   ", "x" * 513, "line\nbreak", "nul\x00", "lone\ud800"):
        with pytest.raises(InvalidInputError, match="thread_id"):
            say(thread_id=bad)
        with pytest.raises(InvalidInputError, match="thread_id"):
            memory.threads.get(bad)


def test_a_thread_was_last_used_when_the_newest_thing_in_it_was_said(memory, say, clock):
    say(thread_id="imported", created_at=clock.now_ms() - 2_000)
    say(thread_id="imported", created_at=clock.now_ms() - 1_000)
    say(thread_id="imported", created_at=clock.now_ms() - 5_000)
    thread = memory.threads.get("imported")
    assert (thread.created_at, thread.updated_at) == (
        clock.now_ms() - 2_000,
        clock.now_ms() - 1_000,
    )


def test_an_id_may_hold_any_printable_text(memory, say):
    for thread_id in ("a b", "会话-1", "d'Artagnan", 'say "hi"', "50%", "?", "x" * 512, "café/été"):
        say(thread_id=thread_id)
        assert memory.threads.get(thread_id).message_count == 1


def test_ids_differ_by_case_and_by_spaces(memory, say):
    for thread_id in ("T", "t", " t"):
        say(thread_id=thread_id)
    assert len(memory.threads.list()) == 3


def test_an_unknown_kind_is_refused_with_the_known_ones(memory):
    with pytest.raises(InvalidInputError, match="conversation"):
        memory.threads.add("t", kind="monologue")


def test_put_twice_is_the_same_as_once(memory):
    new = NewThread("t", resource_id="ann", title="Login", metadata={"a": 1})
    assert memory.threads.put(new) == memory.threads.put(new)
    assert len(memory.threads.list()) == 1


def test_put_of_a_known_thread_merges_metadata_and_keeps_the_title(memory):
    memory.threads.put(NewThread("t", resource_id="ann", title="Login", metadata={"a": 1, "b": 1}))
    thread = memory.threads.put(NewThread("t", resource_id="bob", title="Other", metadata={"b": 2}))
    assert (thread.resource_id, thread.title, thread.metadata) == ("ann", "Login", {"a": 1, "b": 2})


def test_put_gives_a_title_to_a_thread_without_one(memory, say):
    say()
    assert memory.threads.put(NewThread("t", title="Greeting")).title == "Greeting"


def test_list_shows_the_most_recently_used_first(memory, say, clock):
    for thread_id in ("a", "b", "c"):
        say(thread_id=thread_id)
        clock.advance(1)
    say(thread_id="a")
    assert [thread.id for thread in memory.threads.list()] == ["a", "c", "b"]


def test_list_can_be_paged(memory, say, clock):
    for number in range(5):
        say(thread_id=f"t{number}")
        clock.advance(1)
    pages = [memory.threads.list(limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[thread.id for thread in page] for page in pages] == [
        ["t4", "t3"],
        ["t2", "t1"],
        ["t0"],
        [],
    ]


def test_list_filters_by_resource_kind_and_parent(memory):
    memory.threads.add("main", resource_id="ann")
    memory.threads.add("helper", resource_id="ann", kind="subagent", parent_id="main")
    memory.threads.add("other", resource_id="bob")
    assert {thread.id for thread in memory.threads.list(resource_id="ann")} == {"main", "helper"}
    assert [thread.id for thread in memory.threads.list(kind="subagent")] == ["helper"]
    assert [thread.id for thread in memory.threads.list(parent_id="main")] == ["helper"]
    assert memory.threads.list(resource_id="ann", parent_id="other") == []


def test_update_changes_the_title_and_leaves_the_rest(memory, clock):
    memory.threads.add("t", title="old", metadata={"a": 1})
    clock.advance(5)
    thread = memory.threads.update("t", title="new")
    assert (thread.title, thread.metadata, thread.updated_at) == ("new", {"a": 1}, clock.now_ms())


def test_update_merges_metadata_and_takes_out_what_is_none(memory):
    memory.threads.add("t", title="kept", metadata={"a": 1, "b": 2})
    thread = memory.threads.update(
        "t",
        metadata={
            "b": None,
            "observations": {"currentTask": "write tests", "suggestedResponse": "go on"},
        },
    )
    assert (thread.title, thread.metadata["a"], "b" in thread.metadata) == ("kept", 1, False)
    assert (thread.current_task, thread.suggested_response) == ("write tests", "go on")


def test_update_of_an_unknown_thread_is_not_found(memory):
    with pytest.raises(NotFoundError, match="ghost"):
        memory.threads.update("ghost", title="boo")
    assert memory.threads.find("ghost") is None


def test_counters_follow_the_messages(memory, say):
    tokens = [say("hello world").token_count, say("how are you today?").token_count]
    thread = memory.threads.get("t")
    assert (thread.message_count, thread.token_count) == (2, sum(tokens))


def test_a_title_is_one_line_of_at_most_500_characters(memory):
    assert memory.threads.add("t", title="  two\n lines ").title == "two lines"
    assert len(memory.threads.update("t", title="x" * 600).title) == 500


def test_titles_and_metadata_hold_any_text(memory):
    odd = "nul\x00 lone\ud83d 会话 \ufdd0"
    thread = memory.threads.add(
        "t", title=odd, metadata={odd: [odd, {"n": 10**30, "x": 0.1, "none": None}]}
    )
    assert memory.threads.get("t") == thread
    assert thread.title == odd
    assert thread.metadata[odd] == [odd, {"n": 10**30, "x": 0.1, "none": None}]


def test_metadata_that_json_cannot_hold_is_refused(memory):
    for bad in ({"at": object()}, {"x": float("nan")}, ["a", "list"]):
        with pytest.raises(InvalidInputError, match="metadata"):
            memory.threads.add("t", metadata=bad)
    assert memory.threads.find("t") is None


def test_a_thread_is_there_after_reopening(memory, open_again):
    before = memory.threads.add("t", resource_id="ann", title="Login", metadata={"a": [1]})
    memory.close()
    assert open_again().threads.get("t") == before


def test_a_new_thread_belongs_to_the_resource_of_the_settings(open_again):
    memory = open_again(resource="ann")
    memory.messages.add(thread_id="t", role="user", content="hi")
    assert memory.threads.get("t").resource_id == "ann"
