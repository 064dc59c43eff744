"""Shorten and merge notes, and keep names, paths and numbers."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from smara.core.dates import local_time
from smara.core.extract import word_set
from smara.observations.models import Note
from smara.observations.offline.notes import by_folder, clip, joined, one_of
from smara.observations.offline.runs import NO_RESULT

_PARTICULAR = one_of(
    r"\d|`|\"\w|“|«",
    r"[^\W_]_\w|[a-z][A-Z]|\w[/\\@#]\w|\w\w\.\w\w",
    r"(?:^|\s)(?:--?[a-z]|[@#$:]\w)",
    r"(?<=[a-z,;] )[A-Z][a-z]",  # a name: a capital inside a sentence
    r"[^\x00-\x7f]{2}",
    flags=0,
)
_DEFINED = re.compile(
    r"(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|unsafe"
    r"|declare|partial|data)\s{1,4}){0,5}"
    r"(?:class|interface|struct|enum|trait|type|module|protocol|record|impl|namespace|defmodule"
    r"|defmacro"
    r"|defp?|fn|func|fun|function|const|let|var|val|table|index|event|field"
    r"|attribute)\s{1,4}[:\"'`]?([A-Za-z_$][\w.$]{1,80})"
)
_NAME = re.compile(r"[@$:]?[A-Za-z_][\w$]*+(?:[./:]{1,2}[\w$]++)*(?=(\()?)")
_JOINED = re.compile(r"[^\W_]_\w|[a-z]\d?[A-Z]|\w[./]\w|^[@$]")
_NO_NAMES = word_set(
    "if for while switch catch return function assert expect raise not and or in do fn def defp "
    "with"
)
_BETWEEN = re.compile(r"(?<=[.!?;…])\s+")
_SHORT = 32
"""A piece of code as short as this is told as it is."""


def is_particular(text: str) -> bool:
    """Return True if a text holds a name, path, number or quotation.

    >>> is_particular("The flags live in src/toggles.py"), is_particular("There is no hurry.")
    (True, False)
    """
    return _PARTICULAR.search(text) is not None


def names_in(code: str) -> list[str]:
    """Return the names that a line of code defines, calls or joins.

    >>> names_in("def merge_spans(spans, gap): return Spans(join(spans))")
    ['merge_spans', 'Spans', 'join']
    """
    defined = _DEFINED.match(code)
    found = {defined[1]: None} if defined else {}
    for match in _NAME.finditer(code):
        name = match[0]
        if (match[1] or _JOINED.search(name)) and name not in _NO_NAMES and len(name) > 2:
            found.setdefault(name)
    return [name for name in found if len(name) > 1]


def told_by_names(line: str) -> str:
    """Shorten a code line to short pieces and names."""
    head, mark, body = line.partition(": ")
    if not mark or " " in head.strip():
        head, mark, body = "", "", line
    pieces = dict.fromkeys(
        piece if len(piece) <= _SHORT and is_particular(piece) else ", ".join(names_in(piece))
        for piece in body.split("; ")
    )
    pieces.pop("", None)
    return f"{head}{mark}{'; '.join(pieces)}" if pieces else ""


def told_in(text: str, characters: int, has_outcome: bool = False) -> str:
    """Return the first words of a text, then the particular sentences.

    With ``has_outcome`` the last piece comes before them.
    """
    if len(text) <= characters:
        return text
    pieces = _BETWEEN.split(text)
    if len(pieces) == 1 or len(pieces[0]) >= characters:
        return clip(text, characters)
    last = len(pieces) - 1 if has_outcome else 0
    order = sorted(
        range(1, len(pieces)), key=lambda at: (at != last, not is_particular(pieces[at]), at)
    )
    room = characters - len(pieces[0])
    chosen = {0}
    for place in order:
        if len(pieces[place]) < room:
            chosen.add(place)
            room -= len(pieces[place]) + 1
    shown = " ".join(pieces[place] for place in sorted(chosen))
    return shown if has_outcome and last in chosen else f"{shown.rstrip(' ,;:…')} …"


_WORK = frozenset({"code", "command", "test"})
_MOST_WRITTEN, _MOST_RUNS = 12, 5
_WRITTEN_CHARACTERS, _COMMAND_CHARACTERS, _OUTCOME_CHARACTERS = 220, 48, 72
_VERBS = tuple(f"{verb} " for verb in ("Created", "Changed"))


def is_work(note: Note) -> bool:
    """Return True if a note tells of routine work."""
    return note.priority != "high" and (
        note.category in _WORK or (note.category == "note" and bool(note.files))
    )


def stretches(notes: Sequence[Note], zone: tzinfo) -> Iterator[tuple[int, int]]:
    """Find runs of work notes within one day, as ranges."""
    days = [local_time(zone, note.said_at).date() for note in notes]
    start = 0
    for place in range(len(notes) + 1):
        is_end = place == len(notes) or not is_work(notes[place])
        if is_end or (place > start and days[place - 1] != days[place]):
            if place - start > 1:
                yield start, place
            start = place + 1 if is_end else place


def merged(notes: Sequence[Note], zone: tzinfo) -> Note:
    """Merge several notes into one with their words, files and source range."""
    changed = [file for note in notes if note.category == "code" for file in note.files]
    files = list(dict.fromkeys(changed or [file for note in notes for file in note.files]))
    end = local_time(zone, notes[-1].said_at).strftime("%H:%M")
    until = f" (until {end})" if notes[-1].said_at - notes[0].said_at >= 60_000 else ""
    runs = _last_runs(notes)
    pieces = [by_folder(files, 12)] if changed or (files and not runs) else []
    details = [clip(line, _WRITTEN_CHARACTERS) for line in _written(notes, files)][:_MOST_WRITTEN]
    return Note(
        "medium" if any(note.priority == "medium" for note in notes) else "low",
        "code" if changed else notes[-1].category,
        f"Worked on{until}: {joined([*pieces, *runs], 420)}",
        said_at=notes[0].said_at,
        details=tuple(dict.fromkeys(details)),
        files=tuple(files[:40]),
        **_sources(notes),
    )


def under(head: Note, note: Note) -> Note:
    """Put a note below another, as one of its details."""
    sources = _sources((head, note))
    sources["mode_specific"] = {**head.mode_specific, **sources["mode_specific"]}
    return replace(
        head,
        details=(*head.details, note.text, *note.details),
        files=tuple(dict.fromkeys((*head.files, *note.files)))[:40],
        **sources,
    )


def _sources(notes: Sequence[Note]) -> dict[str, Any]:
    """Return the source range of several notes, and whose words they are made of."""
    seqs = [seq for note in notes for seq in (note.first_seq, note.last_seq) if seq is not None]
    inputs = {each for note in notes for each in note.mode_specific.get("inputs", ())}
    return {
        "first_seq": min(seqs, default=None),
        "last_seq": max(seqs, default=None),
        "mode_specific": {"inputs": sorted(inputs)},
    }


def _written(notes: Sequence[Note], files: Sequence[str]) -> Iterator[str]:
    """What was written, file by file; a file that is named with its folder already goes by its name
    alone.
    """
    names = Counter(map(posixpath.basename, files))
    for note in notes:
        for line in (note.details or (note.text,)) if note.category == "code" else ():
            verb = next((verb for verb in _VERBS if line.startswith(verb)), "")
            path, mark, body = line.removeprefix(verb).partition(": ")
            name = posixpath.basename(path)
            if mark and path in files and names[name] == 1:
                yield body if len(files) == 1 else f"{name}: {body}"
            elif path not in files:
                yield line


def _last_runs(notes: Sequence[Note]) -> list[str]:
    """The last outcome of each command, those of tests first."""
    outcomes: dict[str, str] = {}
    for is_test in (False, True):
        for note in notes:
            if note.category == ("test" if is_test else "command"):
                for line in note.details or (note.text.partition(" ")[2],):
                    name = line.partition(": ")[0]
                    outcomes.pop(name, None)
                    outcomes[name] = line
    seen = [line for line in outcomes.values() if not line.endswith(NO_RESULT)]
    return [short_run(line) for line in (seen or list(outcomes.values()))[::-1][:_MOST_RUNS]]


def short_run(line: str) -> str:
    """Return the first words of a command and of its outcome."""
    command, mark, outcome = line.partition(": ")
    return f"{clip(command, _COMMAND_CHARACTERS)}{mark}{clip(outcome, _OUTCOME_CHARACTERS)}"


_TALK_CHARACTERS = 80
_TAKEN_OVER_CHARACTERS = 160


def tells(note: Note) -> bool:
    """Return True if a note holds anything particular."""
    return is_particular(note.text) or any(map(is_particular, note.details))


def is_talk(note: Note) -> bool:
    """Return True if a note is the agent's small talk."""
    return (
        note.category in ("answer", "note")
        and len(note.text) <= _TALK_CHARACTERS
        and not tells(note)
    )


def with_details(note: Note, most: int, *, is_bare: bool = False) -> Note:
    """Keep at most so many details, the particular ones.

    With ``is_bare`` all of those.

    A text that only introduces its details takes them over.
    """
    telling = [detail for detail in note.details if is_particular(detail)]
    if is_bare:
        others = [detail for detail in note.details if detail not in telling][:most]
        details = [detail for detail in note.details if detail in telling or detail in others]
    elif len(note.details) > most:
        details = list(telling or note.details)[:most]
    else:
        return note
    if not details and note.details and note.text.endswith(":"):
        words = joined(telling or note.details, _TAKEN_OVER_CHARACTERS)
        return replace(note, text=f"{note.text} {words}", details=())
    return _changed(note, note.text, tuple(details))


def with_details_in(note: Note, most: int) -> Note:
    """Return a note whose details are at most so long each."""
    return _changed(note, note.text, tuple(told_in(detail, most) for detail in note.details))


def in_characters(note: Note, most: int) -> Note:
    """Return a note whose text is at most so long.

    The outcome of a fix stays.
    """
    text = told_in(note.text, most, has_outcome=note.category == "fix")
    return _changed(note, text, note.details)


def by_first_words(note: Note) -> Note:
    """Return a note on commands with the first words of each."""
    if note.category not in ("command", "test") or note.text.startswith("Worked on"):
        return note
    text = "; ".join(map(short_run, note.text.split("; ")))
    return _changed(note, text, tuple(map(short_run, note.details)))


def by_names(note: Note) -> Note:
    """Shorten a code note to the names that were written."""
    if note.category != "code":
        return note
    head, mark, body = note.text.partition(": ")
    text = note.text
    if mark and not head.startswith("Worked on"):
        names = told_by_names(body)
        text = f"{head}{mark}{names}" if names else head
    return _changed(note, text, tuple(filter(None, map(told_by_names, note.details))))


def _changed(note: Note, text: str, details: tuple[str, ...]) -> Note:
    return (
        note
        if (text, details) == (note.text, note.details)
        else replace(note, text=text, details=details)
    )
