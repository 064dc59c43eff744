"""A date named in a text: "on 16 March 2022", "in July", "2024-05-03".

What was said about a day is mostly said on it or within the days after it, so a message
from that time is a better match. Dates that depend on when something is said ("last
week") are found by `days`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_DAYS_AFTER = 7
_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = re.compile(r"\b((?:19|20)\d\d)-([01]?\d)(?:-([0-3]?\d))?\b")
_WRITTEN = re.compile(
    rf"\b(?:([0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?)?({_MONTH})\b\.?"
    r"(?:\s+([0-3]?\d)(?:st|nd|rd|th)?\b)?(?:,?\s+((?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "jan", "dec", "sep", "jun"})

_BEFORE_A_MONTH = frozenset({"in", "last", "since", "during", "of", "this", "until", "by"})


@dataclass(frozen=True, slots=True)
class Period:
    """A month or a day, in a given year or in any."""

    year: int | None
    month: int
    day: int | None

    def contains(self, time_ms: int) -> bool:
        """Whether a moment lies in the month, or between the day before the day and a week after
        it.
        """
        try:
            moment = datetime.fromtimestamp(time_ms / 1000, UTC).date()
            if self.day is None:
                return moment.month == self.month and self.year in (None, moment.year)
            named = date(self.year or moment.year, self.month, self.day)
        except (ValueError, OverflowError, OSError):
            return False
        return timedelta(days=-1) <= moment - named <= timedelta(days=_DAYS_AFTER)

    def render(self) -> str:
        """The period as a person writes it: 16 March 2022."""
        month = _NAMES[self.month - 1].capitalize()
        return " ".join(str(part) for part in (self.day, month, self.year) if part is not None)


def find_period(text: str) -> Period | None:
    """The first date that a text names, or None."""
    if iso := _ISO.search(text):
        return _period(iso[1], int(iso[2]), iso[3])
    for written in _WRITTEN.finditer(text):
        day, name, later_day, year = written.groups()
        is_bare = not (day or later_day or year)
        if is_bare and name.lower() in _ALSO_WORDS and not _reads_as_month(text, written.start(2)):
            continue
        return _period(year, _MONTHS[name.lower()], day or later_day)
    return None


def _reads_as_month(text: str, start: int) -> bool:
    """``in May`` and ``last March`` are months; ``may I`` and ``march on`` are not."""
    before = text[:start].split()
    return text[start].isupper() and bool(before) and before[-1].lower() in _BEFORE_A_MONTH


def _period(year: str | None, month: int, day: str | None) -> Period | None:
    number = int(day) if day else None
    if not 1 <= month <= 12 or (number is not None and not 1 <= number <= 31):
        return None
    return Period(int(year) if year else None, month, number)
