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


def test_what_amends_an_answer_is_as_relevant_as_it():
    def around(hits):
        return [*hits, Hit("x", "raw", ANNOUNCED, 3, thread_id=hits[0].thread_id)]

    assert newer_first(ranked(), around)[0].relevance == 0.9
