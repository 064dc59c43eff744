"""Extract schema-typed values from messages without a model.

A value is searched in sentences by the labels, types and formats of its schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from smara.core.dates import find_days, local_time, zone_of
from smara.core.escape import neutralize
from smara.core.extract import word_set
from smara.errors import InvalidInputError
from smara.messages.models import Message
from smara.observations.models import Extractor, Note
from smara.observations.offline.exchanges import is_program_text, without_blocks
from smara.observations.offline.notes import excerpt, sentences
from smara.observations.offline.phrases import FRAME
from smara.observations.reply.parse import check_extractor
from smara.working.schema import check_value, compile_pattern

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


class ValueFinder:
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
        found = compile_pattern(bare)
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
            days = find_days(sentence.text, local_time(self._zone, sentence.at).date())
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


MOST_VALUES = 100
_MOST_STEPS = 8
_LISTED = {
    "decision": "decision", "preference": "preference", "requirement": "preference",
    "request": "request",
    "question": "question", "error": "error", "fix": "fix", "command": "command",
    "change": "change",
    "blocker": "blocker", "problem": "blocker", "completion": "completion", "finding": "finding",
    "test": "test",
    "answer": "answer", "statement": "statement", "file": "file", "path": "file",
}  # fmt: skip
"""What a list may be called, and the notes that it is made of."""
_LABELS = tuple(phrase for phrase in FRAME if phrase.endswith(":"))


class _Nothing:
    """No value: nothing of it was said, or nothing in the schema tells how to look for it."""


_NOTHING = _Nothing()


def extract_offline(
    messages: Sequence[Message],
    notes: Sequence[Note],
    extractors: Iterable[Extractor],
    timezone: str,
) -> tuple[dict[str, Any], list[str]]:
    """What the extractors find, each by itself, and what is to be said about those that cannot."""
    wanted = list(extractors)
    if not wanted:
        return {}, []
    finder = ValueFinder(list(_said(messages)), zone_of(timezone))
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for extractor in wanted:
        try:
            check_extractor(extractor)
            value, missing = _Extraction(finder, notes, extractor).value()
        except InvalidInputError as error:
            warnings.append(f"extractor {extractor.name}: {error.message}")
            continue
        if missing:
            fields = ", ".join(missing)
            warnings.append(
                f"extractor {extractor.name}: {fields} cannot be found without a model; it was "
                "left out."
            )
        if not isinstance(value, _Nothing):
            found[extractor.name] = value
    return found, warnings


def _said(messages: Sequence[Message]) -> Iterator[Sentence]:
    """The sentences of people and agents; what tools printed is nobody's word."""
    for message in messages:
        if message.role not in ("user", "assistant") or is_program_text(message):
            continue
        for part in message.parts:
            if part.type == "text":
                for words in sentences(excerpt(without_blocks(part.text))):
                    # Half a character, which no pattern can be matched with, becomes a question
                    # mark.
                    yield Sentence(words.encode("utf-8", "replace").decode(), message.created_at)


class _Extraction:
    """One extractor at work."""

    def __init__(self, finder: ValueFinder, notes: Sequence[Note], extractor: Extractor) -> None:
        self._finder = finder
        self._notes = notes
        self._extractor = extractor

    def value(self) -> tuple[Any, tuple[str, ...]]:
        """The value, fit for its schema, and the fields that only a model could find."""
        name, schema = self._extractor.name, self._extractor.schema
        found, missing = self._find(schema, name, 0)
        if isinstance(found, _Nothing):
            return found, missing
        safe = _safe(found)
        try:
            check_value(safe, schema)
        except InvalidInputError:
            # What was said does not fill the schema: that is nothing, not half a value.
            return _NOTHING, missing
        return safe, missing

    def _find(self, schema: Any, label: str, depth: int) -> tuple[Any, tuple[str, ...]]:
        schema = self._resolved(schema, depth)
        if schema is None or depth > _MOST_STEPS:
            return _NOTHING, (label,)
        kind = _kind(schema)
        if kind == "object":
            return self._object(schema, label, depth)
        if kind == "array":
            return self._array(schema, label, depth)
        candidates = self._finder.candidates(schema, kind, label)
        if candidates is None:
            return _NOTHING, (label,)
        return (candidates[-1] if candidates else _NOTHING), ()  # the newest is what holds

    def _object(
        self, schema: Mapping[str, Any], label: str, depth: int
    ) -> tuple[Any, tuple[str, ...]]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return _NOTHING, (label,)
        found: dict[str, Any] = {}
        missing: list[str] = []
        for name, part in properties.items():
            value, needs = self._find(part, str(name), depth + 1)
            missing += needs
            if not isinstance(value, _Nothing):
                found[name] = value
        return (found or _NOTHING), tuple(missing)

    def _array(
        self, schema: Mapping[str, Any], label: str, depth: int
    ) -> tuple[Any, tuple[str, ...]]:
        items = self._resolved(schema.get("items", {}), depth)
        if items is None:
            return _NOTHING, (label,)
        kind = _kind(items)
        candidates = self._finder.candidates(items, kind, label, is_list=True)
        if candidates is None and kind == "string":
            candidates = self._listed(label)
        if candidates is None:
            return _NOTHING, (label,)
        return (list(dict.fromkeys(candidates))[:MOST_VALUES] or _NOTHING), ()

    def _listed(self, label: str) -> list[Any] | None:
        """The words of the notes of the kind that a list is called after; ``None`` when it is
        called otherwise.
        """
        category = next(
            (_LISTED[word] for word in reversed(labels_of(label)) if word in _LISTED), None
        )
        if category is None:
            return None
        if category == "file":
            return [file for note in self._notes for file in note.files]
        return [_bare(note.text) for note in self._notes if note.category == category]

    def _resolved(self, schema: Any, depth: int) -> Mapping[str, Any] | None:
        """A schema with its reference followed, and of alternatives the first that is not
        ``null``.
        """
        for _ in range(_MOST_STEPS):
            if not isinstance(schema, Mapping):
                return None
            if isinstance(schema.get("$ref"), str):
                schema = _referred(self._extractor.schema, schema["$ref"])
            elif isinstance(options := schema.get("anyOf") or schema.get("oneOf"), list):
                schema = next(
                    (
                        each
                        for each in options
                        if isinstance(each, Mapping) and _kind(each) != "null"
                    ),
                    None,
                )
            else:
                return schema
        return None


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((each for each in kinds if each != "null"), "null")
    if isinstance(kinds, str):
        return kinds
    return "object" if "properties" in schema else "array" if "items" in schema else "any"


def _referred(schema: Mapping[str, Any], reference: str) -> Any:
    """What a reference within a schema leads to."""
    found: Any = schema
    for step in (
        reference.removeprefix("#").strip("/").split("/") if reference not in ("#", "#/") else ()
    ):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _bare(text: str) -> str:
    return next((text[len(label) :].strip() for label in _LABELS if text.startswith(label)), text)


def _safe(value: Any) -> Any:
    """The value with its texts unable to open or close a block of ours."""
    if isinstance(value, str):
        return neutralize(value)
    if isinstance(value, list):
        return [_safe(item) for item in value]
    return {name: _safe(item) for name, item in value.items()} if isinstance(value, dict) else value
