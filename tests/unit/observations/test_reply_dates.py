"""Dates and times in the forms that models write them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.dates import parse_day, parse_days
from smara.observations.reply.dates import When, parse_heading, take_time

DAY = date(2025, 12, 4)


@pytest.mark.parametrize(
    "line",
    [
        "Date: 2025-12-04",
        "Date: Dec 4, 2025",
        "**Date: Dec 4, 2025**",
        "## 2025-12-04",
        "2025-12-04 (Thu)",
        "Date: 2025-12-04 (Thu)",
        "December 4, 2025",
        "Thursday, December 4, 2025",
        "Thu 4 December 2025:",
        "4th of December 2025",
        "2025/12/04",
        "2025.12.04",
        "12/04/2025",
        "04.12.2025",
        "Dec 4",
        "### Dec 4th",
        "- 2025-12-04",
        "2025年12月4日",
        "*Date:* 2025-12-04",
        "Dec 4, 2025 (today)",
        "12/4/25",
        "Day: 2025-12-04",
    ],
)
def test_heading_in_any_dress_is_its_date(line):
    assert parse_heading(line, {DAY}) == DAY


@pytest.mark.parametrize(
    "line",
    [
        "User said Dec 4, 2025 is the deadline",
        "Date:",
        "Today",
        "* 🔴 (09:15) User said hi",
        "2025-13-40",
        "Feb 30, 2025",
        "Observations for 2025-12-04",
        "Version 2025.12",
        "x" * 200,
        "",
    ],
)
def test_line_that_is_no_heading_is_none(line):
    assert parse_heading(line, {DAY}) is None


def test_year_that_was_left_out_is_the_nearest_one_that_can_be():
    assert parse_day("Jan 2", {date(2025, 12, 30), date(2026, 1, 2)}) == date(2026, 1, 2)
    assert parse_day("Jan 2") is None


def test_day_and_month_that_could_be_swapped_are_read_as_the_day_that_can_be():
    assert parse_day("05/12/2025", {date(2025, 12, 5)}) == date(2025, 12, 5)
    assert parse_day("05/12/2025", {date(2025, 5, 12)}) == date(2025, 5, 12)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("2025-12-04", "2025-12-04"),
        ("Dec 4, 2025", "2025-12-04"),
        ("~2025-12-04", "2025-12-04"),
        ("2025-12-01..2025-12-07", "2025-12-01..2025-12-07"),
        ("2025-12-01 to 2025-12-07", "2025-12-01..2025-12-07"),
        ("2025-12-01 – 2025-12-07", "2025-12-01..2025-12-07"),
        ("2025-12-01/2025-12-07", "2025-12-01..2025-12-07"),
        ("Dec 1-7, 2025", "2025-12-01..2025-12-07"),
        ("Dec 1 to Dec 7, 2025", "2025-12-01..2025-12-07"),
        ("March 2026", "2026-03-01..2026-03-31"),
        ("early March 2026", "2026-03-01..2026-03-31"),
        ("2024-02", "2024-02-01..2024-02-29"),
        ("2026", "2026-01-01..2026-12-31"),
        ("week of Dec 1, 2025", "2025-12-01..2025-12-07"),
        ("by 2025-12-05", "2025-12-05"),
        ("next week", None),
        ("2025-12-07..2025-12-01", None),
        ("2025-02-30", None),
        ("soon", None),
        ("", None),
        ("9999", None),
    ],
)
def test_span_is_read_or_is_none(text, span):
    days = parse_days(text)
    assert (days.render() if days else None) == span


@pytest.mark.parametrize(
    ("text", "start", "end", "rest"),
    [
        ("(09:15) x", 555, 555, " x"),
        ("(9:15) x", 555, 555, " x"),
        ("(9:15 AM) x", 555, 555, " x"),
        ("(2:05 p.m.) x", 845, 845, " x"),
        ("(12:00 am) x", 0, 0, " x"),
        ("(12 PM) x", 720, 720, " x"),
        ("[09:15] x", 555, 555, " x"),
        ("(09:15:59) x", 555, 555, " x"),
        ("(09h15) x", 555, 555, " x"),
        ("(09.15) x", 555, 555, " x"),
        ("(~09:15) x", 555, 555, " x"),
        ("(at 09:15) x", 555, 555, " x"),
        ("(09:15 UTC) x", 555, 555, " x"),
        ("(10:30-11:15) x", 630, 675, " x"),
        ("(10:30 – 11:15) x", 630, 675, " x"),
        ("(1-2 PM) x", 780, 840, " x"),
        ("(23:50-00:10) x", 1430, 1430, " x"),
        ("09:15 x", 555, 555, " x"),
        ("9:15am x", 555, 555, " x"),
        ("09:15: x", 555, 555, ": x"),
        ("2025-12-04 09:15 x", 555, 555, " x"),
    ],
)
def test_time_in_any_form_is_minutes_of_the_day(text, start, end, rest):
    found, left = take_time(text)
    assert found is not None
    assert (found.start, found.end, left) == (start, end, rest)


@pytest.mark.parametrize(
    "text",
    [
        "(see above) x",
        "(12) x",
        "(25:00) x",
        "(09:75) x",
        "12 files",
        "3.11 is required",
        "(10 - 12) x",
        "x (09:15)",
        "(a)",
        "()",
    ],
)
def test_what_is_no_time_stays_in_the_text(text):
    assert take_time(text) == (None, text)


@pytest.mark.parametrize(
    ("text", "seqs"),
    [
        ("(09:15 #12) x", (12, 12)),
        ("(09:15 #12-18) x", (12, 18)),
        ("(09:15, #12–#18) x", (12, 18)),
        ("(#12) x", (12, 12)),
        ("(09:15 # 18-12) x", (12, 18)),
        ("(10:30-11:15 #3,#9) x", (3, 9)),
    ],
)
def test_cited_messages_are_read_with_the_time(text, seqs):
    found, rest = take_time(text)
    assert found is not None
    assert (found.seqs, rest) == (seqs, " x")


def test_day_within_the_time_is_kept():
    assert take_time("(2025-12-04 09:15) x")[0] == When(555, 555, DAY, seqs=None)


@given(st.text("0123456789:-–.apmAPM #()[]T/ ", max_size=40))
def test_nothing_that_looks_like_a_time_can_break_the_reading(text):
    found, rest = take_time(text)
    assert text.endswith(rest)
    assert found is None or found.start is None or 0 <= found.start < 1440


@given(st.text(max_size=60))
def test_nothing_can_break_the_reading_of_dates(text):
    parse_heading(text, {DAY})
    parse_days(text, {DAY})


@given(
    st.dates(date(1900, 1, 1), date(2200, 12, 31)),
    st.sampled_from(["%Y-%m-%d", "%B %d, %Y", "%d %b %Y", "%Y/%m/%d"]),
)
def test_written_date_is_read_back(day, form):
    assert parse_day(day.strftime(form)) == day
