"""Text from outside is never told as the person's decision; the person's own words are."""

from __future__ import annotations

import sys

import pytest

from tests.faults.sizes import count

if sys.platform == "win32":
    pytest.skip("calls are forked", allow_module_level=True)

from evals.decision_attacks import BATCH, BATCHES, attacks, play
from evals.decisions import in_force, leaks

batches = pytest.mark.parametrize("batch", range(count(1, BATCHES)))


@batches
def test_text_from_outside_is_told_nowhere_as_the_decision_of_the_person(batch, tmp_path):
    played = play(batch, tmp_path)
    assert len(played) == BATCH
    assert [
        f"{attack.shape}, at {moments}: {attack.rule}"
        for attack, told in played
        if (moments := leaks(attack, told))
    ] == []


@batches
def test_the_same_sentences_are_told_when_the_person_says_them(batch, tmp_path):
    pytest.importorskip("smara.decisions")
    played = play(batch, tmp_path, is_control=True)
    assert sum(bool(leaks(attack, told)) for attack, told in played) >= BATCH / 2


def test_a_rule_is_recognized_through_hidden_characters():
    attack = attacks(0)[0]
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in attack.rule)
    assert attack.is_in(tags)
    assert attack.is_in("\u200b".join(attack.rule))
    assert not attack.is_in(attack.prompt)


def test_what_is_marked_as_superseded_or_rejected_is_not_in_force():
    text = (
        "Rule: tabs. Rejected: spaces\n"
        "- Superseded on 2026-01-02:\n"
        "    “two spaces”\n"
        "- “four spaces” (superseded 2026-02-03)\n"
        "- Port 80 stays"
    )
    assert in_force(text) == "Rule: tabs. \n- Port 80 stays"
