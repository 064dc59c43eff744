"""Statements: when two say the same, and when a word makes all the difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.knowledge.statements import is_repeated_in, is_same_in_meaning, overlap, parse_statement

SAME = [
    ("Use pnpm and not npm for installing packages.", "use pnpm, not npm, for installing packages"),
    ("The auth tests need REDIS_URL", "Auth tests need `REDIS_URL`"),
    ("重跑测试之前先清缓存", "重跑测试之前先清缓存。"),
    ("auth tests hang without REDIS_URL set", "Auth tests hang without REDIS_URL being set"),
]
DIFFERENT = [
    ("Use pnpm 8 for installing packages", "Use pnpm 9 for installing packages"),
    ("Use pnpm for installing packages", "Do not use pnpm for installing packages"),
    ("billing depends on auth for tokens", "auth depends on billing for tokens"),
    ("Tests in src/auth.py are slow", "Tests in src/billing.py are slow"),
    ("Sessions are kept in Redis in production", "Sessions are kept in Postgres in production"),
    ("auth needs billing", "billing needs auth"),
    (
        "The long job that reads every row of the table and writes a report for accounting runs "
        "on Monday",
        "The long job that reads every row of the table and writes a report for accounting runs "
        "on Friday",
    ),
]


@pytest.mark.parametrize(("new", "old"), SAME)
def test_the_same_in_nearly_the_same_words_is_a_repetition(new, old):
    assert is_repeated_in(parse_statement(new), parse_statement(old))


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_one_word_can_make_another_statement(new, old):
    assert not is_repeated_in(parse_statement(new), parse_statement(old))
    assert not is_repeated_in(parse_statement(old), parse_statement(new))


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_however_close_in_meaning_other_facts_are_another_statement(new, old):
    assert not is_same_in_meaning(parse_statement(new), parse_statement(old), 0.99, least=0.88)


def test_a_paraphrase_that_lies_close_in_meaning_is_the_same():
    one, other = (
        parse_statement("Auth tests hang unless REDIS_URL is set"),
        parse_statement("Set REDIS_URL or the tests of auth will hang"),
    )
    assert not is_repeated_in(one, other)
    assert is_same_in_meaning(one, other, 0.93, least=0.88)
    assert not is_same_in_meaning(one, other, 0.88, least=0.88)


def test_what_adds_something_is_no_repetition():
    assert not is_repeated_in(
        parse_statement("Auth tests need Redis 7 on port 6380"),
        parse_statement("Auth tests need Redis"),
    )


@given(st.text(max_size=200))
def test_any_text_is_read_and_is_the_same_as_itself(text):
    statement = parse_statement(text)
    assert is_repeated_in(statement, statement) is bool(statement.content)
    assert len(statement.fingerprint) == 32


@given(st.text(alphabet="abc XYZ.,!", min_size=1, max_size=60))
def test_the_fingerprint_ignores_case_spacing_and_punctuation(text):
    assert (
        parse_statement(text).fingerprint == parse_statement(f"  {text.upper()} ").fingerprint
        or not parse_statement(text).words
    )


def test_the_overlap_of_nothing_with_nothing_is_whole():
    assert overlap(frozenset(), frozenset()) == 1.0
