"""Condense notes without a model until they fit a token limit.

Superseded notes go first. Then one step after the other is applied, oldest notes first.
Shortened notes keep names, paths and numbers.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from smara.core.dates import local_time, zone_of
from smara.core.text import find_words
from smara.core.tokens import TokenCounter, counter_for
from smara.observations.models import Note, ObservationDraft, ReflectRequest
from smara.observations.offline.calls import NO_RESULT
from smara.observations.offline.notes import (
    CUES,
    WORDS,
    WordIndex,
    by_folder,
    clip,
    fitting,
    joined,
)
from smara.observations.offline.observer import METHOD

_NAME = re.compile(r"[@$:]?[A-Za-z_][\w$]*+(?:[./:]{1,2}[\w$]++)*(?=(\()?)")
_JOINED = re.compile(r"[^\W_]_\w|[a-z]\d?[A-Z]|\w[./]\w|^[@$]")
_BETWEEN = re.compile(r"(?<=[.!?;…])\s+")
# A piece of code as short as this is told as it is.
_SHORT = 32


def is_particular(text: str) -> bool:
    """Return True if a text holds a name, path, number or quotation.

    >>> is_particular("The flags live in src/toggles.py"), is_particular("There is no hurry.")
    (True, False)
    """
    return CUES["particular"].search(text) is not None


def names_in(code: str) -> list[str]:
    """Return the names that a line of code defines, calls or joins.

    >>> names_in("def merge_spans(spans, gap): return Spans(join(spans))")
    ['merge_spans', 'Spans', 'join']
    """
    defined = CUES["defined"].match(code)
    found = {defined[1]: None} if defined else {}
    for match in _NAME.finditer(code):
        name = match[0]
        if (match[1] or _JOINED.search(name)) and name not in WORDS["no names"] and len(name) > 2:
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
    chosen = [0, *fitting(pieces, characters - len(pieces[0]), order)]
    shown = " ".join(pieces[place] for place in chosen)
    return shown if has_outcome and last in chosen else f"{shown.rstrip(' ,;:…')} …"


_WORK = frozenset({"code", "command", "test"})
_MOST_WRITTEN, _MOST_RUNS = 12, 5
_WRITTEN_CHARACTERS, _COMMAND_CHARACTERS, _OUTCOME_CHARACTERS = 220, 48, 72
_TALK_CHARACTERS, _TAKEN_OVER_CHARACTERS = 80, 160
_ANY_LENGTH = 1 << 20


def is_work(note: Note) -> bool:
    """Return True if a note tells of routine work."""
    return note.priority != "high" and (
        note.category in _WORK or (note.category == "note" and bool(note.files))
    )


def tells(note: Note) -> bool:
    """Return True if a note holds anything particular."""
    return any(map(is_particular, (note.text, *note.details)))


def is_talk(note: Note) -> bool:
    """Return True if a note is the agent's small talk."""
    is_short = len(note.text) <= _TALK_CHARACTERS
    return note.category in ("answer", "note") and is_short and not tells(note)


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
    # The last outcome of each command, those of tests first.
    outcomes: dict[str, str] = {}
    for category in ("command", "test"):
        for note in notes:
            if note.category == category:
                for line in note.details or (note.text.partition(" ")[2],):
                    name = line.partition(": ")[0]
                    outcomes.pop(name, None)
                    outcomes[name] = line
    seen = [line for line in outcomes.values() if not line.endswith(NO_RESULT)]
    runs = [short_run(line) for line in (seen or list(outcomes.values()))[::-1][:_MOST_RUNS]]
    # What was written, file by file; a file that is named with its folder already goes by its
    # name alone.
    names = Counter(map(posixpath.basename, files))
    written: list[str] = []
    for note in notes:
        for line in (note.details or (note.text,)) if note.category == "code" else ():
            verb = next((verb for verb in ("Created ", "Changed ") if line.startswith(verb)), "")
            path, mark, body = line.removeprefix(verb).partition(": ")
            name = posixpath.basename(path)
            if mark and path in files and names[name] == 1:
                written.append(body if len(files) == 1 else f"{name}: {body}")
            elif path not in files:
                written.append(line)
    details = [clip(line, _WRITTEN_CHARACTERS) for line in written[:_MOST_WRITTEN]]
    pieces = [by_folder(files, 12)] if changed or (files and not runs) else []
    return Note(
        "medium" if any(note.priority == "medium" for note in notes) else "low",
        "code" if changed else notes[-1].category,
        f"Worked on{until}: {joined([*pieces, *runs], 420)}",
        said_at=notes[0].said_at,
        details=tuple(dict.fromkeys(details)),
        files=tuple(files[:40]),
        **_sources(notes),
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


def short_run(line: str) -> str:
    """Return the first words of a command and of its outcome."""
    command, mark, outcome = line.partition(": ")
    return f"{clip(command, _COMMAND_CHARACTERS)}{mark}{clip(outcome, _OUTCOME_CHARACTERS)}"


def with_details(note: Note, most: int, *, is_bare: bool = False) -> Note:
    """Keep at most so many details, the particular ones.

    With ``is_bare`` all of those.

    A text that only introduces its details takes them over.
    """
    telling = [detail for detail in note.details if is_particular(detail)]
    if is_bare:
        others = [detail for detail in note.details if detail not in telling][:most]
        details = [detail for detail in note.details if detail in telling or detail in others]
    else:
        is_many = len(note.details) > most
        details = list((telling or note.details) if is_many else note.details)[:most]
    if not details and note.details and note.text.endswith(":"):
        words = joined(telling or note.details, _TAKEN_OVER_CHARACTERS)
        return replace(note, text=f"{note.text} {words}", details=())
    return replace(note, details=tuple(details))


def in_characters(note: Note, text: int = _ANY_LENGTH, detail: int = _ANY_LENGTH) -> Note:
    """Return a note whose text and details are at most so long.

    The outcome of a fix stays.
    """
    return replace(
        note,
        text=told_in(note.text, text, has_outcome=note.category == "fix"),
        details=tuple(told_in(each, detail) for each in note.details),
    )


def by_first_words(note: Note) -> Note:
    """Return a note on commands with the first words of each."""
    if note.category not in ("command", "test") or note.text.startswith("Worked on"):
        return note
    text = "; ".join(map(short_run, note.text.split("; ")))
    return replace(note, text=text, details=tuple(map(short_run, note.details)))


def by_names(note: Note) -> Note:
    """Shorten a code note to the names that were written."""
    if note.category != "code":
        return note
    head, mark, body = note.text.partition(": ")
    text = note.text
    if mark and not head.startswith("Worked on"):
        names = told_by_names(body)
        text = f"{head}{mark}{names}" if names else head
    return replace(note, text=text, details=tuple(filter(None, map(told_by_names, note.details))))


_USER_LABELS = frozenset({"statement", "preference", "change", "decision"})
# A longer sentence says other things as well, and stays.
_LONGEST_REPLACED = 16


def without_superseded(notes: Sequence[Note]) -> list[Note]:
    """Drop the notes that a newer one repeats or replaces."""
    index = WordIndex()
    subjects: list[frozenset[str]] = []
    newer: list[Note] = []
    for note in reversed(notes):
        words = _words(" ".join([note.text, *note.details]))
        is_repeated = any(newer[place].category == note.category for place in index.alike(words))
        is_replaced = (
            note.category in _USER_LABELS
            and len(words) <= _LONGEST_REPLACED
            and any(subject and subject <= words for subject in subjects[-200:])
        )
        if not is_repeated and not is_replaced:
            index.add(words)
            newer.append(note)
            if subject := note.mode_specific.get("replaces"):
                subjects.append(_words(str(subject)))
    return newer[::-1]


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in find_words(text))


Step = Callable[[Note], Note | None]
"""What is done to one note; ``None`` takes it away."""

_KEPT = frozenset({"preference", "decision", "change", "completion", "request", "blocker"})
# So many of the newest notes are never taken away: where the work stands is told by them.
_NEWEST = 5
# More than this is not told below a request; it would be a tale of its own.
_MOST_BELOW = 4
_MENDED_CHARACTERS = 20_000
# What a mark and a time cost, and what a detail costs besides its words; measured.
_TOKENS_OF_A_NOTE, _TOKENS_OF_A_DETAIL = 9, 2
# A little below what was asked: where much must stay it ends above, and elsewhere that is made up
# for.
_AIM = 0.9
_BY_USER = "User "


def is_kept(note: Note) -> bool:
    """Return True if a note stays at every level."""
    return note.priority == "high" or note.category in _KEPT


class NoteBudget:
    """Notes, their sizes, and how large they may be."""

    def __init__(
        self, notes: Sequence[Note], target_tokens: int, counter: TokenCounter, zone: tzinfo
    ) -> None:
        self._counter = counter
        self._zone = zone
        self._notes: list[Note | None] = list(notes)
        self._sizes = [self._size(note) for note in notes]
        self._total = sum(self._sizes)
        self._heads: list[int] = []
        """For each note the place of what the user said last before it, else its own."""
        for place, note in enumerate(notes):
            is_head = not self._heads or note.text.startswith(_BY_USER)
            is_below = not is_head and notes[self._heads[-1]].text.startswith(_BY_USER)
            self._heads.append(self._heads[-1] if is_below else place)
        telling = [place for place, note in enumerate(notes) if not is_talk(note)] or list(
            range(len(notes))
        )
        self._newest = set(telling[-_NEWEST:])
        self.target = target_tokens * _AIM
        self.is_pressed = False
        """Whether all that may be taken away is, though it fits already."""

    @property
    def fits(self) -> bool:
        return self._total <= self.target and not self.is_pressed

    @property
    def result(self) -> list[Note]:
        return [note for note in self._notes if note is not None]

    def apply(self, step: Step) -> None:
        """Do one thing to each note."""
        for place, note in enumerate(self._notes):
            if self.fits:
                return
            if note is not None:
                changed = step(note)
                if changed != note and (changed is not None or place not in self._newest):
                    self._put(place, changed)

    def merge(self) -> None:
        """Stretches of work become one note each."""
        notes = self.result
        for start, end in list(stretches(notes, self._zone)):
            if self.fits:
                return
            whole = merged(notes[start:end], self._zone)
            if self._size(whole) < sum(self._sizes[start:end]):
                self._put(start, whole)
                if not self._newest.isdisjoint(range(start, end)):
                    self._newest.add(start)
                for place in range(start + 1, end):
                    self._put(place, None)

    def drop_mended(self) -> None:
        """Failures of commands that succeeded later go."""
        mended = ""
        for place in range(len(self._notes) - 1, -1, -1):
            note = self._notes[place]
            if note is not None and note.category == "fix":
                mended = f"{mended}\n{note.text}"[-_MENDED_CHARACTERS:]
            elif note is not None and note.category == "error" and not self.fits:
                command = note.text.partition(" failed")[0]
                if command and command in mended:
                    self._put(place, None)

    def fold(self) -> None:
        """Tell the little that came of a user's words below them."""
        below = Counter(
            head for place, head in enumerate(self._heads) if self._notes[place] and head != place
        )
        for place, head in enumerate(self._heads):
            if self.fits:
                return
            note, top = self._notes[place], self._notes[head]
            if note is None or top is None or head == place or below[head] > _MOST_BELOW:
                continue
            if is_kept(top) and not is_kept(note):
                sources = _sources((top, note))
                sources["mode_specific"] = {**top.mode_specific, **sources["mode_specific"]}
                details = (*top.details, note.text, *note.details)
                files = tuple(dict.fromkeys((*top.files, *note.files)))[:40]
                self._put(head, replace(top, details=details, files=files, **sources))
                self._put(place, None)

    def _put(self, place: int, note: Note | None) -> None:
        size = self._size(note) if note is not None else 0
        self._total += size - self._sizes[place]
        self._notes[place], self._sizes[place] = note, size

    def _size(self, note: Note) -> int:
        lines = (note.text, *note.details)
        around = _TOKENS_OF_A_NOTE + _TOKENS_OF_A_DETAIL * len(note.details)
        return self._counter.count("\n".join(lines)).tokens + around


_OVER = 1.4
# Who begins here or above wants the size, whatever it costs.
_PRESSING_LEVEL = 2
MOST_LEVEL = 4
_ASKED_AND_DONE = frozenset({"request", "completion"})
# What holds for what comes, however long ago it was said.
_RULES = frozenset({"preference", "decision", "change"})

Action = Callable[[NoteBudget], None]


class OfflineReflector:
    """Deterministic, fast, no key."""

    method = METHOD

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self._counter = counter or counter_for()

    def reflect(self, request: ReflectRequest) -> ObservationDraft:
        """Condensed notes, in the order of their times.

        Everything that the levels below the given one allow is taken away; from there on it
        stops as soon as the notes fit into ``target_tokens``. When all that may go is gone
        they may still be larger. The same notes and numbers always give the same result.
        """
        notes = without_superseded(sorted(request.notes, key=lambda note: note.said_at))
        work = NoteBudget(
            notes, request.target_tokens, self._counter, zone=zone_of(request.timezone)
        )
        for level, actions in enumerate(_LEVELS):
            work.is_pressed = level < request.level
            for action in actions:
                if action is _drop_the_rest and request.level < _PRESSING_LEVEL:
                    work.target *= _OVER
                action(work)
        return ObservationDraft(tuple(work.result))


def _each(change: Step, *, spares_kept: bool = True) -> Action:
    """Change every note, but for those that stay at every level."""
    return lambda work: work.apply(
        lambda note: note if spares_kept and is_kept(note) else change(note)
    )


def _go(which: Callable[[Note], bool], *, spares_kept: bool = True) -> Action:
    """Take notes of one kind away, but for those that stay at every level."""
    return _each(lambda note: None if which(note) else note, spares_kept=spares_kept)


_drop_the_rest = _go(lambda note: True)

# What each level does, the gentlest first.
_LEVELS: tuple[tuple[Action, ...], ...] = (
    (NoteBudget.merge,),
    (
        _each(lambda note: with_details(note, 0) if note.priority == "low" else note),
        _go(lambda note: note.priority == "low"),
        _go(is_talk),
        _each(lambda note: with_details(note, 3, is_bare=True)),
    ),
    (
        NoteBudget.drop_mended,
        _each(by_first_words),
        _each(by_names),
        _each(lambda note: with_details(note, 0, is_bare=True), spares_kept=False),
        _each(lambda note: in_characters(note, 240)),
        _each(lambda note: in_characters(note, detail=160)),
        _each(lambda note: with_details(note, 3)),
    ),
    (
        _go(lambda note: note.category == "answer" and not tells(note)),
        _go(lambda note: note.category == "question"),
        _go(lambda note: is_work(note) and note.category != "code"),
        _go(lambda note: note.category == "error" or not tells(note)),
        NoteBudget.fold,
        _drop_the_rest,
    ),
    (
        _each(lambda note: with_details(note, 2), spares_kept=False),
        _each(lambda note: in_characters(with_details(note, 0), 200), spares_kept=False),
        _go(lambda note: note.category in _ASKED_AND_DONE, spares_kept=False),
        _go(lambda note: note.category not in _RULES, spares_kept=False),
        _go(lambda note: True, spares_kept=False),
    ),
)
