"""Read the dates of a reply and match them to messages.

Models write dates in many forms. Where a message gives the time, the message wins.
"""

from __future__ import annotations

import calendar
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import NamedTuple

from smara.core.dates import zone_of
from smara.messages.models import Message
from smara.observations.models import Note
from smara.observations.render import local

_MONTHS = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_WEEKDAY = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b[.,]?", re.IGNORECASE
)

_YEAR_FIRST = re.compile(r"(\d{4})\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})日?")
_MONTH_FIRST = re.compile(
    rf"{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
_DAY_FIRST = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{_MONTH}(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
_NUMBERS = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4}|\d{2})")
_MONTH_ALONE = re.compile(rf"{_MONTH},?\s+(\d{{4}})|(\d{{4}})-(\d{{2}})", re.IGNORECASE)
_DAYS_OF_MONTH = re.compile(
    rf"{_MONTH}\s+(\d{{1,2}})\s*(?:-|–|—|to)\s*(\d{{1,2}}),?\s+(\d{{4}})", re.IGNORECASE
)
_YEAR_ALONE = re.compile(r"\d{4}")
_BETWEEN = re.compile(
    r"\s*(?:\.\.+|…|–|—|\bto\b|\buntil\b|\bthrough\b|/(?=\d{4})|\s-\s)\s*", re.IGNORECASE
)
_VAGUE = re.compile(
    r"\b(?:approximately|approx\.?|about|around|circa|ca\.|early|mid|late|end of|beginning of|the"
    r"|on|by|before|after"
    r"|week of)\b|[~≈?]",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:date|day)\s*:?\s*", re.IGNORECASE)
_REMARK = re.compile(r"\s[—–|-]\s|[:;]")
_ASIDE = re.compile(r"[(\[][^()\[\]]{0,40}[)\]]")


def parse_day(text: str, near: Collection[date] = ()) -> date | None:
    """The date that a text is, and nothing else; ``near`` are days it could be when it leaves
    something open.

    >>> parse_day("Thursday, Dec 4, 2025"), parse_day("4. December", {date(2025, 12, 4)})
    (datetime.date(2025, 12, 4), datetime.date(2025, 12, 4))
    """
    bare = _WEEKDAY.sub(" ", text[:80]).strip(" ,.\t")
    if match := _YEAR_FIRST.fullmatch(bare):
        return _date(int(match[1]), int(match[2]), int(match[3]))
    if match := _MONTH_FIRST.fullmatch(bare):
        return _in_year(match[3], _month(match[1]), int(match[2]), near=near)
    if match := _DAY_FIRST.fullmatch(bare):
        return _in_year(match[3], _month(match[2]), int(match[1]), near=near)
    if match := _NUMBERS.fullmatch(bare):
        year = int(match[3]) + (2000 if len(match[3]) == 2 else 0)
        first, second = int(match[1]), int(match[2])
        # 04/12 is April in one country and December in another: the one that can be is taken.
        readings = [day for day in (_date(year, first, second), _date(year, second, first)) if day]
        return next((day for day in readings if day in near), readings[0] if readings else None)
    return None


def parse_heading(line: str, near: Collection[date] = ()) -> date | None:
    """The date of a line that is a date heading, in whatever dress."""
    if len(line) > 120:
        return None
    bare = _ASIDE.sub(" ", line).strip(" \t#*_>-=:•|")
    label = _LABEL.match(bare)
    bare = bare[label.end() :].strip(" \t*_:") if label else bare
    # A labelled date may be followed by what the day was about.
    return parse_day(bare, near) or (parse_day(_REMARK.split(bare)[0], near) if label else None)


def parse_span(text: str, near: Collection[date] = ()) -> str | None:
    """The date or the span that a text names, as ``YYYY-MM-DD`` or ``YYYY-MM-DD..YYYY-MM-DD``.

    >>> parse_span("Dec 1 to Dec 7, 2025"), parse_span("March 2026"), parse_span("next week")
    ('2025-12-01..2025-12-07', '2026-03-01..2026-03-31', None)
    """
    is_week = "week of" in text.lower()
    bare = _VAGUE.sub(" ", _ASIDE.sub(" ", text)).strip(" ,.;:\t-")
    if match := _DAYS_OF_MONTH.fullmatch(bare):
        year, month = int(match[4]), _month(match[1])
        return _span(_date(year, month, int(match[2])), _date(year, month, int(match[3])))
    ends = _BETWEEN.split(bare, maxsplit=1)
    if len(ends) == 2:
        last = parse_day(ends[1], near)
        first = parse_day(
            ends[0], {_with_year(last, day) for day in near} | ({last} if last else set())
        )
        return _span(first, last)
    if day := parse_day(bare, near):
        return _span(day, day + timedelta(days=6) if is_week else day)
    return _month_or_year(bare)


def _month_or_year(text: str) -> str | None:
    if match := _MONTH_ALONE.fullmatch(text):
        year = int(match[2] or match[3])
        month = _month(match[1]) if match[1] else int(match[4])
        first = _date(year, month, 1)
        return (
            _span(first, first.replace(day=calendar.monthrange(year, month)[1])) if first else None
        )
    if _YEAR_ALONE.fullmatch(text) and 1900 <= int(text) <= 2100:
        return f"{text}-01-01..{text}-12-31"
    return None


def _span(first: date | None, last: date | None) -> str | None:
    if first is None or last is None or last < first:
        return None
    return first.isoformat() if first == last else f"{first.isoformat()}..{last.isoformat()}"


def _month(name: str) -> int:
    return _MONTHS[name[:3].lower()]


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if 1900 <= year <= 2200 else None
    except ValueError:
        return None


def _with_year(last: date | None, day: date) -> date:
    return day if last is None else date(last.year, day.month, min(day.day, 28))


def _in_year(year: str | None, month: int, day: int, near: Collection[date]) -> date | None:
    """A date whose year may have been left out: then it is the year in which it is nearest to one
    that could be.
    """
    if year:
        return _date(int(year), month, day)
    readings = [
        found for around in {each.year for each in near} if (found := _date(around, month, day))
    ]
    return min(readings, key=lambda found: min(abs(found - each) for each in near), default=None)


class When(NamedTuple):
    """What a line says of its time: minutes of the day from and to, the day, and the messages it
    comes from.
    """

    start: int | None = None
    end: int | None = None
    day: date | None = None
    seqs: tuple[int, int] | None = None


_TIME = r"(\d{1,2})(?:[:.h](\d{2})(?::\d{2})?)?(?:\s?([ap])\.?m\b\.?)?"
_DAY = r"(?:(\d{4}-\d{2}-\d{2})[T ,]\s?)?"
_SEQS = r"#\s?(\d{1,9})(?:\s?(?:-|–|—|\.\.|,|to)\s?#?\s?(\d{1,9}))?"
_BRACKETED = re.compile(
    rf"[(\[]\s?(?:~|≈|at\s|ca\.\s)?{_DAY}(?:{_TIME})?(?:\s?(?:-|–|—|\.\.|to|→)\s?{_TIME})?"
    rf"\s?(?:Z|UTC|GMT|[A-Z]{{3,4}})?[\s,;]{{0,3}}(?:{_SEQS})?\s?[)\]]",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"{_DAY}(?=\d{{1,2}}(?::\d\d|\s?[ap]\.?m)){_TIME}(?:\s?(?:-|–|—)\s?{_TIME})?(?=\s|:\s|$)",
    re.IGNORECASE,
)


def take_time(text: str) -> tuple[When | None, str]:
    """The time at the beginning of a text, with the messages it cites, and the rest of the text.

    >>> take_time("(2:05 PM #12-14) Agent ran")
    (When(start=845, end=845, day=None, seqs=(12, 14)), ' Agent ran')
    """
    if match := _BRACKETED.match(text):
        found = _when(match.groups())
    elif match := _BARE.match(text):
        found = _when((*match.groups(), None, None))
    else:
        return None, text
    return (None, text) if found is None else (found, text[match.end() :])


def _when(groups: tuple[str | None, ...]) -> When | None:
    day, hour, minute, half, hour_2, minute_2, half_2, first, last = groups
    seqs = _ordered(int(first), int(last or first)) if first else None
    on = _date(*map(int, day.split("-"))) if day else None
    if not (minute or half or minute_2 or half_2):
        # A lone number in brackets is no time; a lone citation is one.
        return When(None, None, on, seqs=seqs) if seqs and not hour else None
    start = _minutes(hour, minute, half or half_2)
    end = _minutes(hour_2, minute_2, half_2 or half) if hour_2 else start
    if start is None or end is None:
        return None
    return When(start, max(start, end), on, seqs=seqs)


def _ordered(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one <= other else (other, one)


def _minutes(hour: str | None, minute: str | None, half: str | None) -> int | None:
    hours, minutes = int(hour or 24), int(minute or 0)
    if half and 1 <= hours <= 12:
        hours = hours % 12 + (12 if half in "pP" else 0)
    return hours * 60 + minutes if hours < 24 and minutes < 60 else None


_MINUTE_MS = 60_000
_MOST_DAYS = 4_000


class Moment(NamedTuple):
    """Something that happened, and the messages in which it did."""

    at: int
    first_seq: int | None
    last_seq: int | None


class Timeline:
    """The moments that a reply can speak of, in the time zone in which it speaks."""

    def __init__(self, moments: Iterable[Moment], timezone: str, is_numbered: bool = True) -> None:
        self.timezone = timezone
        self._is_numbered = is_numbered
        self._moments = sorted(moments, key=lambda moment: moment.at)
        self._times = [moment.at for moment in self._moments]

    @classmethod
    def of_messages(cls, messages: Iterable[Message], timezone: str) -> Timeline:
        """The times of messages."""
        return cls((Moment(each.created_at, each.seq, each.seq) for each in messages), timezone)

    @classmethod
    def of_notes(cls, notes: Iterable[Note], timezone: str) -> Timeline:
        """The times of observations that are condensed, perhaps of several threads, so that numbers
        say nothing.
        """
        return cls(
            (Moment(each.said_at, each.first_seq, each.last_seq) for each in notes),
            timezone,
            is_numbered=False,
        )

    @cached_property
    def days(self) -> tuple[date, ...]:
        """The days on which something happened, in order."""
        return tuple(dict.fromkeys(local(at, self.timezone).date() for at in self._times))[
            :_MOST_DAYS
        ]

    @property
    def start(self) -> int:
        """The time of the first moment."""
        return self._times[0] if self._times else 0

    def locate(self, when: When, day: date | None, previous: int | None) -> Moment:
        """The moment of a line.

        ``day`` is what the heading above the line says, ``previous`` the time of the line
        before. Messages that the line cites decide; then the messages of its minute; then
        the time itself, when it lies among the messages; else the nearest moment there is.
        """
        if cited := self._cited(when):
            return cited
        day = when.day or day
        if when.start is None or when.end is None:
            return Moment(self._without_time(day, previous), None, None)
        days = self._days_for(day, previous)
        for each in days:
            if found := self._within(
                self._at(each, when.start), self._at(each, when.end) + _MINUTE_MS
            ):
                return found
        for each in days:
            at = self._at(each, when.start)
            if self._times and self._times[0] <= at <= self._times[-1]:
                return Moment(at, None, None)
        at = self._at(days[0], when.start) if days else self.start
        return Moment(self._nearest(at), None, None)

    def _cited(self, when: When) -> Moment | None:
        if when.seqs is None or not self._is_numbered:
            return None
        first, last = when.seqs
        inside = [
            each
            for each in self._moments
            if each.first_seq is not None
            and each.last_seq is not None
            and each.first_seq <= last
            and each.last_seq >= first
        ]
        if not inside:
            return None
        begin = max(first, min(each.first_seq or first for each in inside))
        end = min(last, max(each.last_seq or last for each in inside))
        return Moment(inside[0].at, begin, end)

    def _days_for(self, day: date | None, previous: int | None) -> list[date]:
        """The days a time may be of, the likeliest first: the heading's, the previous line's, those
        after, the rest.
        """
        if day in self.days:
            return [day] if day is not None else []
        last = (
            self.days[0] if previous is None and self.days else self._date(previous or self.start)
        )
        return [each for each in self.days if each >= last] + [
            each for each in self.days if each < last
        ]

    def _within(self, begin: int, end: int) -> Moment | None:
        """What happened from ``begin`` to before ``end``, as one moment."""
        inside = self._moments[bisect_left(self._times, begin) : bisect_right(self._times, end - 1)]
        if not inside:
            return None
        firsts = [each.first_seq for each in inside if each.first_seq is not None]
        lasts = [each.last_seq for each in inside if each.last_seq is not None]
        return Moment(inside[0].at, min(firsts, default=None), max(lasts, default=None))

    def _without_time(self, day: date | None, previous: int | None) -> int:
        if day in self.days and day is not None:
            if previous is not None and self._date(previous) == day:
                return previous
            at = bisect_left(self._times, self._at(day, 0))
            return self._times[min(at, len(self._times) - 1)]
        return self.start if previous is None else previous

    def _nearest(self, at: int) -> int:
        if not self._times:
            return at
        after = bisect_left(self._times, at)
        around = self._times[max(0, after - 1) : after + 1]
        return min(around, key=lambda each: abs(each - at))

    def _at(self, day: date, minutes: int) -> int:
        moment = datetime.combine(day, time(minutes // 60, minutes % 60), zone_of(self.timezone))
        return int(moment.timestamp() * 1000)

    def _date(self, at: int) -> date:
        return local(at, self.timezone).date()
