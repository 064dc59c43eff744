"""Links: messages of a thread belong to the task that is worked on in it, while it is, and to those
somebody names.
"""

from __future__ import annotations

import pytest

from smara.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TaskBlockedError,
    TaskClaimedError,
)
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.task_place import HOUR, MINUTE, titles

pytestmark = EACH_DATABASE


@pytest.fixture
def links(memory):
    return memory.links


@pytest.fixture
def working(memory, say):
    """A task claimed in thread ``t`` by session ``s1``; one message was said before."""
    say("before")
    return memory.links.claim(memory.tasks.add("mend the door").id, thread_id="t", session_id="s1")


def task_of(memory, message):
    found = memory.messages.get(message.id)
    assert found.task_id == message.task_id
    return found.task_id


# Implicit linking.


def test_claim_in_a_thread_claims_and_sets_its_active_task(memory, working):
    assert (working.status, working.holder) == ("in_progress", "s1")
    thread = memory.threads.get("t")
    assert (thread.metadata["activeTaskId"], thread.metadata["activeTaskSession"]) == (
        working.id,
        "s1",
    )
    assert memory.links.active("t") == memory.tasks.get(working.id)


def test_claim_in_a_thread_keeps_what_else_the_thread_knows(memory):
    memory.threads.add("t", title="Doors", metadata={"mine": [1]})
    memory.links.claim(memory.tasks.add("x").id, thread_id="t", session_id="s1")
    thread = memory.threads.get("t")
    assert (thread.title, thread.metadata["mine"]) == ("Doors", [1])


def test_messages_said_while_a_task_is_active_belong_to_it(memory, say, working):
    said = [say("one"), say("two", role="assistant"), say("three", session_id="s1")]
    assert [task_of(memory, each) for each in said] == [working.id] * 3
    linked = memory.links.messages(working.id)
    assert [each.message.raw_content for each in linked] == ["one", "two", "three"]
    assert {each.relation for each in linked} == {"output"}


def test_messages_said_before_the_claim_do_not_belong_to_it(memory, working):
    assert [each.task_id for each in memory.messages.list(thread_id="t")] == [None]
    assert memory.links.messages(working.id) == []


def test_messages_added_many_at_once_belong_to_the_active_task(memory, fill, working):
    fill(3)
    assert [each.task_id for each in memory.messages.list(thread_id="t")] == [
        None,
        *[working.id] * 3,
    ]


def test_a_message_of_another_session_does_not_belong_to_the_task(memory, say, working):
    assert task_of(memory, say("from s2", session_id="s2")) is None
    assert task_of(memory, say("from s1", session_id="s1")) == working.id


def test_a_message_of_a_memory_opened_for_another_session_does_not_belong_to_the_task(
    memory, working, open_again
):
    other, same = open_again(session="s2"), open_again(session="s1")
    assert other.messages.add(thread_id="t", role="user", content="from s2").task_id is None
    assert same.messages.add(thread_id="t", role="user", content="from s1").task_id == working.id


def test_a_message_in_another_thread_does_not_belong_to_the_task(memory, say, working):
    assert task_of(memory, say("elsewhere", thread_id="u")) is None
    assert task_of(memory, say("elsewhere", thread_id="u", session_id="s1")) is None


def test_a_message_that_names_its_own_task_keeps_it(memory, say, working):
    assert task_of(memory, say("about another", task_id="T1")) == "T1"


def test_no_message_belongs_to_a_task_that_was_closed(memory, say, working):
    say("during")
    memory.tasks.close(working.id, "done", session_id="s1")
    assert task_of(memory, say("after")) is None
    assert task_of(memory, say("after", session_id="s1")) is None
    assert memory.links.active("t") is None
    assert len(memory.links.messages(working.id)) == 1


def test_no_message_belongs_to_a_task_that_was_given_back(memory, say, working):
    memory.tasks.release(working.id, session_id="s1")
    assert task_of(memory, say("after", session_id="s1")) is None
    assert memory.links.active("t") is None


def test_no_message_belongs_to_a_task_whose_claim_expired(memory, say, working, clock):
    clock.advance(5 * HOUR)
    memory.tasks.expire()
    assert task_of(memory, say("after", session_id="s1")) is None
    assert memory.links.active("t") is None


def test_no_message_belongs_to_a_task_whose_session_ended(memory, say, working):
    memory.tasks.end_session("s1")
    assert task_of(memory, say("after")) is None


def test_no_message_belongs_to_a_task_that_another_session_took(memory, say, working, clock):
    clock.advance(5 * HOUR)
    memory.tasks.claim(working.id, session_id="s2")
    for session_id in ("s1", "s3"):
        assert task_of(memory, say("after", session_id=session_id)) is None
    assert task_of(memory, say("after")) is None


def test_what_a_thread_says_of_itself_and_what_its_messages_are_given_is_one_rule(
    memory, say, working, clock
):
    """The writer is compared with the holder: an agent that resumes a thread under a new session
    goes on in it.
    """
    clock.advance(5 * HOUR)
    memory.tasks.claim(working.id, session_id="s2")
    for session_id, expected in (("s2", working.id), ("s1", None), (None, None)):
        active = memory.links.active("t", session_id=session_id)
        assert (active.id if active else None) == expected
        assert task_of(memory, say("after", session_id=session_id)) == expected


def test_no_message_belongs_to_a_task_that_was_handed_over(memory, say, working):
    memory.tasks.hand_over(working.id, to_session="s2", session_id="s1")
    assert task_of(memory, say("after", session_id="s1")) is None


def test_a_task_taken_by_another_session_in_another_thread_gets_its_messages_there(
    memory, say, working, clock
):
    clock.advance(5 * HOUR)
    memory.links.claim(working.id, thread_id="u", session_id="s2")
    assert task_of(memory, say("old thread", session_id="s1")) is None
    assert task_of(memory, say("new thread", thread_id="u", session_id="s2")) == working.id
    assert memory.links.active("t") is None


def test_a_new_claim_replaces_the_active_task(memory, say, working):
    second = memory.links.claim(memory.tasks.add("paint").id, thread_id="t", session_id="s1")
    assert task_of(memory, say("after")) == second.id
    assert memory.links.active("t").title == "paint"
    assert memory.tasks.get(working.id).status == "in_progress"
    memory.tasks.close(second.id, "done", session_id="s1")
    assert task_of(memory, say("later")) is None


def test_a_reopened_task_gets_messages_only_after_it_is_claimed_again(memory, say, working):
    memory.tasks.close(working.id, "done", session_id="s1")
    memory.tasks.reopen(working.id, session_id="s1")
    assert task_of(memory, say("reopened")) is None
    memory.links.claim(working.id, thread_id="t", session_id="s1")
    assert task_of(memory, say("claimed")) == working.id


def test_claim_without_a_thread_is_a_claim_and_nothing_else(memory, say):
    claimed = memory.links.claim(memory.tasks.add("x").id, session_id="s1")
    assert claimed.holder == "s1"
    assert task_of(memory, say("hello", session_id="s1")) is None


def test_a_claim_of_the_tasks_room_alone_sets_no_active_task(memory, say):
    memory.tasks.claim(memory.tasks.add("x").id, session_id="s1")
    assert task_of(memory, say("hello", session_id="s1")) is None
    assert memory.links.active("t") is None


def test_a_thread_that_has_no_message_yet_can_have_an_active_task(memory, say):
    claimed = memory.links.claim(memory.tasks.add("x").id, thread_id="new", session_id="s1")
    assert task_of(memory, say("the first", thread_id="new")) == claimed.id


def test_a_claim_repeated_in_a_thread_changes_nothing(memory, say, working):
    memory.links.claim(working.id, thread_id="t", session_id="s1")
    assert kinds(memory.tasks.history(working.id)) == ["created", "claimed"]
    assert task_of(memory, say("still")) == working.id


def test_a_session_may_carry_its_claim_into_another_thread(memory, say, working):
    memory.links.claim(working.id, thread_id="u", session_id="s1")
    assert task_of(memory, say("there", thread_id="u")) == working.id


def test_a_refused_claim_leaves_the_active_task_as_it_was(memory, working):
    tasks = memory.tasks
    held, closed, blocked = (
        tasks.add("held"),
        tasks.add("closed"),
        tasks.add("blocked", depends_on=[working.id]),
    )
    tasks.claim(held.id, session_id="s9")
    tasks.close(closed.id, "done")
    for task_id, error in (
        (held.id, TaskClaimedError),
        (closed.id, ConflictError),
        (blocked.id, TaskBlockedError),
    ):
        refused(lambda: memory.links.claim(task_id, thread_id="t", session_id="s1"), error)  # noqa: B023
    refused(lambda: memory.links.claim("t-zzzzzzz", thread_id="t", session_id="s1"), NotFoundError)
    assert memory.links.active("t").id == working.id


def test_a_thread_with_an_id_that_is_none_is_refused_and_nothing_is_claimed(memory):
    added = memory.tasks.add("x")
    refused(
        lambda: memory.links.claim(added.id, thread_id="line\nbreak", session_id="s1"),
        InvalidInputError,
    )
    assert memory.tasks.get(added.id).status == "open"


def test_an_active_task_taken_out_of_the_thread_by_hand_gets_no_messages(memory, say, working):
    memory.threads.update("t", metadata={"activeTaskId": None})
    assert task_of(memory, say("after")) is None
    assert memory.links.active("t") is None


@pytest.mark.parametrize("odd", ["no such task", "", 7, ["a"], {"x": 1}, "t-zzzzzzz"])
def test_an_active_task_that_is_none_does_no_harm(memory, say, odd):
    memory.threads.add("t", metadata={"activeTaskId": odd, "activeTaskSession": "s1"})
    assert task_of(memory, say("hello", session_id="s1")) is None
    assert memory.links.active("t") is None


def test_a_thread_that_does_not_exist_has_no_active_task(memory):
    assert memory.links.active("nobody") is None


def test_a_message_with_a_client_id_said_again_later_is_still_the_one_message(memory, say, working):
    first = say("once", client_id="c1")
    memory.tasks.close(working.id, "done", session_id="s1")
    assert say("once", client_id="c1") == first
    assert task_of(memory, first) == working.id


def test_a_message_that_arrives_in_pieces_stays_with_its_task(memory, say, working):
    said = say("one ")
    memory.tasks.close(working.id, "done", session_id="s1")
    assert memory.messages.extend(said.id, "two").task_id == working.id


def test_the_messages_of_a_task_are_found_by_search(memory, say, working):
    say("the walrus squeaks")
    say("the walrus elsewhere", thread_id="u")
    assert [hit.content for hit in memory.search("walrus", task_id=working.id)] == [
        "the walrus squeaks"
    ]


# Linking by hand.


def test_a_past_message_is_linked_by_hand(memory, links, say):
    said, added = say("the walrus"), memory.tasks.add("x")
    links.add(added.id, said.id)
    (linked,) = links.messages(added.short_id)
    assert (linked.message, linked.relation) == (memory.messages.get(said.id), "reference")
    assert [each.id for each in links.tasks(said.id)] == [added.id]
    assert memory.tasks.show(added.id).linked_message_ids == (said.id,)
    assert kinds(memory.tasks.history(added.id)) == ["created", "linked"]


def test_every_relation_is_kept_and_an_unknown_one_is_refused(memory, links, say):
    added = memory.tasks.add("x")
    for relation in ("output", "reference", "created_from"):
        links.add(added.id, say(relation).id, relation=relation)
    assert {each.message.raw_content: each.relation for each in links.messages(added.id)} == {
        "output": "output",
        "reference": "reference",
        "created_from": "created_from",
    }
    with pytest.raises(InvalidInputError, match="output, reference, created_from"):
        links.add(added.id, say().id, relation="likes")


def test_linking_what_is_not_there_is_not_found(memory, links, say):
    said, added = say(), memory.tasks.add("x")
    refused(lambda: links.add(added.id, "no such message"), NotFoundError)
    refused(lambda: links.add("t-zzzzzzz", said.id), NotFoundError)
    refused(lambda: links.messages("t-zzzzzzz"), NotFoundError)
    assert links.messages(added.id) == []
    assert kinds(memory.tasks.history(added.id)) == ["created"]


def test_linking_twice_is_the_same_as_once(memory, links, say):
    said, added = say(), memory.tasks.add("x")
    links.add(added.id, said.id)
    links.add(added.id, said.id)
    assert len(links.messages(added.id)) == 1
    assert kinds(memory.tasks.history(added.id)) == ["created", "linked"]


def test_a_message_may_belong_to_several_tasks(memory, links, say):
    said = say()
    made = [memory.tasks.add(title) for title in ("x", "y")]
    for each in made:
        links.add(each.id, said.id)
    assert sorted(titles(links.tasks(said.id))) == ["x", "y"]


def test_a_link_is_removed_once(memory, links, say):
    said, added = say(), memory.tasks.add("x")
    links.add(added.id, said.id)
    assert links.remove(added.id, said.id) is True
    assert links.remove(added.id, said.id) is False
    assert (links.messages(added.id), links.tasks(said.id)) == ([], [])
    assert kinds(memory.tasks.history(added.id)) == ["created", "linked", "unlinked"]


def test_removing_a_link_made_while_active_says_whether_it_is_gone(memory, links, say, working):
    said = say("during")
    removed = links.remove(working.id, said.id)
    assert removed == (links.messages(working.id) == [])


def test_links_can_be_taken_back(memory, links, say):
    said, added = say(), memory.tasks.add("x")
    links.add(added.id, said.id)
    memory.tasks.undo(added.id)
    assert links.messages(added.id) == []
    links.add(added.id, said.id, relation="created_from")
    links.remove(added.id, said.id)
    memory.tasks.undo(added.id)
    assert [each.relation for each in links.messages(added.id)] == ["created_from"]


def test_messages_linked_by_hand_and_while_active_are_shown_together_oldest_first(
    memory, links, say, clock
):
    past = say("past", thread_id="u")
    clock.advance(MINUTE)
    claimed = links.claim(memory.tasks.add("x").id, thread_id="t", session_id="s1")
    said = [say(f"{number}") for number in range(3)]
    clock.advance(MINUTE)
    late = say("late", thread_id="u")
    for each in (late, past):
        links.add(claimed.id, each.id)
    expected = ["past", "0", "1", "2", "late"]
    assert [each.message.raw_content for each in links.messages(claimed.id)] == expected
    assert [
        each.message.raw_content for each in links.messages(claimed.id, limit=2, offset=1)
    ] == expected[1:3]
    assert memory.tasks.show(claimed.id).linked_message_ids == (
        past.id,
        *(each.id for each in said),
        late.id,
    )


def test_a_message_linked_both_ways_is_shown_once(memory, links, say, working):
    said = say("during")
    links.add(working.id, said.id)
    assert len(links.messages(working.id)) == 1
    assert len(links.tasks(said.id)) == 1
    assert memory.tasks.show(working.id).linked_message_ids == (said.id,)


def test_messages_shows_fifty_unless_told(memory, links, fill, working):
    fill(55)
    assert len(links.messages(working.id)) == 50
    assert len(links.messages(working.id, limit=100)) == 55
    assert len(links.messages(working.id, offset=50)) == 5


def test_a_message_without_a_task_has_none(links, say):
    assert links.tasks(say().id) == []


def test_a_closed_task_can_still_be_linked(memory, links, say):
    added = memory.tasks.add("x")
    memory.tasks.close(added.id, "done")
    links.add(added.id, say("later").id)
    assert len(links.messages(added.id)) == 1
