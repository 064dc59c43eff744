"""A fixed corpus in six languages: the order of its answers, on both databases."""

from __future__ import annotations

import pytest

from evals.packs import scenarios_with_gold
from evals.sources import paraphrases
from evals.systems import smara_store


def answers(threads, questions, url=None):
    """Return what each question gives: hits with scores, threads, or what is nearest."""
    with smara_store(threads, url) as (memory, clock):
        given = []
        for question in questions:
            clock.asked_at = question.asked_at
            found = memory.search(question.text)
            conversations = memory.search_threads(question.text)
            given.append(
                (
                    [(hit.client_id, hit.score) for hit in found],
                    [(hit.client_id, hit.score) for hit in found.nearest],
                    [(hit.thread_id, hit.score) for hit in conversations],
                    memory.pack(found, 500).text,
                )
            )
        return given


@pytest.mark.postgres
def test_both_databases_answer_alike_in_the_same_order(postgres_url):
    dataset = scenarios_with_gold()
    threads = dataset.haystack("")
    here = answers(threads, dataset.questions[::2])
    there = answers(threads, dataset.questions[::2], postgres_url)
    different = [
        question.text
        for question, one, other in zip(dataset.questions[::2], here, there, strict=True)
        if one != other
    ]
    assert different == []
    assert sum(bool(hits) for hits, *_ in here) > len(here) // 2


def test_facts_told_in_passing_are_found_among_long_conversations():
    """A conversation of two messages has no other that speaks for it; it is no worse for that."""
    dataset = paraphrases()
    questions = [each for each in dataset.questions if each.kind == "en"]
    found = answers(dataset.haystack(""), questions)
    first = [
        question.text
        for question, (hits, *_) in zip(questions, found, strict=True)
        if question.gold & {key for key, _ in hits[:5]}
    ]
    assert len(first) >= 9, first
