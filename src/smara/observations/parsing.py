"""A model's reply as a draft: notes, the current task, and whatever else was asked for.

Whether the reply may be used at all is decided in ``validity``; here it is only read. A
part that cannot be read is left out with a warning, and the rest stands; a reply without
a single note is no reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from smara.core.days import days_meant
from smara.core.delimiters import neutralized
from smara.errors import BadReplyError
from smara.observations.fields import MODE_FIELDS, as_field, field_name
from smara.observations.models import AgentMode, Draft, Extractor, Note, Priority
from smara.observations.render import local
from smara.observations.reply.dates import When
from smara.observations.reply.lines import Line, cleaned, read_line
from smara.observations.reply.mentions import files_in, fold, lines_in
from smara.observations.reply.sections import (
    CURRENT_TASK,
    FIELDS,
    OBSERVATIONS,
    SUGGESTED_RESPONSE,
    THREAD_TITLE,
    Sections,
    split_reply,
)
from smara.observations.reply.timeline import Moment, Timeline
from smara.observations.reply.values import extract, read_json
from smara.observations.reply.wording import category_of

MOST_NOTES = 1_000
_MOST_DETAILS = 60
_MOST_TASK_CHARACTERS = 2_000
_MOST_TITLE_CHARACTERS = 100
_NOTHING_SAID = frozenset({"", "none", "none.", "n/a", "null", "nothing", "(none)", "-"})
_KNOWN_LINE = re.compile(r"^[*•-]\s+(?:\S{1,2}\s+)?(\(\d{2}:\d{2}\))\s+(.*)$")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply is read against: when things happened, and what was asked for."""

    timeline: Timeline
    mode: AgentMode = "default"
    extractors: Sequence[Extractor] = ()
    known: str = ""
    wants_suggested_response: bool = False
    wants_title: bool = False


def parse_reply(text: str, reading: Reading) -> Draft:
    """The draft that a reply is; ``BadReplyError`` when it has no note in it."""
    sections = split_reply(text, [extractor.name for extractor in reading.extractors])
    warnings: list[str] = []
    found = _notes(sections, reading, warnings)
    if not found:
        raise _nothing_in(text, sections)
    notes = _without_repetition(found, reading)
    if not notes:
        raise BadReplyError(
            "The model only repeated what was known. The messages stay as they are and are "
            "observed again later.",
            reason="empty",
            hint="it only repeated the known observations.",
        )
    notes = _with_fields(notes, sections.text(FIELDS), reading, warnings=warnings)
    texts = {
        extractor.name: sections.text(f"observed-{extractor.name}")
        for extractor in reading.extractors
    }
    extracted, failures = extract(texts, reading.extractors)
    return Draft(
        tuple(notes),
        _said(sections.text(CURRENT_TASK)),
        _said(sections.text(SUGGESTED_RESPONSE)) if reading.wants_suggested_response else None,
        thread_title=_title(sections.text(THREAD_TITLE)) if reading.wants_title else None,
        extracted=extracted,
        warnings=tuple(warnings + failures),
    )


def _nothing_in(text: str, sections: Sections) -> BadReplyError:
    if not text.strip() or (OBSERVATIONS in sections.lines and not sections.text(OBSERVATIONS)):
        return BadReplyError(
            "The model noted nothing. The messages stay as they are and are observed again later.",
            reason="empty",
            hint="it held no observation.",
        )
    return BadReplyError(
        "The model's reply holds no observation that can be read. The messages stay as they are, "
        "to be observed later.",
        reason="unparsable",
        hint="no line in it had the form of an observation inside <observations>.",
    )


@dataclass(slots=True)
class _Open:
    """A note that is being read: further lines may still belong to it."""

    line: Line
    day: date | None
    more: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    @property
    def is_topic(self) -> bool:
        """It only says what the lines below it are about."""
        return self.line.text.endswith(":") and not (
            self.line.is_certain or self.more or self.details
        )


def _notes(sections: Sections, reading: Reading, warnings: list[str]) -> list[Note]:
    if OBSERVATIONS in sections.lines:
        found = _read_notes(sections.lines[OBSERVATIONS], reading, is_inside=True)
    else:
        # Without the tag only lines that cannot be anything else are taken.
        found = _read_notes(sections.outside, reading, is_inside=False)
    if len(found) > MOST_NOTES:
        warnings.append(f"{len(found) - MOST_NOTES} of {len(found)} lines were left out")
    timezone = reading.timeline.timezone
    return [_note(each, moment, timezone) for each, moment in _located(found[:MOST_NOTES], reading)]


def _read_notes(lines: Sequence[str], reading: Reading, is_inside: bool) -> list[_Open]:
    found: list[_Open] = []
    day: date | None = None
    days = frozenset(reading.timeline.days)
    is_after_gap = False
    for written in lines:
        line = read_line(written, days)
        if line.kind == "heading":
            day = line.day
        elif line.kind == "note" and (is_inside or line.is_certain):
            found.append(_Open(line, day))
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
            found.append(_Open(line, day))
        is_after_gap = line.kind == "nothing"
    return [each for each in found if not each.is_topic]


def _located(found: Sequence[_Open], reading: Reading) -> list[tuple[_Open, Moment]]:
    previous: int | None = None
    placed: list[tuple[_Open, Moment]] = []
    for each in found:
        moment = reading.timeline.locate(each.line.when, each.day, previous)
        previous = moment.at
        placed.append((each, moment))
    return placed


def _note(found: _Open, moment: Moment, timezone: str) -> Note:
    line = found.line
    refers_to = line.refers_to or _meant(line.meaning, moment, timezone)
    unresolved = [f"(meaning {line.meaning})"] if line.meaning and refers_to is None else []
    text = " ".join([line.text, *unresolved, *found.more])
    details = tuple(detail for detail in found.details if detail)[:_MOST_DETAILS]
    whole = "\n".join([text, *details])
    return Note(
        line.priority or _unmarked(line),
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


def _meant(words: str | None, moment: Moment, timezone: str) -> str | None:
    """The days that words such as "next week" mean, seen from the day on which they were said."""
    days = days_meant(words, local(moment.at, timezone).date()) if words else None
    return days.render() if days else None


def _unmarked(line: Line) -> Priority:
    return "high" if line.is_done else "medium"


def _without_repetition(notes: Sequence[Note], reading: Reading) -> list[Note]:
    """Each note once, and none that is known already with the same time and the same words."""
    timezone = reading.timeline.timezone
    known = (_KNOWN_LINE.match(line.strip()) for line in reading.known.splitlines())
    seen = {(match[1], fold(match[2])) for match in known if match}
    kept: list[Note] = []
    for note in notes:
        key = (f"({local(note.said_at, timezone):%H:%M})", fold(note.text))
        if key not in seen:
            seen.add(key)
            kept.append(note)
    return kept


# fields of a mode


def _with_fields(
    notes: list[Note], text: str | None, reading: Reading, warnings: list[str]
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
        fields = _fields(values, reading.mode, warnings)
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


def _fields(values: Mapping[str, Any], mode: AgentMode, warnings: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, value in values.items():
        name = field_name(written, mode)
        if name is None:
            continue
        checked = as_field(value, MODE_FIELDS[mode][name])
        if checked is None:
            warnings.append(f"field {name}: it does not have the shape it should")
        else:
            found[name] = checked
    return found


def _best(notes: Sequence[Note], when: When, fields: Mapping[str, Any], reading: Reading) -> int:
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


def _said(text: str | None) -> str | None:
    """A short text of several lines, without bold marks and tags; ``None`` when it says nothing."""
    if text is None or text.strip().lower() in _NOTHING_SAID:
        return None
    lines = [cleaned(line.strip()) for line in text[: 4 * _MOST_TASK_CHARACTERS].splitlines()]
    joined = "\n".join(line for line in lines if line)
    return neutralized(joined)[:_MOST_TASK_CHARACTERS] or None


def _title(text: str | None) -> str | None:
    """The first line of a title, without quotes and marks around it."""
    said = _said(text)
    if said is None:
        return None
    title = said.splitlines()[0].strip(" #*_\"'“”`").removeprefix("Title:").strip()
    return title[:_MOST_TITLE_CHARACTERS].strip().rstrip(".") or None
