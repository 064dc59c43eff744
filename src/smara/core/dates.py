"""Find the dates and days that a text names.

`find_period` reads written dates: "16 March 2022", "2024-05-03". `find_days` also resolves
relative ones, such as "last Friday", against the day on which the text was written.
"""

from __future__ import annotations

import calendar
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex

_DAYS_AFTER = 7
_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = regex(r"\b((?:19|20)\d\d)-([01]?\d)(?:-([0-3]?\d))?\b")
_WRITTEN = regex(
    rf"\b(?:([0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?)?({_MONTH})\b\.?"
    r"(?:\s+([0-3]?\d)(?:st|nd|rd|th)?\b)?(?:,?\s+((?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "jan", "dec", "sep", "jun"})

_DATE_NUMBER = regex(r"\d{1,4}(?:st|nd|rd|th)?|\d{4}-\d\d(?:-\d\d)?")
_BEFORE_A_MONTH = frozenset({"in", "last", "since", "during", "of", "this", "until", "by"})


@dataclass(frozen=True, slots=True)
class Period:
    """A month or a day, in a given year or in any."""

    year: int | None
    month: int
    day: int | None

    def contains(self, time_ms: int) -> bool:
        """Return True if a moment is near this period.

        In the month, or between the day before the day and a week after it.
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
        if not (day or later_day or year) and name.lower() in _ALSO_WORDS:
            # "in May" and "last March" are months; "may I" and "march on" are not.
            before = text[: written.start(2)].split()[-1:]
            if not name[0].isupper() or not before or before[0].lower() not in _BEFORE_A_MONTH:
                continue
        return _period(year, _MONTHS[name.lower()], day or later_day)
    return None


def is_date_word(word: str) -> bool:
    """Return True for a month, a day or a year.

    >>> [is_date_word(word) for word in ("March", "3rd", "2024", "marching", "v2")]
    [True, True, True, False, False]
    """
    return word.lower() in _MONTHS or _DATE_NUMBER.fullmatch(word) is not None


def _period(year: str | None, month: int, day: str | None) -> Period | None:
    number = int(day) if day else None
    if not 1 <= month <= 12 or (number is not None and not 1 <= number <= 31):
        return None
    return Period(int(year) if year else None, month, number)


_READ_CHARACTERS = 2_000
_SLACK = timedelta(days=1)
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "couple of": 2, "a couple of": 2, "un": 1, "une": 1, "deux": 2,
    "trois": 3, "einem": 1,
    "einer": 1, "zwei": 2, "drei": 3, "dos": 2, "tres": 3, "两": 2, "一": 1, "二": 2, "三": 3,
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {
    "day": "day", "jour": "day", "tag": "day", "día": "day", "dia": "day", "天": "day", "日": "day",
    "week": "week", "semaine": "week", "woche": "week", "semana": "week", "周": "week", "週間": "week",  # noqa: E501
    "month": "month", "mois": "month", "monat": "month", "mes": "month", "个月": "month",
    "ヶ月": "month",
    "year": "year", "an": "year", "année": "year", "jahr": "year", "año": "year", "年": "year",
}  # fmt: skip
_DAYS_AWAY = {
    "yesterday": -1, "last night": -1, "tomorrow": 1, "day before yesterday": -2,
    "day after tomorrow": 2,
    "hier": -1, "demain": 1, "avant-hier": -2, "après-demain": 2, "gestern": -1, "vorgestern": -2,
    "übermorgen": 2,
    "ayer": -1, "anteayer": -2, "ieri": -1, "domani": 1, "ontem": -1, "amanhã": 1, "вчера": -1,
    "завтра": 1,
    "昨天": -1, "明天": 1, "前天": -2, "后天": 2, "昨日": -1, "明日": 1, "一昨日": -2, "明後日": 2,
    "어제": -1, "내일": 1,
}  # fmt: skip
_SPANS_AWAY = {
    "last week": ("week", -1), "this week": ("week", 0), "next week": ("week", 1),
    "last month": ("month", -1),
    "this month": ("month", 0), "next month": ("month", 1), "last year": ("year", -1),
    "next year": ("year", 1),
    "last weekend": ("weekend", -1), "this weekend": ("weekend", 0), "next weekend": ("weekend", 1),
    "semaine dernière": ("week", -1), "semaine prochaine": ("week", 1), "mois dernier": ("month",
    -1),
    "letzte woche": ("week", -1), "nächste woche": ("week", 1), "letzten monat": ("month", -1),
    "semana pasada": ("week", -1), "próxima semana": ("week", 1), "mes pasado": ("month", -1),
    "上周": ("week", -1), "下周": ("week", 1), "上个月": ("month", -1), "下个月": ("month", 1),
    "先週": ("week", -1), "来週": ("week", 1), "先月": ("month", -1), "来月": ("month", 1),
}  # fmt: skip


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_COUNT = rf"(\d{{1,3}}|{_any_of(_NUMBERS)})"
_UNIT = rf"({_any_of(_UNITS)})(?:s|es|en|e|n)?"
_WORD = r"(?<![^\W_])(?:{})(?![^\W_])"
_FIRST_KANA = "\u3040"


def _words(table: Iterable[str]) -> re.Pattern[str]:
    words = list(table)
    spaced = [word for word in words if max(word) < _FIRST_KANA]
    glued = [word for word in words if max(word) >= _FIRST_KANA]
    return regex(rf"{_WORD.format(_any_of(spaced))}|{_any_of(glued)}", re.IGNORECASE)


_BACK = regex(
    rf"\b(?:past|last|previous)\s{{1,3}}(?:{_COUNT}|few|several)\s{{1,3}}(day|week|month|year)s?\b"
    r"|\bpast\s{1,3}(day|weekend|week|month|year)\b",
    re.IGNORECASE,
)
_SINCE = regex(r"\bsince\b", re.IGNORECASE)
_A_FEW = 3
_DAYS_OF = {"day": 1, "week": 7, "month": 31, "year": 366}
_FUTURE = regex(
    r"\b(?:will|going to|gonna|plan|plans|planning|by|until|due|deadline|upcoming|next)\b|'ll\b",
    re.I,
)
_PAST = regex(
    r"\b(?:was|were|went|had|did|been|got|bought|met|saw|took|made|ago|last|[a-z]{3,20}ed)\b", re.I
)
_RECURRING = regex(r"\b(?:every|each|anniversary|birthday|annual|annually|yearly)\b", re.IGNORECASE)
_HINTS = (
    "day", "week", "month", "year", "morrow", "night", "hier", "demain", "gestern", "woche",
    "monat", "semain", "semana", " mes", "jour", "tag", "ayer", "ieri", "domani", "ontem", "20",
    "19",
    " jan", " feb", " mar", " apr", " may", " jun", " jul", " aug", " sep", " oct", " nov", " dec",
)  # fmt: skip
_QUOTED = regex(r"`[^`\n]{0,300}`|\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”")


@dataclass(frozen=True, slots=True)
class Days:
    """A day, or the days from the first to the last."""

    first: date
    last: date

    def contains(self, time_ms: int) -> bool:
        """Return True if a moment lies within a day of these days.

        Clocks and words are not exact.
        """
        try:
            moment = datetime.fromtimestamp(time_ms / 1000, UTC).date()
        except (ValueError, OverflowError, OSError):
            return False
        return self.first - _SLACK <= moment <= self.last + _SLACK

    def render(self) -> str:
        """``2026-03-10``, or ``2026-03-02..2026-03-08``."""
        return "..".join(dict.fromkeys((self.first.isoformat(), self.last.isoformat())))


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """Return the time zone of that name, or UTC."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


def local_time(zone: tzinfo, time_ms: int) -> datetime:
    """Convert milliseconds to a zone's time; out of range becomes 1970."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, zone)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, zone)


def find_days(text: str, said_on: date) -> Days | None:
    """Find the first days a text names, relative to its day.

    What stands in quotation marks or back quotes is a name, not a date.
    """
    head = text[:_READ_CHARACTERS]
    # A cheap look spares most texts the patterns.
    if head.isascii() and not any(map(f" {head.lower()}".__contains__, _HINTS)):
        return None
    sentence = _QUOTED.sub(" ", head)
    matches = [
        (match.start(), form, match)
        for form, pattern in _RELATIVE.items()
        if (match := pattern.search(sentence))
    ]
    try:
        for _, form, match in sorted(matches, key=lambda each: each[0]):
            if days := _resolve(form, match, sentence, today=said_on):
                return days
        period = None if _RECURRING.search(sentence) else find_period(sentence)
        if period is None:
            return None
        # Without a year, it is the one that the tense of the sentence makes likely.
        named = (period.month, period.day or 0)
        now = (said_on.month, said_on.day if period.day else 0)
        is_ahead = _FUTURE.search(sentence)
        year = period.year or said_on.year + ((named < now) if is_ahead else -(named > now))
        if period.day is None:
            return _month(year, period.month)
        day = date(year, period.month, period.day)
        return Days(day, day)
    except (OverflowError, ValueError, KeyError):
        return None  # no such day, or a letter whose small form is another


def find_past_days(text: str, today: date) -> Days | None:
    """Return the days a question looks back on.

    "The past two weeks" among them.

    >>> find_past_days("what did I bake in the past two weeks?", date(2026, 3, 11)).render()
    '2026-02-25..2026-03-11'
    """
    read = _QUOTED.sub(" ", text[:_READ_CHARACTERS])
    try:
        if match := _BACK.search(read):
            count, unit = match[1], (match[2] or match[3]).lower()
            if unit == "weekend":
                return _shift_days(today, unit, -1)
            number = _number(count) if count else 1 if match[3] else _A_FEW
            return Days(today - timedelta(days=number * _DAYS_OF[unit]), today)
        days = find_days(read, today)
        if days is not None and days.first < today and _SINCE.search(read):
            return Days(days.first, today)
        return days
    except (OverflowError, ValueError, KeyError):
        return None


def _resolve(form: str, hit: re.Match[str], sentence: str, today: date) -> Days | None:
    """Return the days that a relative form means; None if it means none."""
    match form:
        case "day":
            return _shift_days(today, "day", _DAYS_AWAY[hit[0].lower()])
        case "span":
            return _shift_days(today, *_SPANS_AWAY[hit[0].lower()])
        case "ago":
            count, unit = [group for group in hit.groups() if group]
            return _shift_days(today, _UNITS[unit.lower()], -_number(count))
        case "cjk ago":
            sign = -1 if hit[3] == "前" else 1
            return _shift_days(today, _UNITS[hit[2]], sign * _number(hit[1]))
        case "ahead":
            # "It was done in 2 days" tells how long it took.
            if _PAST.search(sentence) and not _FUTURE.search(sentence):
                return None
            return _shift_days(today, _UNITS[hit[2].lower()], _number(hit[1]))
        case "end of month":
            last = _month(today.year, today.month).last
            return Days(last, last)
    before, weekday = (hit[1] or "").lower(), _WEEKDAYS.index(hit[2].lower())
    ahead = today + timedelta(days=(weekday - today.weekday()) % 7)
    if before == "next":
        day = today + timedelta(days=7 + weekday - today.weekday())
    elif before == "last":
        day = ahead - timedelta(days=7)
    elif before == "every" or sentence[hit.end() : hit.end() + 1] == "s":
        return None
    elif before in ("by", "until", "before", "due", "this") or _FUTURE.search(sentence):
        day = ahead
    elif _PAST.search(sentence):
        day = ahead - timedelta(days=7)
    else:
        return None
    return Days(day, day)


def _shift_days(today: date, unit: str, count: int) -> Days:
    match unit:
        case "day":
            day = today + timedelta(days=count)
            return Days(day, day)
        case "month":
            months = today.year * 12 + today.month - 1 + count
            return _month(months // 12, months % 12 + 1)
        case "year":
            return Days(date(today.year + count, 1, 1), date(today.year + count, 12, 31))
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=count)
    return Days(monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(days=6))


def _month(year: int, month: int) -> Days:
    return Days(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]


_RELATIVE = {
    "day": _words(_DAYS_AWAY),
    "span": _words(_SPANS_AWAY),
    "ago": regex(
        rf"\b{_COUNT}\s{{0,3}}{_UNIT}\s{{1,3}}ago\b|\b(?:il y a|hace"
        rf"|vor)\s{{1,3}}{_COUNT}\s{{1,3}}{_UNIT}\b",
        re.I,
    ),
    "cjk ago": regex(r"(\d{1,3}|[一二三两])\s?(天|日|周|週間|个月|ヶ月|年)(前|后|後)"),
    "ahead": regex(rf"\b(?:in|dans|en)\s{{1,3}}{_COUNT}\s{{1,3}}{_UNIT}\b", re.IGNORECASE),
    "end of month": regex(r"\bend of (?:the|this) month\b", re.IGNORECASE),
    "weekday": regex(
        rf"(?:\b(last|next|this|by|until|before|due|on|every)\s{{1,3}})?\b({'|'.join(_WEEKDAYS)})\b",
        re.I,
    ),
}

_ORDINAL = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_NAME = rf"(?P<name>{_MONTH})\.?"
_DAY_FORMS = tuple(
    regex(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})\s?[-/.年]\s?(?P<month>\d{1,2})\s?[-/.月]\s?(?P<day>\d{1,2})日?",
        rf"{_NAME}\s+{_ORDINAL}(?:,?\s+(?P<year>\d{{4}}))?",
        rf"{_ORDINAL}\.?\s+(?:of\s+)?{_NAME}(?:,?\s+(?P<year>\d{{4}}))?",
        r"(?P<month>\d{1,2})[/.](?P<day>\d{1,2})[/.](?P<year>\d{4}|\d{2})",
        r"(?P<day>\d{1,2})[/.](?P<month>\d{1,2})[/.](?P<year>\d{4}|\d{2})",
    )
)
_WEEKDAY_NAME = regex(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b[.,]?", re.IGNORECASE
)
_WHOLE_MONTH = regex(rf"({_MONTH})\.?,?\s+(\d{{4}})|(\d{{4}})-(\d{{2}})", re.IGNORECASE)
_DAYS_OF_MONTH = regex(
    rf"({_MONTH}\.?)\s+(\d{{1,2}})\s*(?:-|–|—|to)\s*(\d{{1,2}}),?\s+(\d{{4}})", re.IGNORECASE
)
_BETWEEN = regex(
    r"\s*(?:\.\.+|…|–|—|\bto\b|\buntil\b|\bthrough\b|/(?=\d{4})|\s-\s)\s*", re.IGNORECASE
)
_VAGUE = regex(
    r"\b(?:approximately|approx\.?|about|around|circa|ca\.|early|mid|late|end of|beginning of|the"
    r"|on|by|before|after|week of)\b|[~≈?]|[(\[][^()\[\]]{0,40}[)\]]",
    re.IGNORECASE,
)


def parse_day(text: str, near: Collection[date] = ()) -> date | None:
    """Read a text that is a date and nothing else.

    Args:
        text: The date in figures or words, with or without its weekday.
        near: Days it could be, which decide where the text leaves something open.

    >>> parse_day("Thursday, Dec 4, 2025"), parse_day("4. December", {date(2025, 12, 4)})
    (datetime.date(2025, 12, 4), datetime.date(2025, 12, 4))
    """
    bare = _WEEKDAY_NAME.sub(" ", text[:80]).strip(" ,.\t")
    readings: list[date] = []
    for form in _DAY_FORMS:
        if match := form.fullmatch(bare):
            given = match.groupdict()
            name, year = given.get("name"), given["year"]
            month = _MONTHS[name.lower()] if name else int(given["month"])
            years = [int(year) + 2000 * (len(year) == 2)] if year else {day.year for day in near}
            for each in years:
                with suppress(ValueError):
                    readings += (
                        [date(each, month, int(given["day"]))] if 1900 <= each <= 2200 else []
                    )
    # 04/12 is April in one country and December in another: the one that can be is taken.
    return min(
        readings, key=lambda day: min((abs(day - each) for each in near), default=0), default=None
    )


def parse_days(text: str, near: Collection[date] = ()) -> Days | None:
    """Parse a text that is a day, span, month or year.

    >>> parse_days("Dec 1 to Dec 7, 2025").render(), parse_days("March 2026").render()
    ('2025-12-01..2025-12-07', '2026-03-01..2026-03-31')
    """
    bare = _VAGUE.sub(" ", text).strip(" ,.;:\t-")
    ends = _BETWEEN.split(bare, maxsplit=1)
    if match := _DAYS_OF_MONTH.fullmatch(bare):
        ends = [f"{match[1]} {match[2]}", f"{match[1]} {match[3]}, {match[4]}"]
    if len(ends) == 2:
        last = parse_day(ends[1], near)
        first = parse_day(ends[0], {last}) if last else None
        return Days(first, last) if first and last and first <= last else None
    if day := parse_day(bare, near):
        return Days(day, day + timedelta(days=6) if "week of" in text.lower() else day)
    if match := _WHOLE_MONTH.fullmatch(bare):
        year, month = int(match[2] or match[3]), int(match[4] or 0)
        month = _MONTHS.get(match[1].lower(), 0) if match[1] else month
        return _month(year, month) if 1900 <= year <= 2200 and 1 <= month <= 12 else None
    is_year = re.fullmatch(r"(?:19|20)\d\d|2100", bare)
    return Days(date(int(bare), 1, 1), date(int(bare), 12, 31)) if is_year else None
