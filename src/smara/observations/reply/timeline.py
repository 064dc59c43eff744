"""When the things happened that a reply tells of: what the messages themselves say about it wins.

A model writes ``(09:15)`` and perhaps a date. The messages have exact times, so a line is
put to the message of that minute; a date or a time that no message can have is mended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import date, datetime, time
from functools import cached_property
from typing import NamedTuple

from smara.core.days import zone_of
from smara.messages.models import Message
from smara.observations.models import Note
from smara.observations.render import local
from smara.observations.reply.dates import When

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
