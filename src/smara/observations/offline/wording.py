"""Words taken out of a text as they stand: lines, sentences and items, cut where a reader would
cut.

Nothing here adds a word. What is cut short ends in "…"; what cannot be seen (control
characters, colours of a terminal, marks that turn the direction of writing) is left out,
so that a note shows all that it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_COLOUR = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[()][A-Z0-9])"
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_END_OF_SENTENCE = re.compile(r"(?<!\.)[.!?…][\"'”’)\]]{0,2}\s+|[。！？]")  # not after "..."
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|mr|mrs|ms|dr|prof|st|no|fig|\w)|^\d{1,3})\.\s*$", re.I
)
_BULLET = re.compile(r"\s{0,40}(?:[-*+•–]|\d{1,3}[.)])\s+(?=\S)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(\S.{0,300})|\s{0,3}\*\*([^*\n]{1,120})\*\*:?\s*")
_FENCE = re.compile(r"\s{0,12}(```+|~~~+)\s*([\w+#.:/-]{0,80})")
_BOLD = re.compile(r"(?<!\w)\*\*|\*\*(?!\w)")  # not the power in 2**3
_TABLE_RULE = re.compile(r"[\s|:+-]{3,}")


def one_of(*alternatives: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """A pattern that is any of several, one to a line."""
    return re.compile("|".join(alternatives), flags)


LONGEST_READ = 16_000
_HEAD, _TAIL = 10_000, 6_000


def clean(text: str) -> str:
    """The text without what cannot be seen."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return _UNSEEN.sub(" ", text)


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def excerpt(text: str) -> str:
    """A text of bounded length: all of it, or the beginning and the end of a huge one."""
    if len(text) <= LONGEST_READ:
        return clean(text)
    head, tail = text[:_HEAD], text[-_TAIL:]
    return clean(head[: head.rfind("\n") + 1 or _HEAD]) + "\n" + clean(tail[tail.find("\n") + 1 :])


def clip(text: str, characters: int) -> str:
    """At most so many characters in one line, cut behind a word."""
    line = one_line(text[: 4 * characters])
    if len(line) <= characters:
        return line if len(text) <= 4 * characters else f"{line}…"
    cut = line.rfind(" ", characters // 2, characters)
    return f"{line[: cut if cut > 0 else characters - 1].rstrip(' ,;:')}…"


def sentences(text: str) -> list[str]:
    """The sentences of a text, line by line; an abbreviation does not end one."""
    return [sentence for line in text.splitlines() for sentence in _of_line(line)]


def _of_line(line: str) -> list[str]:
    found: list[str] = []
    start = 0
    for end in _END_OF_SENTENCE.finditer(line):
        piece = line[start : end.end()]
        # A sentence does not end inside back quotes.
        if not _ABBREVIATION.search(piece[-12:]) and piece.count("`") % 2 == 0:
            found.append(piece)
            start = end.end()
    found.append(line[start:])
    return [stripped for piece in found if (stripped := one_line(piece))]


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code in a text: how it is labelled, what it holds, and the words before it."""

    label: str
    code: str
    before: str


@dataclass(slots=True)
class Outline:
    """A text by its parts: sentences, items of its lists (with headings and rows), blocks of
    code.
    """

    prose: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)
    """The sentences behind the last item."""
    fences: list[Fence] = field(default_factory=list)


def outline(text: str) -> Outline:
    """The parts of a text in Markdown or plain words."""
    found = Outline()
    lines = iter(text.splitlines())
    before = ""
    for line in lines:
        if fence := _FENCE.match(line):
            found.fences.append(Fence(fence[2], _fenced(lines, fence[1]), before))
        elif line.strip():
            _take(line, found)
            before = line
    return found


def _fenced(lines: Iterator[str], mark: str) -> str:
    inside: list[str] = []
    for line in lines:
        if line.strip().startswith(mark[:3]):
            break
        inside.append(line)
    return "\n".join(inside)


def _take(line: str, found: Outline) -> None:
    if bullet := _BULLET.match(line):
        _add_item(line[bullet.end() :], found)
    elif heading := _HEADING.fullmatch(line.rstrip()):
        _add_item((heading[1] or heading[2]).rstrip(":") + ":", found)
    elif line.lstrip().startswith("|"):
        if not _TABLE_RULE.fullmatch(line.strip()):
            _add_item(line.strip().strip("|"), found)
    else:
        (found.closing if found.items else found.prose).extend(_of_line(plain(line)))


def _add_item(item: str, found: Outline) -> None:
    found.items.append(one_line(plain(item)))
    found.prose += found.closing
    found.closing = []


def plain(line: str) -> str:
    """A line without the marks of bold type and quotation."""
    return _BOLD.sub("", line).lstrip("> ")
