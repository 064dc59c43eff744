"""Many notes on work as one: the files, what was written into them, and how the last runs ended."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo

from smara.core.days import moment_in
from smara.observations.models import Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.drafting import joined
from smara.observations.offline.paths import by_folder
from smara.observations.offline.wording import clip

_WORK = frozenset({"code", "command", "test"})
_MOST_WRITTEN, _MOST_RUNS = 12, 5
_WRITTEN_CHARACTERS, _COMMAND_CHARACTERS, _OUTCOME_CHARACTERS = 220, 48, 72
_VERBS = tuple(f"{verb} " for verb in (phrases.CREATED, phrases.EDITED))


def is_work(note: Note) -> bool:
    """Whether a note tells of routine work: files, commands, tests, looking around."""
    return note.priority != "high" and (
        note.category in _WORK or (note.category == "note" and bool(note.files))
    )


def stretches(notes: Sequence[Note], zone: tzinfo) -> Iterator[tuple[int, int]]:
    """Runs of work notes within one day that nothing else interrupts, as places from and to."""
    start = 0
    for place in range(len(notes) + 1):
        is_end = place == len(notes) or not is_work(notes[place])
        if is_end or (place > start and not _same_day(notes[place - 1], notes[place], zone)):
            if place - start > 1:
                yield start, place
            start = place + 1 if is_end else place


def _same_day(one: Note, other: Note, zone: tzinfo) -> bool:
    return moment_in(zone, one.said_at).date() == moment_in(zone, other.said_at).date()


def merged(notes: Sequence[Note], zone: tzinfo) -> Note:
    """One note for several; their words, files and source range."""
    changed = [file for note in notes if note.category == "code" for file in note.files]
    files = list(dict.fromkeys(changed or [file for note in notes for file in note.files]))
    end = moment_in(zone, notes[-1].said_at).strftime("%H:%M")
    until = f" ({phrases.UNTIL} {end})" if notes[-1].said_at - notes[0].said_at >= 60_000 else ""
    runs = _last_runs(notes)
    told = [by_folder(files, 12)] if changed or (files and not runs) else []
    details = [clip(line, _WRITTEN_CHARACTERS) for line in _written(notes, files)][:_MOST_WRITTEN]
    seqs = [seq for note in notes for seq in (note.first_seq, note.last_seq) if seq is not None]
    return Note(
        _highest(notes),
        "code" if changed else notes[-1].category,
        f"{phrases.WORKED_ON}{until}: {joined([*told, *runs], 420)}",
        said_at=notes[0].said_at,
        details=tuple(dict.fromkeys(details)),
        files=tuple(files[:40]),
        lines=(),
        first_seq=min(seqs, default=None),
        last_seq=max(seqs, default=None),
        mode_specific={"inputs": inputs_of(notes)},
    )


def under(head: Note, note: Note) -> Note:
    """A note told below another, as one of its details; its files, source range and whose words it
    is go along.
    """
    seqs = [
        seq for each in (head, note) for seq in (each.first_seq, each.last_seq) if seq is not None
    ]
    return replace(
        head,
        details=(*head.details, note.text, *note.details),
        files=tuple(dict.fromkeys((*head.files, *note.files)))[:40],
        first_seq=min(seqs, default=None),
        last_seq=max(seqs, default=None),
        mode_specific={**head.mode_specific, "inputs": inputs_of((head, note))},
    )


def inputs_of(notes: Sequence[Note]) -> list[str]:
    """Whose words several notes are made of, together."""
    return sorted({each for note in notes for each in note.mode_specific.get("inputs", ())})


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
    told = [line for line in outcomes.values() if not line.endswith(phrases.NO_RESULT)] or list(
        outcomes.values()
    )
    return [short_run(line) for line in told[::-1][:_MOST_RUNS]]


def short_run(line: str) -> str:
    """A command and its outcome, the first words of each."""
    command, mark, outcome = line.partition(": ")
    return f"{clip(command, _COMMAND_CHARACTERS)}{mark}{clip(outcome, _OUTCOME_CHARACTERS)}"


def _highest(notes: Sequence[Note]) -> Priority:
    return "medium" if any(note.priority == "medium" for note in notes) else "low"
