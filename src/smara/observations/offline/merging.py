"""Many notes on work as one: the files, what was written into them, and how the last runs ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from smara.core.days import moment_in
from smara.observations.models import Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.drafting import joined
from smara.observations.offline.paths import by_folder
from smara.observations.offline.wording import clip

_WORK = frozenset({"code", "command", "test"})
_MOST_WRITTEN, _MOST_RUNS = 10, 3
_WRITTEN_CHARACTERS, _RUN_CHARACTERS = 220, 140


def is_work(note: Note) -> bool:
    """Whether a note tells of routine work: files, commands, tests, looking around."""
    return note.priority != "high" and (note.category in _WORK or (note.category == "note" and bool(note.files)))


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
    told = [by_folder(files, 12)] if files else []
    details = [clip(line, _WRITTEN_CHARACTERS) for line in _written(notes)][:_MOST_WRITTEN]
    seqs = [seq for note in notes for seq in (note.first_seq, note.last_seq) if seq is not None]
    return Note(
        _highest(notes),
        "code" if changed else notes[-1].category,
        f"{phrases.WORKED_ON}{until}: {joined([*told, *runs], 420)}",
        notes[0].said_at,
        details=tuple(dict.fromkeys(details)),
        files=tuple(files[:40]),
        lines=(),
        first_seq=min(seqs, default=None),
        last_seq=max(seqs, default=None),
        mode_specific={"inputs": inputs_of(notes)},
    )


def inputs_of(notes: Sequence[Note]) -> list[str]:
    """Whose words several notes are made of, together."""
    return sorted({each for note in notes for each in note.mode_specific.get("inputs", ())})


def _written(notes: Sequence[Note]) -> Iterator[str]:
    for note in notes:
        if note.category == "code":
            yield from note.details or (note.text,)


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
    return [clip(line, _RUN_CHARACTERS) for line in list(outcomes.values())[::-1][:_MOST_RUNS]]


def _highest(notes: Sequence[Note]) -> Priority:
    return "medium" if any(note.priority == "medium" for note in notes) else "low"
