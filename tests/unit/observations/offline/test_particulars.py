"""What is particular in a line, and how a line is told by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.observations.offline.reflector import is_particular, told_in


@pytest.mark.parametrize(
    "text",
    [
        "It lives in src/limits.py.", "Call parse_retry_after first.",
        "Use structuredClone instead.", "It takes 55 %.",
        'I would recommend "Salt and Meridian".', "Add the `--since` flag", "run it with --dry-run",
        "Ask Okafor first",
        "my sister Marguerite", "see @ada", "the version is 2.14.1", "重跑测试", "mix.exs",
        "lib/app: one",
        "she said “no”",
    ],
)  # fmt: skip
def test_names_paths_numbers_and_quotes_are_particular(text: str) -> None:
    assert is_particular(text)


@pytest.mark.parametrize(
    "text",
    [
        "All pass.", "There is no hurry.", "How nice!", "Noted, I will keep to that.",
        "Yes, it is covered; go on.",
        "Agent answered: Happy to help with that.", "That's it, e.g. like this",
        "It's fine - really", "",
    ],
)  # fmt: skip
def test_what_could_be_said_of_anything_is_not(text: str) -> None:
    assert not is_particular(text)


def test_text_is_told_by_its_first_words_and_what_is_particular() -> None:
    text = (
        "Agent answered: I looked at it. It is nothing much, and it can wait for now. The "
        "cause is in src/a.py:14."
    )
    assert told_in(text, 80) == "Agent answered: I looked at it. The cause is in src/a.py:14. …"
    assert told_in(text, 1_000) == text
    assert len(told_in("word " * 100, 80)) <= 80


@given(st.text(max_size=300), st.integers(20, 200))
def test_told_in_is_never_longer_and_never_raises(text: str, characters: int) -> None:
    assert len(told_in(text, characters)) <= characters + 2
