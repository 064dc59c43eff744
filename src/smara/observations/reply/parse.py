"""Parse a model's reply into a draft of notes and values.

Reading is lenient where that needs no guess. Field and extractor values are read as
JSON and checked against their schema; a value that fails is left out with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

from smara.core.dates import find_days
from smara.core.escape import neutralize
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.core.validate import no_constant
from smara.errors import BadReplyError, InvalidInputError
from smara.observations.models import AgentMode, Extractor, Note, ObservationDraft
from smara.observations.render import local
from smara.observations.reply.dates import Timeline, When
from smara.observations.reply.lines import ReplyLine, category_of, cleaned, read_line
from smara.observations.reply.mentions import files_in, fold, lines_in
from smara.observations.reply.sections import (
    CUES,
    CURRENT_TASK,
    FIELDS,
    OBSERVATIONS,
    SUGGESTED_RESPONSE,
    THREAD_TITLE,
    Sections,
    split_reply,
    unescaped,
)
from smara.working.schema import check_value, read_schema

Kind = Literal["text", "texts", "object", "objects"]

MODE_FIELDS: dict[AgentMode, dict[str, Kind]] = {
    "default": {},
    "explore": {"searchQueries": "texts", "notFound": "texts"},
    "bug_fixing": {"errorType": "text", "stackTrace": "text", "rootCause": "text"},
    "refactoring": {"filesAffected": "texts", "breaking": "texts"},
    "testing": {"testResults": "objects", "coverage": "object"},
    "debugging": {"symptoms": "texts", "variables": "object"},
    "research": {"sources": "texts"},
}

_SHAPES: dict[str, str] = {
    "testResults": 'testResults (list of {"name", "status": "passed"|"failed"|"skipped", '
    '"message"})',
    "coverage": 'coverage ({"percent", "uncovered": [paths]})',
    "variables": "variables (object of name: value as seen)",
}
_MOST_CHARACTERS = 4_000
_MOST_ITEMS = 100


def describe_fields(mode: AgentMode) -> str:
    """Describe the fields of a mode for a prompt; empty without any."""
    return ", ".join(
        _SHAPES.get(name) or f"{name} ({_WORDS[kind]})" for name, kind in MODE_FIELDS[mode].items()
    )


_WORDS: dict[Kind, str] = {
    "text": "text",
    "texts": "list of texts",
    "object": "object",
    "objects": "list of objects",
}


def as_field(value: Any, kind: Kind) -> Any:
    """Return a value in the shape of a field, or None.

    >>> as_field("timeout", "texts"), as_field(["a", "b"], "text"), as_field(7, "object")
    (['timeout'], 'a; b', None)
    """
    if kind == "text":
        listed = as_field(value, "texts")
        return "; ".join(listed) if listed else None
    if kind == "texts":
        items = value if isinstance(value, list) else [value]
        texts = [
            str(item).strip() for item in items[:_MOST_ITEMS] if isinstance(item, str | int | float)
        ]
        return [text[:_MOST_CHARACTERS] for text in texts if text] or None
    if kind == "object":
        return dict(value) if isinstance(value, Mapping) and value else None
    items = value if isinstance(value, list) else [value]
    objects = [
        item if isinstance(item, Mapping) else {"name": item}
        for item in items[:_MOST_ITEMS]
        if isinstance(item, Mapping) or (isinstance(item, str) and item.strip())
    ]
    return objects or None


MOST_CHARACTERS = 100_000
MOST_DEPTH = 32
_NAME = regex(r"[a-z][a-z0-9-]{0,39}")
_TAKEN = frozenset({"fields"})


def check_extractor(extractor: Extractor) -> None:
    """Refuse an extractor that no reply could satisfy."""
    if not _NAME.fullmatch(extractor.name) or extractor.name in _TAKEN:
        raise InvalidInputError(
            f"An extractor's name is of small letters, digits and dashes, not {extractor.name!r}. "
            "Rename it."
        )
    if not extractor.instruction.strip():
        raise InvalidInputError(
            f"The extractor {extractor.name} needs an instruction. Say what is to be taken out."
        )
    read_schema(extractor.schema)


def read_json(text: str) -> Any:
    """Parse the JSON value in a text or code block.

    Raises:
        ValueError: The text holds no JSON value.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters")
    bare = CUES["fence line"].sub("", text).strip()
    begin = min((at for at in (bare.find("{"), bare.find("[")) if at >= 0), default=-1)
    end = max(bare.rfind("}"), bare.rfind("]"))
    inner = bare[begin : end + 1] if 0 <= begin < end else ""
    # The last attempt may change a text that holds ",}", so it comes last.
    for attempt in [bare, unescaped(bare), inner, CUES["last comma"].sub("", inner)]:
        try:
            return neutral(json.loads(attempt, parse_constant=no_constant))
        except (ValueError, RecursionError):
            continue
    raise ValueError("it is not JSON")


def neutral(value: Any, depth: int = 0) -> Any:
    """Return a value whose texts cannot open or close our blocks.

    Raises:
        ValueError: It is nested too deeply.
    """
    if depth > MOST_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, str):
        return neutralize(value)
    if isinstance(value, list):
        return [neutral(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {neutralize(name): neutral(item, depth + 1) for name, item in value.items()}
    return value


MOST_NOTES = 1_000
_MOST_DETAILS = 60
_MOST_TASK_CHARACTERS = 2_000
_MOST_TITLE_CHARACTERS = 100
_NOTHING_SAID = frozenset({"", "none", "none.", "n/a", "null", "nothing", "(none)", "-"})


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """The times, mode and requests a reply is read against."""

    timeline: Timeline
    mode: AgentMode = "default"
    extractors: Sequence[Extractor] = ()
    known: str = ""
    wants_suggested_response: bool = False
    wants_title: bool = False


def parse_reply(text: str, reading: ReplyContext) -> ObservationDraft:
    """Parse a reply into a draft.

    Raises:
        BadReplyError: The reply holds no note.
    """
    sections = split_reply(text, [extractor.name for extractor in reading.extractors])
    warnings: list[str] = []
    found = _notes(sections, reading, warnings)
    if not found:
        is_empty = OBSERVATIONS in sections.lines and not sections.text(OBSERVATIONS)
        if not text.strip() or is_empty:
            raise BadReplyError(
                "The model noted nothing. The messages stay as they are and are observed again "
                "later.",
                reason="empty",
                hint="it held no observation.",
            )
        raise BadReplyError(
            "The model's reply holds no observation that can be read. The messages stay as they "
            "are, to be observed later.",
            reason="unparsable",
            hint="no line in it had the form of an observation inside <observations>.",
        )
    # Each note once, and none that is there already with the same time and the same words.
    earlier = (CUES["known line"].match(line.strip()) for line in reading.known.splitlines())
    seen = {(match[1], fold(match[2])) for match in earlier if match}
    notes: list[Note] = []
    for note in found:
        time = f"({local(note.said_at, reading.timeline.timezone):%H:%M})"
        if (key := (time, fold(note.text))) not in seen:
            seen.add(key)
            notes.append(note)
    if not notes:
        raise BadReplyError(
            "The model only repeated what was known. The messages stay as they are and are "
            "observed again later.",
            reason="empty",
            hint="it only repeated the known observations.",
        )
    notes = _with_fields(notes, sections.text(FIELDS), reading, warnings=warnings)
    extracted: dict[str, Any] = {}
    for extractor in reading.extractors:
        text = sections.text(f"observed-{extractor.name}") or ""
        if text.lower() in ("", "none", "null", "n/a", "-", "{}", "[]"):
            continue
        try:
            value = read_json(text)
            check_value(value, extractor.schema)
            extracted[extractor.name] = value
        except InvalidInputError as error:
            warnings.append(f"extractor {extractor.name}: {error.message}")
        except ValueError as error:
            warnings.append(f"extractor {extractor.name}: {error}")
    # Of a title the first line, without quotes and marks around it.
    title = _block(sections.text(THREAD_TITLE)) if reading.wants_title else None
    if title is not None:
        title = title.splitlines()[0].strip(" #*_\"'“”`").removeprefix("Title:").strip()
        title = title[:_MOST_TITLE_CHARACTERS].strip().rstrip(".") or None
    return ObservationDraft(
        tuple(notes),
        _block(sections.text(CURRENT_TASK)),
        _block(sections.text(SUGGESTED_RESPONSE)) if reading.wants_suggested_response else None,
        thread_title=title,
        extracted=extracted,
        warnings=tuple(warnings),
    )


@dataclass(slots=True)
class _NoteLines:
    """A note that is being read: further lines may still belong to it."""

    line: ReplyLine
    day: date | None
    more: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def _notes(sections: Sections, reading: ReplyContext, warnings: list[str]) -> list[Note]:
    # Without the tag only lines that cannot be anything else are taken.
    is_inside = OBSERVATIONS in sections.lines
    lines = sections.lines[OBSERVATIONS] if is_inside else sections.outside
    found = _read_notes(lines, reading, is_inside)
    if len(found) > MOST_NOTES:
        warnings.append(f"{len(found) - MOST_NOTES} of {len(found)} lines were left out")
    notes: list[Note] = []
    previous: int | None = None
    for each in found[:MOST_NOTES]:
        line = each.line
        moment = reading.timeline.locate(line.when, each.day, previous)
        previous = moment.at
        refers_to, unresolved = line.refers_to, []
        if line.meaning and refers_to is None:
            # Words such as "next week", seen from the day on which they were said.
            days = find_days(line.meaning, local(moment.at, reading.timeline.timezone).date())
            refers_to = days.render() if days else None
            unresolved = [] if days else [f"(meaning {line.meaning})"]
        text = " ".join([line.text, *unresolved, *each.more])
        details = tuple(filter(None, each.details))[:_MOST_DETAILS]
        whole = "\n".join([text, *details])
        notes.append(
            Note(
                line.priority or ("high" if line.is_done else "medium"),
                "completion" if line.is_done else category_of(text),
                text,
                said_at=moment.at,
                refers_to=refers_to,
                details=details,
                files=files_in(whole),
                lines=lines_in(whole),
                first_seq=moment.first_seq,
                last_seq=moment.last_seq,
            )
        )
    return notes


def _read_notes(lines: Sequence[str], reading: ReplyContext, is_inside: bool) -> list[_NoteLines]:
    found: list[_NoteLines] = []
    day: date | None = None
    days = frozenset(reading.timeline.days)
    is_after_gap = False
    for written in lines:
        line = read_line(written, days)
        if line.kind == "heading":
            day = line.day
        elif line.kind == "note" and (is_inside or line.is_certain):
            found.append(_NoteLines(line, day))
        elif found and line.kind == "detail":
            found[-1].details.append(line.text)
        elif found and line.kind in ("more", "note") and is_inside and not is_after_gap:
            (found[-1].details if found[-1].details else found[-1].more).append(line.text)
        elif (
            not found
            and is_inside
            and line.kind in ("more", "detail")
            and not line.text.endswith(":")
        ):
            found.append(_NoteLines(line, day))
        is_after_gap = line.kind == "nothing"
    # A line that only says what the lines below it are about is no note.
    return [
        each
        for each in found
        if each.line.is_certain or each.more or each.details or not each.line.text.endswith(":")
    ]


# fields of a mode


def _with_fields(
    notes: list[Note], text: str | None, reading: ReplyContext, warnings: list[str]
) -> list[Note]:
    """The notes with the fields of their mode; what cannot be read is left out."""
    if not text or not MODE_FIELDS[reading.mode]:
        return notes
    try:
        value = read_json(text)
    except ValueError as error:
        warnings.append(f"fields of the mode: {error}")
        return notes
    for written, values in _by_time(value):
        fields: dict[str, Any] = {}
        for name, kind in MODE_FIELDS[reading.mode].items():
            given = [each for title, each in values.items() if fold(title) == fold(name)]
            shaped = as_field(given[-1], kind) if given else None
            if shaped is not None:
                fields[name] = shaped
            elif given:
                warnings.append(f"field {name}: it does not have the shape it should")
        if fields:
            at = _best(
                notes,
                When() if written is None else read_line(f"* ({written}) x").when,
                fields,
                reading=reading,
            )
            notes[at] = replace(notes[at], mode_specific={**notes[at].mode_specific, **fields})
    return notes


def _by_time(value: Any) -> list[tuple[str | None, Mapping[str, Any]]]:
    """Objects of fields with the time they stand for; a model may also give them without times, or
    as a list.
    """
    if isinstance(value, list):
        return [pair for item in value for pair in _by_time(item)]
    if not isinstance(value, Mapping):
        return []
    found: list[tuple[str | None, Mapping[str, Any]]] = []
    untimed: dict[str, Any] = {}
    for name, fields in value.items():
        if re.match(r"\d{1,2}:\d{2}", name):
            listed = fields if isinstance(fields, list) else [fields]
            found += [(name, each) for each in listed if isinstance(each, Mapping)]
        else:
            untimed[name] = fields
    return [*found, *([(None, untimed)] if untimed else [])]


def _best(
    notes: Sequence[Note], when: When, fields: Mapping[str, Any], reading: ReplyContext
) -> int:
    """The note that fields belong to: of their time, and with the most of their words."""
    words = set(re.findall(r"\w{4,}", repr(fields).lower()))

    def fit(at: int) -> tuple[bool, int, int]:
        note = notes[at]
        minute = local(note.said_at, reading.timeline.timezone)
        is_then = when.start is not None and minute.hour * 60 + minute.minute == when.start
        whole = set(re.findall(r"\w{4,}", " ".join([note.text, *note.details]).lower()))
        return is_then, len(words & whole), -at

    return max(range(len(notes)), key=fit)


# the other sections


def _block(text: str | None) -> str | None:
    """A short text of several lines, without bold marks and tags; ``None`` when it says nothing."""
    if text is None or text.strip().lower() in _NOTHING_SAID:
        return None
    lines = [cleaned(line.strip()) for line in text[: 4 * _MOST_TASK_CHARACTERS].splitlines()]
    return neutralize("\n".join(line for line in lines if line))[:_MOST_TASK_CHARACTERS] or None
