"""The newer word above the older, where one amends the other."""

from __future__ import annotations

import pytest

from smara.search.amend import newer_first
from smara.search.models import Hit, SearchCandidate

BEFORE = (
    "The webhook sender of customers makes five attempts, then parks the delivery in dead letters."
)
AFTER = (
    "For customers the webhook sender makes some attempts, then parks a delivery in dead letters."
)
ANNOUNCED = "We changed our mind about the attempts of the webhook sender and its parked delivery."
OTHER = "The header gets a green logo and the footer a smaller one."


def candidate(thread, text, created_at, score, relevance):
    hit = Hit(
        f"{thread}-{created_at}", "raw", text, created_at, thread_id=thread, role="user", seq=1
    )
    return SearchCandidate("message", created_at, hit, score=score, relevance=relevance)


def ranked():
    return [
        candidate("before", BEFORE, 1, 1.0, 0.9),
        candidate("other", OTHER, 2, 0.8, 0.5),
        candidate("after", AFTER, 3, 0.6, 0.01),
    ]


@pytest.mark.parametrize(("said", "first"), [(ANNOUNCED, "after"), (OTHER, "before")])
def test_change_that_was_announced_beside_a_hit_puts_it_first(said, first):
    def around(hits):
        thread = hits[0].thread_id
        return [*hits, Hit("x", "raw", said if thread == "after" else OTHER, 3, thread_id=thread)]

    best = newer_first(ranked(), around)
    assert best[0].hit.thread_id == first
    is_amended = first == "after"
    older = next(each for each in best if each.hit.thread_id == "before")
    assert bool(older.hit.metadata.get("hedge")) is is_amended


def test_a_call_of_a_tool_amends_nothing():
    def around(hits):
        thread = hits[0].thread_id
        said = f"[tool: Edit]\n{ANNOUNCED}" if thread == "after" else OTHER
        return [*hits, Hit("x", "raw", said, 3, thread_id=thread)]

    best = newer_first(ranked(), around)
    assert best[0].hit.thread_id == "before"
    assert not any(each.hit.metadata.get("hedge") for each in best)


def test_what_amends_an_answer_is_as_relevant_as_it():
    def around(hits):
        return [*hits, Hit("x", "raw", ANNOUNCED, 3, thread_id=hits[0].thread_id)]

    assert newer_first(ranked(), around)[0].relevance == 0.9


@pytest.mark.parametrize(
    "said",
    [
        "We amended the attempts of the webhook sender and its parked delivery.",
        "This supersedes the attempts of the webhook sender and its parked delivery.",
        "OVERRULED: attempts of the webhook sender, parked delivery.",
        "Overturning the attempts of the webhook sender and the parked delivery.",
        "I rescind the attempts of the webhook sender and the parked delivery.",
        "They retracted the attempts of the webhook sender and the parked delivery.",
        "We revised our earlier plan: attempts of the webhook sender, parked delivery.",
        "A reversal of the policy on attempts of the webhook sender, parked delivery.",
        "That replaces the old rule: attempts of the webhook sender, parked delivery.",
        "Our new rule for attempts of the webhook sender and parked delivery.",
        "No longer the rule: attempts of the webhook sender and parked delivery.",
        "It is not our approach: attempts of the webhook sender and parked delivery.",
        "The decision has changed on attempts of the webhook sender, parked delivery.",
        "On second thought: attempts of the webhook sender, parked delivery.",
        "Scratch that: attempts of the webhook sender, parked delivery.",
        "Forget what I said on attempts of the webhook sender, parked delivery.",
        "Taking it back: attempts of the webhook sender, parked delivery.",
    ],
)
def test_every_way_to_announce_a_change_is_heard(said):
    hits = [Hit("x", "raw", said, 3, thread_id="after")]
    assert newer_first(ranked(), lambda given: [*given, *hits])[0].hit.thread_id == "after"


def test_messages_around_a_later_conversation_are_read_once():
    ways = ranked()
    ways.insert(1, candidate("between", BEFORE.replace("five", "six"), 2, 0.9, 0.8))
    asked = []

    def around(hits):
        asked.append(hits[0].thread_id)
        return hits

    newer_first(ways, around)
    assert len(asked) == len(set(asked)) > 0


def test_amendment_is_seen_where_no_other_conversation_was_found():
    """With two conversations alone, what they share is not what all conversations share."""

    def around(hits):
        return [*hits, Hit("x", "raw", ANNOUNCED, 3, thread_id=hits[0].thread_id)]

    before, _, after = ranked()
    assert newer_first([before, after], around)[0].hit.thread_id == "after"


def said(thread, created_at, relevance, role="user"):
    hit = Hit(thread, "raw", thread, created_at, thread_id=thread, role=role, seq=1)
    return SearchCandidate("message", created_at, hit, score=1.0, relevance=relevance)


@pytest.mark.parametrize(
    ("later", "is_timed", "first"),
    [
        (said("later", 2, 0.98), False, "later"),
        (said("later", 2, 0.98), True, "earlier"),
        (said("later", 2, 0.6), False, "earlier"),
        (said("later", 2, 0.98, "assistant"), False, "earlier"),
    ],
    ids=["answers alike", "time named", "answers less", "of the assistant"],
)
def test_of_two_answers_alike_the_later_word_of_the_person_comes_first(later, is_timed, first):
    best = newer_first([said("earlier", 1, 0.99), later], is_timed=is_timed)
    assert best[0].hit.id == first
    assert not best[1].hit.metadata


def test_word_of_gardening_and_of_resolve_amends_nothing():
    for text in (
        "Compost makes a soil amendment for the attempts of the webhook sender and its delivery.",
        "I check the attempts of the webhook sender and its parked delivery from now on.",
        "Replacing the old sender of webhook attempts may scratch that itch of parked delivery.",
        "The revised plan for attempts of the webhook sender and its parked delivery is good.",
    ):

        def around(hits, text=text):
            return [*hits, Hit("x", "raw", text, 3, thread_id=hits[0].thread_id)]

        assert newer_first(ranked(), around)[0].hit.thread_id == "before"
