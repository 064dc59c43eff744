"""Extract schema-typed values from messages without a model.

A value is searched in sentences by the labels, types and formats of its schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from typing import Any

from smara.core.dates import find_days, local_time, zone_of
from smara.core.startup.regex import re
from smara.errors import InvalidInputError
from smara.messages.models import Message
from smara.observations.models import Extractor, Note
from smara.observations.offline.exchanges import is_program_text, without_blocks
from smara.observations.offline.notes import CUES, WORDS, excerpt, sentences
from smara.observations.reply.parse import check_extractor, neutral
from smara.working.schema import check_value, compile_pattern

_MOST = 400
_LONGEST_VALUE = 200

MOST_VALUES = 100
_MOST_STEPS = 8
# What a list may be called, and the notes that it is made of.
_LISTED = {name: name for name in WORDS["listed notes"]} | {
    "requirement": "preference",
    "problem": "blocker",
    "path": "file",
}
# No value: the messages hold none, or the schema does not tell how to look for it.
_NOTHING = object()


def labels_of(name: str) -> list[str]:
    """Return a field's words: "due" and "date" for ``dueDates``.

    >>> labels_of("dueDates"), labels_of("list_of_decisions")
    (['due', 'date'], ['decision'])
    """
    words: list[str] = []
    for word in map(str.lower, CUES["words of name"].findall(name)):
        if len(word) > 4 and word.endswith(("xes", "sses", "ches", "shes")):
            word = word[:-2]
        elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
        words.append(word)
    return [word for word in words if word not in WORDS["says nothing"]] or words


def _field_pattern(label: str) -> re.Pattern[str]:
    """Return a pattern for any word by which a field is known, singular or plural."""
    words = [word for word in labels_of(label) if word not in WORDS["date"]] or labels_of(label)
    any_word = "|".join(rf"{re.escape(word)}(?:s|es)?" for word in words) or re.escape(label)
    return re.compile(rf"\b(?:{any_word})\b", re.IGNORECASE)


def extract_offline(
    messages: Sequence[Message],
    notes: Sequence[Note],
    extractors: Iterable[Extractor],
    timezone: str,
) -> tuple[dict[str, Any], list[str]]:
    """Return what the extractors find, and warnings about what they cannot."""
    # The sentences of people and agents with their times, without the output of tools. Half a
    # character, which no pattern can be matched with, becomes a question mark.
    spoken = [
        (words.encode("utf-8", "replace").decode(), message.created_at)
        for message in messages
        if message.role in ("user", "assistant") and not is_program_text(message)
        for part in message.parts
        if part.type == "text"
        for words in sentences(excerpt(without_blocks(part.text)))
    ]
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for extractor in extractors:
        try:
            check_extractor(extractor)
            extraction = _Extraction(spoken, zone_of(timezone), notes, schema=extractor.schema)
            value, missing = extraction.find(extractor.schema, extractor.name)
        except InvalidInputError as error:
            warnings.append(f"extractor {extractor.name}: {error.message}")
            continue
        if missing:
            fields = ", ".join(missing)
            warnings.append(
                f"extractor {extractor.name}: {fields} cannot be found without a model; it was "
                "left out."
            )
        # What was said may not fill the schema: that is nothing, not half a value.
        safe = neutral(value)
        with suppress(InvalidInputError):
            if value is not _NOTHING:
                check_value(safe, extractor.schema)
                found[extractor.name] = safe
    return found, warnings


class _Extraction:
    """One extractor at work: finds values in sentences, in the order in which they were said."""

    def __init__(
        self,
        spoken: Sequence[tuple[str, int]],
        zone: tzinfo,
        notes: Sequence[Note],
        schema: Mapping[str, Any],
    ) -> None:
        self._spoken = spoken
        self._texts = [text for text, _ in spoken]
        self._zone = zone
        self._notes = notes
        self._schema = schema

    def find(self, schema: Any, label: str, depth: int = 0) -> tuple[Any, tuple[str, ...]]:
        """Return the value for a schema, and unfindable fields."""
        schema = self._resolved(schema)
        kind = _kind(schema) if schema is not None else ""
        if kind == "object" and schema is not None and depth <= _MOST_STEPS:
            parts = schema.get("properties")
            if not isinstance(parts, Mapping) or not parts:
                return _NOTHING, (label,)
            values = {name: self.find(part, str(name), depth + 1) for name, part in parts.items()}
            found = {name: value for name, (value, _) in values.items() if value is not _NOTHING}
            missing = tuple(field for _, fields in values.values() for field in fields)
            return (found or _NOTHING), missing
        is_list = kind == "array"
        if is_list and schema is not None:
            schema = self._resolved(schema.get("items", {}))
        if schema is None or depth > _MOST_STEPS:
            return _NOTHING, (label,)
        candidates = self._candidates(schema, label, is_list)
        words = [word for word in labels_of(label) if word in _LISTED]
        if candidates is None and is_list and _kind(schema) == "string" and words:
            # The words of the notes of the kind that the list is named after.
            category = _LISTED[words[-1]]
            texts = [note.text for note in self._notes if note.category == category]
            candidates = [CUES["label"].sub("", text, count=1).strip() for text in texts]
            if category == "file":
                candidates = [file for note in self._notes for file in note.files]
        if candidates is None:
            return _NOTHING, (label,)
        if is_list:
            return (list(dict.fromkeys(candidates))[:MOST_VALUES] or _NOTHING), ()
        return (candidates[-1] if candidates else _NOTHING), ()  # the newest is what holds

    def _candidates(self, schema: Mapping[str, Any], label: str, is_list: bool) -> list[Any] | None:
        """Return every value in the sentences; None if the schema cannot be searched for."""
        found: list[Any] | None = None
        kind, form, pattern = _kind(schema), schema.get("format"), schema.get("pattern")
        if "const" in schema or isinstance(schema.get("enum"), list):
            found = self._named(schema.get("enum") or [schema["const"]], label)
        elif kind in ("integer", "number"):
            found = self._numbers(kind, label, is_list)
        elif kind == "boolean":
            texts = self._labelled(label)
            words = [match[0] for text in texts for match in CUES["truth"].finditer(text[:20])]
            found = [word.lower() in ("true", "yes", "on", "enabled") for word in words]
        elif kind != "string":
            return None
        elif isinstance(pattern, str):
            bare = pattern.removeprefix("^")
            search = compile_pattern(bare if bare.endswith("\\$") else bare.removesuffix("$"))
            matches = ((text, match) for text in self._texts for match in search.finditer(text))
            # What fits and is no part of a longer word.
            found = [
                match.group(0)
                for text, match in matches
                if match.group(0)
                and not (match.start() and text[match.start() - 1 :][:2].isalnum())
                and not (text[match.end() :] and text[match.end() - 1 :][:2].isalnum())
            ]
        elif form == "date":
            # For a single field only where the field is named, too.
            is_any = is_list or all(word in WORDS["date"] for word in labels_of(label))
            names_field = _field_pattern(label).search
            days = [
                find_days(text, local_time(self._zone, at).date())
                for text, at in self._spoken
                if is_any or names_field(text)
            ]
            found = [each.render().partition("..")[0] for each in days if each is not None]
        elif shape := CUES.get("uri format" if form == "url" else f"{form} format"):
            found = [match[0] for text in self._texts for match in shape.finditer(text)]
        elif form != "date-time" and not is_list:
            found = self._labelled(label)
        return None if found is None else found[:_MOST]

    def _named(self, values: Sequence[Any], label: str) -> list[Any]:
        """Return the allowed values that stand in the sentences as whole words."""
        words = {
            str(value).lower(): value
            for value in values
            if isinstance(value, str | int | float) and str(value).strip()
        }
        if not words:
            return []
        any_word = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        pattern = re.compile(rf"(?<![\w-])(?:{any_word})(?![\w-])", re.IGNORECASE)
        names_field = _field_pattern(label).search
        everyday = WORDS["everyday"] | {word for word in words if len(word) < 3 or word.isdigit()}
        return [
            words[word]
            for text in self._texts
            for match in pattern.finditer(text)
            if (word := match[0].lower()) in words and (word not in everyday or names_field(text))
        ]

    def _numbers(self, kind: str, label: str, is_list: bool) -> list[Any]:
        """Return numbers beside the name of their field: "budget of 1,200", "12 tests"."""
        found: list[Any] = []
        for text in self._texts:
            for field in _field_pattern(label).finditer(text):
                behind = list(CUES["number"].finditer(text, field.end()))
                before = [
                    match
                    for match in CUES["number"].finditer(text, 0, field.start())
                    if not text[match.end() : field.start()].strip()
                ]
                for match in before[-1:] or (behind if is_list else behind[:1]):
                    number = match[1] + match[2].replace(",", "")
                    found.append(float(number) if "." in number else int(number))
        whole = [int(value) for value in found if value == int(value)]
        return whole if kind == "integer" else found

    def _labelled(self, label: str) -> list[Any]:
        """Return what is said to be the field: "city: Lyon", "the owner is Ana"."""
        name = r"[\s_-]{0,2}".join(
            map(re.escape, CUES["words of name"].findall(label))
        ) or re.escape(label)
        pattern = re.compile(
            rf"\b(?:{name})s?\s{{0,3}}(?::|=|\bis\b"
            rf"|\bare\b)\s{{0,3}}(\S.{{0,{_LONGEST_VALUE}}})",
            re.IGNORECASE,
        )
        found = (match[1] for text in self._texts for match in pattern.finditer(text))
        return [value for text in found if (value := text.strip(" .;!\"'`"))]

    def _resolved(self, schema: Any) -> Mapping[str, Any] | None:
        """Follow references; of alternatives take the first that is not ``null``."""
        for _ in range(_MOST_STEPS):
            if not isinstance(schema, Mapping):
                return None
            if isinstance(reference := schema.get("$ref"), str):
                schema = self._schema
                for step in filter(None, reference.removeprefix("#").split("/")):
                    schema = schema.get(step) if isinstance(schema, Mapping) else None
            elif isinstance(options := schema.get("anyOf") or schema.get("oneOf"), list):
                parts = (each for each in options if isinstance(each, Mapping))
                schema = next((each for each in parts if _kind(each) != "null"), None)
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
