"""Appending is safe to repeat: the same client id in the same thread is stored once."""

from __future__ import annotations

import pytest

from smara import NewMessage
from smara.errors import ConflictError, InvalidInputError


def many(*pairs):
    return [NewMessage("user", text, client_id=client_id) for client_id, text in pairs]


def texts(memory, thread_id="t"):
    return [message.raw_content for message in memory.messages.list(thread_id=thread_id)]


def test_the_same_client_id_twice_is_stored_once(memory, say):
    assert say("hello", client_id="c1") == say("hello", client_id="c1")
    assert memory.threads.get("t").message_count == 1


def test_messages_without_a_client_id_are_all_stored(memory, say):
    say("hello")
    say("hello")
    assert texts(memory) == ["hello", "hello"]


def test_a_repeat_gives_back_the_first_with_its_time(say, clock):
    first = say("hello", client_id="c1")
    clock.advance(60)
    again = say("hello", client_id="c1")
    assert (again.id, again.seq, again.created_at) == (first.id, first.seq, first.created_at)


def test_another_text_under_the_same_client_id_is_a_conflict(memory, say):
    say("hello", client_id="c1")
    with pytest.raises(ConflictError, match="c1"):
        say("goodbye", client_id="c1")
    assert texts(memory) == ["hello"]


def test_the_same_client_id_in_two_threads_is_two_messages(memory, say):
    assert (
        say("hello", client_id="c1", thread_id="a").id
        != say("hello", client_id="c1", thread_id="b").id
    )


def test_the_same_client_id_in_two_projects_is_two_messages(open_again):
    added = [
        open_again(project=project).messages.add(
            thread_id="t", role="user", content="x", client_id="c1"
        )
        for project in ("a", "b")
    ]
    assert added[0].id != added[1].id


def test_a_repeat_after_reopening_is_stored_once(memory, say, open_again):
    first = say("hello", client_id="c1")
    memory.close()
    again = open_again()
    assert again.messages.add(thread_id="t", role="user", content="hello", client_id="c1") == first
    assert texts(again) == ["hello"]


def test_a_batch_repeated_is_stored_once(memory):
    batch = many(("a", "one"), ("b", "two"), ("c", "three"))
    first = memory.messages.add_many(thread_id="t", messages=batch)
    assert memory.messages.add_many(thread_id="t", messages=batch) == first
    assert texts(memory) == ["one", "two", "three"]


def test_a_batch_that_overlaps_adds_what_is_new_and_answers_in_the_order_given(memory):
    memory.messages.add_many(thread_id="t", messages=many(("b", "two"), ("d", "four")))
    answer = memory.messages.add_many(
        thread_id="t", messages=many(("a", "one"), ("b", "two"), ("c", "three"), ("d", "four"))
    )
    assert [message.client_id for message in answer] == ["a", "b", "c", "d"]
    assert [message.seq for message in answer] == [3, 1, 4, 2]


def test_a_batch_may_mix_messages_with_and_without_client_ids(memory):
    batch = [*many(("a", "one")), NewMessage("user", "loose"), *many(("b", "two"))]
    memory.messages.add_many(thread_id="t", messages=batch)
    answer = memory.messages.add_many(thread_id="t", messages=batch)
    assert [message.raw_content for message in answer] == ["one", "loose", "two"]
    assert texts(memory) == ["one", "loose", "two", "loose"]


def test_a_client_id_given_twice_in_one_batch_is_stored_once(memory):
    answer = memory.messages.add_many(thread_id="t", messages=many(("a", "one"), ("a", "one")))
    assert answer[0] == answer[1]
    assert texts(memory) == ["one"]


def test_a_client_id_with_two_texts_in_one_batch_is_a_conflict_not_a_silent_loss(memory):
    with pytest.raises(ConflictError, match="'a'"):
        memory.messages.add_many(thread_id="t", messages=many(("a", "one"), ("a", "two")))
    assert texts(memory) == []


def test_a_batch_with_a_conflict_stores_nothing(memory, say):
    say("one", client_id="a")
    with pytest.raises(ConflictError):
        memory.messages.add_many(
            thread_id="t", messages=many(("new", "fresh"), ("a", "another text"))
        )
    assert texts(memory) == ["one"]


def test_a_conflict_is_seen_though_a_later_repeat_in_the_batch_agrees(memory, say):
    say("one", client_id="a")
    with pytest.raises(ConflictError):
        memory.messages.add_many(thread_id="t", messages=many(("a", "another text"), ("a", "one")))


def test_a_repeat_is_recognized_by_its_redacted_text(memory, say):
    secret = "token ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    assert say(secret, client_id="c1").id == say(secret, client_id="c1").id
    assert memory.threads.get("t").message_count == 1


def test_a_repeat_makes_no_difference_to_counters(memory, say):
    say("hello world", client_id="c1")
    before = memory.threads.get("t")
    say("hello world", client_id="c1")
    after = memory.threads.get("t")
    assert (after.message_count, after.token_count) == (before.message_count, before.token_count)


def test_a_repeat_among_more_ids_than_one_statement_holds(memory):
    batch = many(*((f"c{number}", f"text {number}") for number in range(1_100)))
    memory.messages.add_many(thread_id="t", messages=batch)
    memory.messages.add_many(thread_id="t", messages=batch)
    assert memory.threads.get("t").message_count == 1_100


def test_a_client_id_that_is_no_id_is_refused(say):
    for bad in ("", " ", "x" * 513, "a\nb"):
        with pytest.raises(InvalidInputError, match="client_id"):
            say(client_id=bad)
