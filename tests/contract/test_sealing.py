"""A message may arrive in pieces until it is sealed; what comes later is a message of its own
(ruling 45).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from smara import Part
from smara.errors import InvalidInputError, NotFoundError
from tests.contract.both import ON_BOTH


def test_extend_goes_on_in_the_same_text(memory, say):
    added = say("The answer ", role="assistant")
    grown = memory.messages.extend(added.id, "is 42.")
    assert (grown.id, grown.seq, grown.raw_content) == (added.id, 1, "The answer is 42.")
    assert grown == memory.messages.get(added.id)
    assert grown.parts == (Part("text", "The answer is 42."),)


def test_extend_adds_parts_behind_those_there_are(memory, say):
    added = say("Let me look.", role="assistant")
    call = Part("tool_call", name="Read", arguments={"path": "a.py"})
    memory.messages.extend(added.id, [call])
    assert memory.messages.get(added.id).parts == (Part("text", "Let me look."), call)


def test_extend_counts_the_tokens_of_the_whole(memory, say):
    added = say("hello")
    grown = memory.messages.extend(added.id, " world and all who live in it")
    whole = say("hello world and all who live in it", thread_id="other").token_count
    assert grown.token_count == memory.threads.get("t").token_count == whole > added.token_count


def test_an_extended_message_is_found_by_its_new_and_its_old_words(memory, say):
    added = say("the zebra ")
    memory.messages.extend(added.id, "and the walrus")
    assert (
        [hit.id for hit in memory.search("walrus")]
        == [hit.id for hit in memory.search("zebra")]
        == [added.id]
    )
    assert memory.search("walrus").total_hits == 1


def test_a_word_that_arrives_in_two_pieces_is_found_as_one(memory, say):
    added = say("see refresh_")
    memory.messages.extend(added.id, "tokens")
    assert [hit.id for hit in memory.search("refresh_tokens")] == [added.id]


def test_extend_of_an_unknown_message_is_not_found(memory):
    with pytest.raises(NotFoundError, match="nothing"):
        memory.messages.extend("nothing", "more")


def test_extend_over_the_limit_is_refused_and_leaves_the_message(open_again):
    memory = open_again(max_message_bytes=10)
    added = memory.messages.add(thread_id="t", role="user", content="12345")
    with pytest.raises(InvalidInputError, match="10"):
        memory.messages.extend(added.id, "678901")
    assert memory.messages.get(added.id) == added


def test_seal_says_how_many_were_newly_sealed(memory, fill, clock):
    fill(3)
    assert memory.messages.seal(thread_id="t", up_to_seq=2) == 2
    assert [m.is_sealed for m in memory.messages.list(thread_id="t")] == [True, True, False]
    assert memory.messages.seal(thread_id="t") == 1
    assert memory.messages.seal(thread_id="t") == 0
    assert memory.messages.seal(thread_id="nobody") == 0


def test_a_seal_keeps_its_first_time(memory, say, clock):
    added = say()
    sealed_at = clock.now_ms()
    memory.messages.seal(thread_id="t")
    clock.advance(9)
    memory.messages.seal(thread_id="t")
    assert memory.messages.get(added.id).sealed_at == sealed_at


def test_content_for_a_sealed_message_becomes_a_new_message(memory, say):
    added = say("first half", role="assistant", task_id="T1")
    memory.messages.seal(thread_id="t")
    grown = memory.messages.extend(added.id, "second half")
    assert (grown.seq, grown.role, grown.task_id, grown.raw_content) == (
        2,
        "assistant",
        "T1",
        "second half",
    )
    assert grown.metadata["continues"] == added.id
    assert memory.messages.get(added.id).raw_content == "first half"


def test_a_message_added_after_sealing_is_open(memory, say):
    say()
    memory.messages.seal(thread_id="t")
    assert not say().is_sealed


def test_a_secret_that_arrives_in_two_pieces_is_redacted(memory, say):
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    added = say("push with " + secret[:7])
    assert secret[7:] not in memory.messages.extend(added.id, secret[7:]).raw_content


@ON_BOTH  # the model lives in one thread
def test_pieces_that_arrive_at_once_are_all_kept(open_again):
    memory = open_again()
    added = memory.messages.add(thread_id="t", role="assistant", content="start")
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda number: memory.messages.extend(added.id, f" piece{number};"), range(24))
        )
    text = memory.messages.get(added.id).raw_content
    assert [number for number in range(24) if f" piece{number};" not in text] == []


@ON_BOTH  # the model lives in one thread
def test_metadata_put_at_once_is_all_kept(open_again):
    from smara import NewThread

    memory = open_again()
    memory.threads.add("t")
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: memory.threads.put(NewThread("t", metadata={f"k{number}": number})),
                range(24),
            )
        )
    assert memory.threads.get("t").metadata == {f"k{number}": number for number in range(24)}


@ON_BOTH  # the model lives in one thread
def test_messages_added_at_once_get_each_number_once(open_again):
    memory = open_again()
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: memory.messages.add(thread_id="t", role="user", content=f"m{n}"),
                range(40),
            )
        )
    assert [m.seq for m in memory.messages.list(thread_id="t")] == list(range(1, 41))
