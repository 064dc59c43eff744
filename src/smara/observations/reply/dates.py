"""Read the dates of a reply and match them to messages.

Models write dates in many forms. Where a message gives the time, the message wins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from datetime import date, datetime, time
from functools import cached_property
from typing import NamedTuple

from smara.core.dates import parse_day, zone_of
from smara.core.startup.regex import re, regex
from smara.messages.models import Message
from smara.observations.models import Note
from smara.observations.render import local
from smara.observations.reply.sections import CUES


def parse_heading(line: str, near: Collection[date] = ()) -> date | None:
    """Parse the date of a heading line in any style."""
    if len(line) > 120:
        return None
    bare = CUES["aside"].sub(" ", line).strip(" \t#*_>-=:•|")
    label = CUES["label of date"].match(bare)
    bare = bare[label.end() :].strip(" \t*_:") if label else bare
    # A labelled date may be followed by what the day was about.
    return parse_day(bare, near) or (
        parse_day(CUES["remark"].split(bare)[0], near) if label else None
    )


class When(NamedTuple):
    """The time of a line: minutes, day, and the messages it cites."""

    start: int | None = None
    end: int | None = None
    day: date | None = None
    seqs: tuple[int, int] | None = None


_TIME = r"(\d{1,2})(?:[:.h](\d{2})(?::\d{2})?)?(?:\s?([ap])\.?m\b\.?)?"
_DAY = r"(?:(\d{4}-\d{2}-\d{2})[T ,]\s?)?"
_SEQS = r"#\s?(\d{1,9})(?:\s?(?:-|–|—|\.\.|,|to)\s?#?\s?(\d{1,9}))?"
_BRACKETED = regex(
    rf"[(\[]\s?(?:~|≈|at\s|ca\.\s)?{_DAY}(?:{_TIME})?(?:\s?(?:-|–|—|\.\.|to|→)\s?{_TIME})?"
    rf"\s?(?:Z|UTC|GMT|[A-Z]{{3,4}})?[\s,;]{{0,3}}(?:{_SEQS})?\s?[)\]]",
    re.IGNORECASE,
)
_BARE = regex(
    rf"{_DAY}(?=\d{{1,2}}(?::\d\d|\s?[ap]\.?m)){_TIME}(?:\s?(?:-|–|—)\s?{_TIME})?(?=\s|:\s|$)",
    re.IGNORECASE,
)


def take_time(text: str) -> tuple[When | None, str]:
    """Read the time at the beginning of a text.

    Return it and the rest.

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
    seqs = None
    if first:
        one, other = int(first), int(last or first)
        seqs = (min(one, other), max(one, other))
    on = parse_day(day) if day else None
    if not (minute or half or minute_2 or half_2):
        # A lone number in brackets is no time; a lone citation is one.
        return When(None, None, on, seqs=seqs) if seqs and not hour else None
    start = _minutes(hour, minute, half or half_2)
    end = _minutes(hour_2, minute_2, half_2 or half) if hour_2 else start
    if start is None or end is None:
        return None
    return When(start, max(start, end), on, seqs=seqs)


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
    """The moments that a reply can speak of, in its time zone."""

    def __init__(self, moments: Iterable[Moment], timezone: str, is_numbered: bool = True) -> None:
        self.timezone = timezone
        self._is_numbered = is_numbered
        self._moments = sorted(moments, key=lambda moment: moment.at)
        self._times = [moment.at for moment in self._moments]

    @classmethod
    def of_messages(cls, messages: Iterable[Message], timezone: str) -> Timeline:
        """Make a timeline of messages."""
        return cls((Moment(each.created_at, each.seq, each.seq) for each in messages), timezone)

    @classmethod
    def of_notes(cls, notes: Iterable[Note], timezone: str) -> Timeline:
        """Make a timeline of observations, whose message numbers say nothing."""
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
        """Find the moment of a line.

        ``day`` is what the heading above the line says, ``previous`` the time of the line
        before. Messages that the line cites decide; then the messages of its minute; then
        the time itself, when it lies among the messages; else the nearest moment there is.
        """
        if cited := self._cited(when):
            return cited
        day = when.day or day
        last = None if previous is None else local(previous, self.timezone).date()
        is_named = day is not None and day in self.days
        if when.start is None or when.end is None:
            at = self.start if previous is None else previous
            if day is not None and is_named and day != last:
                place = bisect_left(self._times, self._at(day, 0))
                at = self._times[min(place, len(self._times) - 1)]
            return Moment(at, None, None)
        # The heading's day alone, if something happened on it; else the previous line's day, those
        # after it, and the rest.
        days = (
            [day]
            if day is not None and is_named
            else sorted(self.days, key=lambda each: (last is not None and each < last, each))
        )
        for each in days:
            begin, end = self._at(each, when.start), self._at(each, when.end) + _MINUTE_MS
            inside = self._moments[bisect_left(self._times, begin) : bisect_left(self._times, end)]
            if inside:
                firsts = [moment.first_seq for moment in inside if moment.first_seq is not None]
                lasts = [moment.last_seq for moment in inside if moment.last_seq is not None]
                return Moment(inside[0].at, min(firsts, default=None), max(lasts, default=None))
        times = [self._at(each, when.start) for each in days] or [self.start]
        if not self._times:
            return Moment(times[0], None, None)
        for at in times:
            if self._times[0] <= at <= self._times[-1]:
                return Moment(at, None, None)
        nearest = min(self._times[0], self._times[-1], key=lambda at: abs(at - times[0]))
        return Moment(nearest, None, None)

    def _cited(self, when: When) -> Moment | None:
        if when.seqs is None or not self._is_numbered:
            return None
        first, last = when.seqs
        inside = [
            (moment.at, moment.first_seq, moment.last_seq)
            for moment in self._moments
            if moment.first_seq is not None
            and moment.last_seq is not None
            and moment.first_seq <= last
            and moment.last_seq >= first
        ]
        if not inside:
            return None
        begin = max(first, min(start for _, start, _ in inside))
        end = min(last, max(end for _, _, end in inside))
        return Moment(inside[0][0], begin, end)

    def _at(self, day: date, minutes: int) -> int:
        moment = datetime.combine(day, time(minutes // 60, minutes % 60), zone_of(self.timezone))
        return int(moment.timestamp() * 1000)
