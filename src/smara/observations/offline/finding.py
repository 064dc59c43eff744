"""Looking for a value in sentences by what its schema says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from smara.core.days import days_meant, moment_in
from smara.core.wordlists import word_set
from smara.working.keywords import compiled

_MOST = 400
_LONGEST_VALUE = 200
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SAYS_NOTHING = word_set(
    "a an the of for and or is all every each list value field item items name text number data"
)
_DATE_WORDS = word_set("date day time at on when")
_EVERYDAY = word_set(
    "high low medium open closed done none yes no true false on off good bad new old small large "
    "left right up down"
    " fast slow easy hard start stop many few some any other next last first one two three main "
    "test work"
)
"""Values that occur in any talk; they count only where their field is named."""

_NUMBER = re.compile(
    r"(?<![\w.,-])([-+]?)[$€£]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w]|[.,]\d)"
)
_TRUTHS = re.compile(r"\b(true|false|yes|no|on|off|enabled|disabled)\b", re.IGNORECASE)
_TRUE = word_set("true yes on enabled")
_FORMATS: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "uri": re.compile(
        r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`)\]}]{1,500}(?<![.,;:!?])", re.IGNORECASE
    ),
    "uuid": re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE),
    "ipv4": re.compile(
        r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])"
    ),
    "time": re.compile(r"(?<![\d:])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\d:])"),
}
_FORMATS["url"] = _FORMATS["uri"]


class Sentence(NamedTuple):
    """Words, and when they were said."""

    text: str
    at: int


def labels_of(name: str) -> list[str]:
    """The words by which a field is known: ``dueDate`` and ``due_dates`` are "due" and "date".

    >>> labels_of("dueDates"), labels_of("list_of_decisions")
    (['due', 'date'], ['decision'])
    """
    words = [_singular(word.lower()) for word in _WORDS.findall(name)]
    return [word for word in words if word not in _SAYS_NOTHING] or words


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith(("xes", "sses", "ches", "shes")):
        return word[:-2]
    return (
        word[:-1]
        if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
        else word
    )


class Finder:
    """Finds values in sentences, in the order in which they were said."""

    def __init__(self, said: Sequence[Sentence], zone: tzinfo) -> None:
        self._said = said
        self._zone = zone

    def candidates(
        self, schema: Mapping[str, Any], kind: str, label: str, is_list: bool = False
    ) -> list[Any] | None:
        """Every value that was said; ``None`` when the schema does not tell how to look for one."""
        if "const" in schema or isinstance(schema.get("enum"), list):
            return self._named(schema.get("enum") or [schema["const"]], label)
        if kind == "string":
            return self._texts(schema, label, is_list)
        if kind in ("integer", "number"):
            return self._numbers(kind, label, is_list)
        return self._truths(label) if kind == "boolean" else None

    def _named(self, values: Sequence[Any], label: str) -> list[Any]:
        """The allowed values that were said, as whole words."""
        words = {
            str(value): value
            for value in values
            if isinstance(value, str | int | float) and str(value).strip()
        }
        if not words:
            return []
        pattern = re.compile(
            r"(?<![\w-])(?:"
            + "|".join(re.escape(each) for each in sorted(words, key=len, reverse=True))
            + r")(?![\w-])",
            re.IGNORECASE,
        )
        folded = {each.lower(): value for each, value in words.items()}
        is_label = self._mentions(label)
        return [
            folded[match[0].lower()]
            for sentence in self._said
            for match in pattern.finditer(sentence.text)
            if not _is_everyday(match[0]) or is_label(sentence.text)
        ][:_MOST]

    def _texts(self, schema: Mapping[str, Any], label: str, is_list: bool) -> list[Any] | None:
        form = schema.get("format")
        if isinstance(schema.get("pattern"), str):
            return self._patterned(schema["pattern"])
        if form in ("date", "date-time"):
            return self._dates(label, is_list) if form == "date" else None
        if isinstance(form, str) and form in _FORMATS:
            return [
                match[0] for each in self._said for match in _FORMATS[form].finditer(each.text)
            ][:_MOST]
        return None if is_list else self._labelled(label)

    def _patterned(self, pattern: str) -> list[Any]:
        """What fits a pattern and is no part of a longer word, wherever it stands."""
        bare = pattern.removeprefix("^")
        bare = bare if bare.endswith("\\$") else bare.removesuffix("$")
        found = compiled(bare)
        return [
            match.group(0)
            for each in self._said
            for match in found.finditer(each.text)
            if match.group(0) and not _is_inside_a_word(each.text, *match.span())
        ][:_MOST]

    def _dates(self, label: str, is_list: bool) -> list[Any]:
        """Days that were named; of a single field only where the field is named, too."""
        is_label = (lambda _: True) if is_list or _is_any_date(label) else self._mentions(label)
        found: list[Any] = []
        for sentence in self._said:
            days = days_meant(sentence.text, moment_in(self._zone, sentence.at).date())
            if days is not None and is_label(sentence.text):
                found.append(days.render().partition("..")[0])
        return found[:_MOST]

    def _numbers(self, kind: str, label: str, is_list: bool) -> list[Any]:
        """Numbers behind the name of their field in one sentence, or right before it: "budget of
        1,200", "12 tests".
        """
        words = _alternatives(label)
        found: list[Any] = []
        for sentence in self._said:
            for named in re.finditer(rf"\b(?:{words})\b", sentence.text, re.IGNORECASE):
                behind = list(_NUMBER.finditer(sentence.text, named.end()))
                before = [
                    match
                    for match in _NUMBER.finditer(sentence.text, 0, named.start())
                    if not sentence.text[match.end() : named.start()].strip()
                ]
                chosen = before[-1:] or (behind if is_list else behind[:1])
                found += [_as_number(match) for match in chosen]
        whole = [int(value) for value in found if value == int(value)]
        return (whole if kind == "integer" else found)[:_MOST]

    def _truths(self, label: str) -> list[Any]:
        return [
            match[0].lower() in _TRUE
            for text in self._labelled(label)
            for match in _TRUTHS.finditer(text[:20])
        ]

    def _labelled(self, label: str) -> list[Any]:
        """What is said to be the field: "city: Lyon", "the owner is Ana"."""
        said = re.compile(
            rf"\b(?:{_phrase(label)})s?\s{{0,3}}(?::|=|\bis\b"
            rf"|\bare\b)\s{{0,3}}(\S.{{0,{_LONGEST_VALUE}}})",
            re.IGNORECASE,
        )
        found = (match[1] for each in self._said for match in said.finditer(each.text))
        return [value for text in found if (value := text.strip(" .;!\"'`"))][:_MOST]

    def _mentions(self, label: str) -> Callable[[str], bool]:
        pattern = re.compile(rf"\b(?:{_alternatives(label)})\b", re.IGNORECASE)
        return lambda text: pattern.search(text) is not None


def _is_inside_a_word(text: str, start: int, end: int) -> bool:
    before, behind = text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1]
    return (len(before) == 2 and before.isalnum()) or (len(behind) == 2 and behind.isalnum())


def _phrase(label: str) -> str:
    return r"[\s_-]{0,2}".join(
        re.escape(word.lower()) for word in _WORDS.findall(label)
    ) or re.escape(label)


def _alternatives(label: str) -> str:
    """Any of the words by which a field is known, in the singular or plural."""
    words = [word for word in labels_of(label) if word not in _DATE_WORDS] or labels_of(label)
    return "|".join(rf"{re.escape(word)}(?:s|es)?" for word in words) or re.escape(label)


def _is_any_date(label: str) -> bool:
    return all(word in _DATE_WORDS for word in labels_of(label))


def _is_everyday(value: str) -> bool:
    return value.lower() in _EVERYDAY or len(value) < 3 or value.isdigit()


def _as_number(match: re.Match[str]) -> float | int:
    text = match[2].replace(",", "")
    value = float(text) if "." in text else int(text)
    return -value if match[1] == "-" else value
