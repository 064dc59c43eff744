"""Cut text into sentences and items, and make notes of it.

A note quotes text as it stands, clipped where a reader would clip it, with short paths.
A line that an earlier note has already is not written again.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Literal

from smara.core.dates import find_days, local_time
from smara.core.extract import one_line, read_cues
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.observations.models import AgentMode, Category, Flavor, Note, Priority
from smara.observations.reply.mentions import files_in, lines_in

_COLOUR = regex(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[()][A-Z0-9])"
)
_UNSEEN = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_ABBREVIATION = regex(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|mr|mrs|ms|dr|prof|st|no|fig|\w)|^\d{1,3})\.\s*$", re.I
)

CUES, WORDS = read_cues(__file__, "cues.txt")
"""By what a sentence or a line of code is known: patterns, and sets of words."""

_LONGEST_READ, _HEAD, _TAIL = 16_000, 10_000, 6_000


def clean(text: str) -> str:
    """Return a text without what cannot be seen."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return _UNSEEN.sub(" ", text)


def excerpt(text: str) -> str:
    """Return a text, or both ends of a huge one."""
    if len(text) <= _LONGEST_READ:
        return clean(text)
    head, tail = text[:_HEAD], text[-_TAIL:]
    return clean(head[: head.rfind("\n") + 1 or _HEAD]) + "\n" + clean(tail[tail.find("\n") + 1 :])


def clip(text: str, characters: int) -> str:
    """Cut a text behind a word, in one line."""
    line = one_line(text[: 4 * characters])
    if len(line) <= characters:
        return line if len(text) <= 4 * characters else f"{line}…"
    cut = line.rfind(" ", characters // 2, characters)
    return f"{line[: cut if cut > 0 else characters - 1].rstrip(' ,;:')}…"


def sentences(text: str) -> list[str]:
    """Cut a text into sentences, line by line.

    An abbreviation does not end one.
    """
    found: list[str] = []
    for line in text.splitlines():
        start = 0
        for end in CUES["end of sentence"].finditer(line):
            piece = line[start : end.end()]
            # A sentence does not end inside back quotes.
            if not _ABBREVIATION.search(piece[-12:]) and piece.count("`") % 2 == 0:
                found.append(piece)
                start = end.end()
        found.append(line[start:])
    return [stripped for piece in found if (stripped := one_line(piece))]


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code: its label, its lines, the words before it."""

    label: str
    code: str
    before: str


@dataclass(slots=True)
class TextOutline:
    """A text by its parts: sentences, list items, blocks of code."""

    prose: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)


def outline(text: str) -> TextOutline:
    """Cut a text into sentences, items and blocks of code."""
    found = TextOutline()
    lines = iter(text.splitlines())
    before = ""
    for line in lines:
        if fence := CUES["fence"].match(line):
            code: list[str] = []
            for inside in lines:
                if inside.strip().startswith(fence[1][:3]):
                    break
                code.append(inside)
            found.fences.append(Fence(fence[2], "\n".join(code), before))
            continue
        if not line.strip():
            continue
        before = line
        if bullet := CUES["bullet"].match(line):
            item = line[bullet.end() :]
        elif heading := CUES["heading"].fullmatch(line.rstrip()):
            item = (heading[1] or heading[2]).rstrip(":") + ":"
        elif line.lstrip().startswith("|"):
            item = line.strip().strip("|")
        else:
            found.prose += sentences(plain(line))
            continue
        if not CUES["table rule"].fullmatch(line.strip()):
            found.items.append(one_line(plain(item)))
    return found


def plain(line: str) -> str:
    """Return a line without the marks of bold type and quotation."""
    return CUES["bold mark"].sub("", line).lstrip("> ")


class PathShortener:
    """Writes paths the short way.

    The folder is that of the project, or the one in which the agent began.
    """

    def __init__(self, folder: str) -> None:
        stripped = folder.strip().rstrip("/\\")
        is_absolute = stripped.startswith("/") or stripped[1:2] == ":"
        self._root = f"{stripped}/" if is_absolute else ""

    def short(self, path: str) -> str:
        """Return a path below the work's folder, or unchanged."""
        path = path.strip()
        if self._root and path.startswith(self._root) and len(path) > len(self._root):
            return path[len(self._root) :]
        return path[2:] if path.startswith("./") and len(path) > 2 else path

    def shorten(self, text: str) -> str:
        """Leave the folder of the work out of a text's paths."""
        return text.replace(self._root, "") if self._root and len(self._root) > 4 else text


def by_folder(paths: Sequence[str], most: int = 14) -> str:
    """Group files by folder, in order: ``src/auth/: login.py, token.py; README.md``."""
    groups = grouped(map(posixpath.split, list(dict.fromkeys(paths))[:most]))
    pieces = [
        f"{folder.rstrip('/')}/{': ' if len(names) > 1 else ''}{', '.join(names)}"
        if folder
        else ", ".join(names)
        for folder, names in groups.items()
    ]
    return "; ".join(pieces) + ("; …" if len(set(paths)) > most else "")


Input = Literal["user", "assistant", "tool", "web"]
"""Whose words a note is made of. Trust is decided elsewhere, by these."""

_LONGEST_TEXT, _LONGEST_DETAIL, _MOST_DETAILS = 900, 520, 16


@dataclass(slots=True, kw_only=True)
class Step:
    """The words or the tool call that a note is made of."""

    seq: int
    at: int
    last_seq: int = 0
    """The message of a call's result."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The request as every writer of notes needs it."""

    zone: tzinfo
    paths: PathShortener
    mode: AgentMode = "default"
    flavor: Flavor = "coding"
    focus: frozenset[str] = field(default_factory=frozenset)
    """Words of the user's own instructions; what speaks of them is kept."""

    @property
    def is_coding(self) -> bool:
        return self.flavor == "coding"

    def note(
        self,
        priority: Priority,
        category: Category,
        text: str,
        steps: Sequence[Step],
        *,
        inputs: Iterable[Input] = ("assistant", "tool"),
        details: Sequence[str] = (),
        files: Sequence[str] = (),
        lines: Sequence[int] = (),
        is_dated: bool = False,
        **facts: Any,
    ) -> Note:
        """Make a note of bounded size, dated by its first step.

        Args:
            priority: How much it matters.
            category: What it is about.
            text: What it says.
            steps: What it is made of.
            inputs: Whose words it is made of.
            details: Lines below it.
            files: The files it names.
            lines: The line numbers it names.
            is_dated: True to look for the days that the text means.
            **facts: Fields of the mode; empty ones are left out.
        """
        shown = [clip(detail, _LONGEST_DETAIL) for detail in details[:_MOST_DETAILS]]
        return Note(
            priority,
            category,
            clip(text, _LONGEST_TEXT),
            said_at=steps[0].at,
            refers_to=self.days_in(text, steps[0].at) if is_dated else None,
            details=tuple(dict.fromkeys(filter(None, shown))),
            files=tuple(dict.fromkeys(files)),
            lines=tuple(dict.fromkeys(lines)),
            first_seq=min(step.seq for step in steps),
            last_seq=max(max(step.seq, step.last_seq) for step in steps),
            mode_specific={
                "inputs": sorted(set(inputs)),
                **{name: value for name, value in facts.items() if value},
            },
        )

    def days_in(self, text: str, at: int) -> str | None:
        """Return the days a text means, from its own time."""
        days = find_days(text, local_time(self.zone, at).date())
        return days.render() if days else None

    def mentions(self, text: str) -> Mapping[str, Any]:
        """Return a text's files and lines, for a note."""
        return {"files": tuple(map(self.paths.short, files_in(text))), "lines": lines_in(text)}


def joined(pieces: Iterable[str], characters: int, separator: str = "; ") -> str:
    """Join the pieces that fit, with "…" for the rest."""
    shown: list[str] = []
    used = 0
    for piece in pieces:
        line = one_line(piece)
        used += len(line) + len(separator)
        if shown and used > characters:
            return separator.join([*shown, "…"])
        shown.append(clip(line, characters))
    return separator.join(shown)


# A word in more lines than this tells nothing about any of them.
_COMMON = 80
_NEARLY_ALL = 0.86
_LONGEST_LINE = 200_000


class WordIndex:
    """Sets of words, found by the words they share."""

    def __init__(self) -> None:
        self._sets: list[frozenset[str]] = []
        self._places: dict[str, list[int]] = defaultdict(list)

    def add(self, words: frozenset[str]) -> None:
        """Add a set; its place is the number of those before it."""
        for word in words:
            self._places[word].append(len(self._sets))
        self._sets.append(words)

    def alike(self, words: frozenset[str]) -> list[int]:
        """Return the sets with nearly all words, every number alike."""
        shared: Counter[int] = Counter()
        for word in words:
            places = self._places.get(word, ())
            shared.update(places if len(places) <= _COMMON else ())
        return [
            place
            for place, count in shared.most_common(8)
            if len(words & self._sets[place]) >= _NEARLY_ALL * len(words | self._sets[place])
            # A changed figure is news.
            and not any(map(str.isdigit, "".join(words ^ self._sets[place])))
        ]


class KnownNotes:
    """The lines of earlier notes, so that none is written twice."""

    def __init__(self, rendered: str) -> None:
        self._lines = set(map(_bare, rendered[-_LONGEST_LINE:].splitlines()))

    def has(self, note: Note) -> bool:
        """Return True if a note says nothing new, and remember its lines."""
        lines = set(map(_bare, (note.text, *note.details)))
        is_known = lines <= self._lines
        self._lines |= lines
        return is_known


def _bare(line: str) -> str:
    """Return a line without its mark, its time and the date it means."""
    return " ".join(
        CUES["meaning of date"]
        .sub("", CUES["marks of note"].sub("", line.strip(), count=1))
        .split()
    ).lower()
