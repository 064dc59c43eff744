"""Queries as terms: any string is one, and it stays within its limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from smara.core.dates import Period, find_period
from smara.search.query import MOST_PHRASES, MOST_TERMS, analyze_query


def test_stop_words_are_left_out_of_what_is_wanted() -> None:
    assert analyze_query("What did we change in the schema?").texts == ("chang", "schema")


def test_stop_words_alone_are_wanted() -> None:
    assert analyze_query("to be or not to be").texts == ("to", "be", "or", "not")


def test_capitals_are_names_and_not_stop_words() -> None:
    assert analyze_query("who is WHO").texts == ("who",)
    assert analyze_query("US or IT").texts == ("us", "it")


def test_name_and_parts_share_a_group() -> None:
    query = analyze_query("fix LoginSchema")
    assert [(term.text, term.kind, term.group) for term in query.terms] == [
        ("fix", "word", 0),
        ("loginschema", "identifier", 1),
        ("login", "part", 1),
        ("schema", "part", 1),
    ]
    assert query.terms[1].word == "LoginSchema"


def test_quoted_words_are_a_phrase_and_terms() -> None:
    query = analyze_query('where is "refresh tokens" used')
    assert query.phrases == ((" refresh token ", "refresh tokens"),)
    assert query.texts == ("refresh", "token", "use")


def test_words_of_time_are_weak() -> None:
    assert [
        term.text
        for term in analyze_query("how many days ago was the party").telling
        if term.is_weak
    ] == [
        "day",
        "ago",
    ]


def test_single_cjk_character_is_a_prefix() -> None:
    (term,) = analyze_query("重").terms
    assert term.is_prefix
    assert analyze_query("重跑测").texts == ("重跑", "跑测")


def test_long_query_keeps_what_tells_most() -> None:
    words = " ".join(f"common{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300))
    query = analyze_query(f"{words} src/smara/core/text.py LoginSchema")
    assert len(query.terms) == MOST_TERMS
    assert {"loginschema", "textpi"} <= set(query.texts)


@given(st.text(max_size=400) | st.text(alphabet="ab\"'*:()^-_ 重\x00\ud800", max_size=1500))
@settings(max_examples=300)
def test_no_query_raises_or_exceeds_its_limits(text: str) -> None:
    query = analyze_query(text)
    assert len({term.text for term in query.terms}) == len(query.terms) <= MOST_TERMS
    assert len(query.phrases) <= MOST_PHRASES
    assert query == analyze_query(text)


def test_dates_named_in_a_query() -> None:
    assert find_period("on March 16, 2022?") == Period(2022, 3, 16)
    assert find_period("the 3rd of May") == Period(None, 5, 3)
    assert find_period("in July 2023") == Period(2023, 7, None)
    assert find_period("what changed on 2024-05-03") == Period(2024, 5, 3)
    assert find_period("how many trips in March") == Period(None, 3, None)


def test_words_that_only_look_like_months_name_no_date() -> None:
    assert find_period("may I march on, decide, 1.2.2024-13") is None
    assert find_period("May I ask") is None
    assert find_period("32 May 2022") is None


def test_period_covers_the_days_after_it() -> None:
    period = Period(2022, 3, 16)
    day = 86_400_000
    noon = 1_647_432_000_000  # 2022-03-16 12:00 UTC
    assert [period.contains(noon + days * day) for days in (-3, 0, 6, 9)] == [
        False,
        True,
        True,
        False,
    ]
    assert not period.contains(10**18)
    assert period.render() == "16 March 2022"
