"""Values of the user's own, taken out without a model where the schema says what they look like.

A pattern, a list of allowed values and a format can be looked for in the words themselves; a
number, a date or a text where its field is named beside it ("budget: 1,200"); a list of
texts that is called after a kind of note (decisions, errors, files) is made of those notes.
What gives no such hold is left out, and a warning says so: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from smara.core.days import zone_of
from smara.core.delimiters import neutralized
from smara.errors import InvalidInputError
from smara.messages.models import Message
from smara.observations.models import Extractor, Note
from smara.observations.offline.finding import Finder, Sentence, labels_of
from smara.observations.offline.noise import is_program_text, without_blocks
from smara.observations.offline.phrases import FRAME
from smara.observations.offline.wording import excerpt, sentences
from smara.observations.reply.values import check_extractor
from smara.working.schema import check_value

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
    finder = Finder(list(_said(messages)), zone_of(timezone))
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

    def __init__(self, finder: Finder, notes: Sequence[Note], extractor: Extractor) -> None:
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
        return neutralized(value)
    if isinstance(value, list):
        return [_safe(item) for item in value]
    return {name: _safe(item) for name, item in value.items()} if isinstance(value, dict) else value
