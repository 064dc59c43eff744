"""A note told in fewer words: what holds something particular stays, the rest of it goes."""

from __future__ import annotations

from dataclasses import replace

from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.drafting import joined
from smara.observations.offline.merging import short_run
from smara.observations.offline.particulars import is_particular, told_by_names, told_in

_TALK_CHARACTERS = 80
_TAKEN_OVER_CHARACTERS = 160


def tells(note: Note) -> bool:
    """Whether a note holds anything particular."""
    return is_particular(note.text) or any(map(is_particular, note.details))


def is_talk(note: Note) -> bool:
    """Whether a note is short words of the agent that could be said of anything: "All good." """
    return (
        note.category in ("answer", "note")
        and len(note.text) <= _TALK_CHARACTERS
        and not tells(note)
    )


def with_details(note: Note, most: int) -> Note:
    """A note with at most so many details, those that hold something particular; a text that only
    introduces them takes them over.
    """
    if len(note.details) <= most:
        return note
    telling = [detail for detail in note.details if is_particular(detail)] or note.details
    if most == 0 and note.text.endswith(":"):
        return replace(
            note, text=f"{note.text} {joined(telling, _TAKEN_OVER_CHARACTERS)}", details=()
        )
    return replace(note, details=tuple(telling[:most]))


def with_bare_details(note: Note, most: int) -> Note:
    """A note with at most so many details that hold nothing particular."""
    bare = [detail for detail in note.details if not is_particular(detail)][most:]
    if not bare:
        return note
    if len(bare) == len(note.details) and note.text.endswith(":"):
        return with_details(note, 0)
    return replace(note, details=tuple(detail for detail in note.details if detail not in bare))


def with_details_in(note: Note, most: int) -> Note:
    """A note whose details are at most so long each."""
    return _changed(note, note.text, tuple(told_in(detail, most) for detail in note.details))


def in_characters(note: Note, most: int) -> Note:
    """A note whose text is at most so long; of something that was mended, how it ended stays."""
    if len(note.text) <= most:
        return note
    return replace(note, text=told_in(note.text, most, has_outcome=note.category == "fix"))


def by_first_words(note: Note) -> Note:
    """A note on commands with the first words of each and of its outcome."""
    if note.category not in ("command", "test") or note.text.startswith(phrases.WORKED_ON):
        return note
    text = "; ".join(map(short_run, note.text.split("; ")))
    return _changed(note, text, tuple(map(short_run, note.details)))


def by_names(note: Note) -> Note:
    """A note on code with the names that were written instead of the lines."""
    if note.category != "code":
        return note
    head, mark, body = note.text.partition(": ")
    text = note.text
    if mark and not head.startswith(phrases.WORKED_ON):
        text = f"{head}{mark}{told}" if (told := told_by_names(body)) else head
    return _changed(
        note, text, tuple(told for detail in note.details if (told := told_by_names(detail)))
    )


def _changed(note: Note, text: str, details: tuple[str, ...]) -> Note:
    return (
        note
        if (text, details) == (note.text, note.details)
        else replace(note, text=text, details=details)
    )
