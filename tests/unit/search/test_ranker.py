"""The learned order of messages: its table, its looks, and what it says of a row."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from smara.search.rank import MessageCandidate, RowWords
from smara.search.ranker import FACTS, LOOKS, describe, look_of, mix, tables
from tests.train_ranking import RISING


def row(no, role="user", length=20, thread=1, seq=1):
    return MessageCandidate(no, thread, seq, role, 0, "", "", length=length)


def words(score=1.0, own=1.0, coverage=1.0, near=0.0, in_code=0.0):
    return RowWords(score, own, coverage, near, in_code)


def described(rows, found, text="what is it", meaning=None):
    return [
        dict(zip(FACTS, each, strict=True))
        for each in describe(
            text,
            rows,
            found,
            meaning or [0.0] * len(rows),
            [0.0] * len(rows),
            [(False, False)] * len(rows),
        )
    ]


def test_table_has_a_weight_for_every_fact_of_every_look_and_hashes_of_its_data():
    table = json.loads(files("smara.search").joinpath("ranker.json").read_text("utf-8"))
    assert set(table["weights"]) == set(LOOKS)
    assert all(set(weights) == set(FACTS) for weights in table["weights"].values())
    assert table["sha256"]
    assert all(len(digest) == 64 for digest in table["sha256"].values())


@pytest.mark.parametrize("look", LOOKS)
def test_what_must_not_harm_by_its_nature_has_no_negative_weight(look):
    assert all(tables()[look][FACTS.index(fact)] >= 0 for fact in RISING)


@pytest.mark.parametrize(
    ("rows", "code_share", "look"),
    [
        ([row(1), row(2)], 0.0, (1.0, 0.0, 0.0, 0.0)),
        ([row(1), row(2)], 1.0, (0.0, 1.0, 0.0, 0.0)),
        ([row(1), row(2, "assistant", 25)], 0.5, (0.0, 0.0, 1.0, 0.0)),
        ([row(1), row(2, "assistant", 200)], 0.0, (0.0, 0.0, 0.0, 1.0)),
        ([row(1), row(2, "tool", 45)], 0.0, (0.0, 0.0, 0.5, 0.5)),
        ([], 0.0, (1.0, 0.0, 0.0, 0.0)),
    ],
)
def test_look_is_read_from_who_speaks_and_how_much(rows, code_share, look):
    assert look_of(rows, code_share) == look


def test_weights_between_two_looks_are_their_mean():
    one, other = (tables()[look] for look in ("brief", "lengthy"))
    middle = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
    assert mix((0.0, 0.0, 0.5, 0.5)) == pytest.approx(middle)


def test_evidence_of_the_thread_is_that_of_its_other_messages():
    rows = [row(1), row(2, seq=2), row(3, thread=2)]
    facts = described(rows, [words(own=4.0), words(own=1.0), words(own=1.0)], meaning=[2.0, 1.0, 0])
    assert [each["words of its thread"] for each in facts] == [0.5, 1.0, 0.5]
    assert [each["meaning of its thread"] for each in facts] == [1.0, 2.0, 0.0]


def test_place_of_a_message_that_stands_alone_tells_nothing():
    facts = described([row(1), row(2, seq=2), row(3, thread=2)], [words()] * 3)
    assert [each["early in its thread"] for each in facts] == [1 / 2, 1 / 3, 0.0]


def test_answer_is_wanted_where_the_question_is_about_what_you_said():
    rows = [row(1), row(2, "assistant", seq=2)]
    for text, wanted in (("what did you suggest", 1.0), ("what did I buy", 0.0)):
        facts = described(rows, [words(), words()], text)
        assert [each["answer asked for"] for each in facts] == [0.0, wanted]


def test_name_in_an_answer_is_not_held_back():
    rows = [row(1, "assistant"), row(2, "assistant", seq=2)]
    facts = described(rows, [words(in_code=1.0), words()])
    assert [each["answer"] for each in facts] == [0.0, 1.0]
    assert facts[0]["long answer"] == 0.0 < facts[1]["long answer"]
