"""The days that words mean, on Wednesday 2026-03-11."""

from __future__ import annotations

from datetime import UTC, date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.dates import find_days, find_past_days, local_time, zone_of

WEDNESDAY = date(2026, 3, 11)


@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("I deployed it yesterday", "2026-03-10"),
        ("we talked the day before yesterday", "2026-03-09"),
        ("I slept badly last night", "2026-03-10"),
        ("I'll call tomorrow", "2026-03-12"),
        ("5 days ago", "2026-03-06"),
        ("a couple of days ago", "2026-03-09"),
        ("three weeks ago we started", "2026-02-16..2026-02-22"),
        ("two months ago", "2026-01-01..2026-01-31"),
        ("that was two years ago", "2024-01-01..2024-12-31"),
        ("we will ship in 2 days", "2026-03-13"),
        ("last week was hard", "2026-03-02..2026-03-08"),
        ("next month we move", "2026-04-01..2026-04-30"),
        ("this weekend", "2026-03-14..2026-03-15"),
        ("it must be done by Friday", "2026-03-13"),
        ("next Friday", "2026-03-20"),
        ("we met last Friday", "2026-03-06"),
        ("on Monday we deployed", "2026-03-09"),
        ("on Monday we will deploy", "2026-03-16"),
        ("until the end of the month", "2026-03-31"),
        ("I was there in November", "2025-11-01..2025-11-30"),
        ("I will be there in November", "2026-11-01..2026-11-30"),
        ("on 5 December 2024", "2024-12-05"),
        ("since 2024-05-03", "2024-05-03"),
        ("je l'ai fait hier", "2026-03-10"),
        ("la semaine prochaine", "2026-03-16..2026-03-22"),
        ("vor 3 Tagen", "2026-03-08"),
        ("昨天部署了", "2026-03-10"),
        ("3天前", "2026-03-08"),
    ],
)
def test_words_for_days_are_resolved_from_the_day_they_were_said_on(words, days):
    found = find_days(words, WEDNESDAY)
    assert found is not None
    assert found.render() == days


@pytest.mark.parametrize(
    "words",
    [
        "recently", "soon", "next sprint", "now", "today it works", "it was done in 2 days",
        "every Friday",
        "Mondays are bad", "my birthday is May 3", "the `yesterday` column",
        'the label says "last week"', "on Friday",
        "may I march on", "", "laſt week",
    ],
)  # fmt: skip
def test_what_names_no_day_has_none(words):
    assert find_days(words, WEDNESDAY) is None


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("what did I bake in the past two weeks?", "2026-02-25..2026-03-11"),
        ("which trips did I take over the last 3 months", "2025-12-08..2026-03-11"),
        ("what broke in the past few days", "2026-03-08..2026-03-11"),
        ("what did I repair the past weekend", "2026-03-07..2026-03-08"),
        ("how much have I written since I began three weeks ago", "2026-02-16..2026-03-11"),
        ("what did I buy two weeks ago", "2026-02-23..2026-03-01"),
    ],
)
def test_a_question_looks_back_on_days_that_end_today(question, days):
    found = find_past_days(question, WEDNESDAY)
    assert found is not None
    assert found.render() == days


@pytest.mark.parametrize(
    "question",
    ["what passed the tests", 'who wrote "the past two weeks"', "how many days ago did I fly"],
)
def test_a_question_without_days_looks_back_on_none(question):
    assert find_past_days(question, WEDNESDAY) is None


def test_the_first_of_two_days_counts():
    found = find_days("yesterday I said that I would come next week", WEDNESDAY)
    assert found is not None
    assert found.render() == "2026-03-10"


def test_the_day_is_that_of_the_speakers_clock():
    half_past_eleven_in_the_evening = 1_773_271_800_000  # 2026-03-11 23:30 UTC
    assert local_time(UTC, half_past_eleven_in_the_evening).date() == WEDNESDAY
    assert local_time(zone_of("Asia/Tokyo"), half_past_eleven_in_the_evening).date() == date(
        2026, 3, 12
    )


def test_an_unknown_zone_is_utc_and_an_impossible_time_is_1970():
    assert zone_of("Middle/Earth") is UTC
    assert zone_of("../../etc/passwd") is UTC
    assert local_time(UTC, 10**20).year == 1970


@given(st.text(max_size=300), st.dates())
def test_no_text_on_any_day_makes_it_fail(text, day):
    found = find_days(text, day)
    assert found is None or found.first <= found.last


@given(
    st.integers(0, 999),
    st.sampled_from(["day", "week", "month", "year"]),
    st.dates(date(1900, 1, 1), date(2100, 1, 1)),
)
def test_any_number_of_units_ago_lies_in_the_past(count, unit, day):
    found = find_days(f"{count} {unit}s ago", day)
    assert found is not None
    assert found.first <= day
