"""One file while it is being read: its bytes, what the query found in them, and where lines
begin.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from smara.codegraph.bodies import Span, bare, line_hashes, without_comments
from smara.codegraph.languages import TRAITS, Traits
from smara.codegraph.models import Language

if TYPE_CHECKING:
    from tree_sitter import Node

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def readable(data: bytes) -> bytes:
    """Return a file's bytes as UTF-8 without a byte order mark and without NUL, whatever it was
    written in.

    What is not UTF-8 is read as Latin-1, in which every byte is a character. The offsets of
    definitions are those of the result.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            data = data.decode(encoding, "replace").encode("utf-8", "replace")
            break
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("latin-1").encode("utf-8")
    return data.replace(b"\0", b" ")


def _next_line(start: int, width: int) -> int:
    return start + width + 1


@dataclass(slots=True)
class Source:
    """A file's bytes and what was found in them, as the readers of definitions, imports and uses
    want it.
    """

    path: str
    language: Language
    data: bytes
    found: dict[str, list[Node]]
    bared: bytes
    comments: list[Span]
    traits: Traits
    line_starts: list[int]
    line_hashes: list[int]

    @classmethod
    def read(
        cls,
        path: str,
        language: Language,
        data: bytes,
        found: dict[str, list[Node]],
        block_ends: Iterable[int] = (),
    ) -> Source:
        """Return a file made ready: bared of comments and layout, with a table of its lines.

        ``block_ends`` are those of blocks that are known to be there and were not found.
        """
        comments = sorted([(node.start_byte, node.end_byte) for node in found.get("comment", ())])
        text = without_comments(data, comments)
        hashes = line_hashes(text)
        bared = bare(
            data,
            text,
            [(node.start_byte, node.end_byte) for node in found.get("string", ())],
            parentheses=[(node.start_byte, node.end_byte) for node in found.get("parentheses", ())],
            blocks=[*block_ends, *(node.end_byte for node in found.get("block", ()))],
        )
        if b"\r" in data:
            starts = list(accumulate(map(len, data.split(b"\n")), _next_line, initial=0))
        else:
            starts = list(accumulate(map(len, data.splitlines(keepends=True)), initial=0))
        return cls(path, language, data, found, bared, comments, TRAITS[language], starts, hashes)

    def line(self, offset: int) -> int:
        """Return the line, counted from one, on which an offset stands."""
        return bisect_right(self.line_starts, offset)

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[start:end].decode("utf-8", "replace")

    def said(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets; comments that begin there are left out, and the
        gaps closed.
        """
        pieces = []
        for place in range(bisect_left(self.comments, (start, 0)), len(self.comments)):
            first, behind = self.comments[place]
            if first >= end:
                break
            pieces.append(self.data[start:first])
            start = behind
        return (
            b" ".join(b"".join([*pieces, self.data[start:end]]).split())
            if pieces
            else self.data[start:end]
        )

    def spans(self, label: str) -> list[Span]:
        """Return where the query found something, in order."""
        return sorted([(node.start_byte, node.end_byte) for node in self.found.get(label, ())])

    def pairs(self, first: str, second: str) -> list[tuple[int, int, int, int]]:
        """Return the spans of two names that the query finds together, such as a variable and its
        type.

        Several variables may share one type, so each takes the nearest: the next one after it or,
        where types are written first, the last one before it.
        """
        names, types = self.spans(first), self.spans(second)
        pairs = []
        before = first == "opened.name" or (first == "typed.name" and self.traits.types_first)
        for start, end in names:
            place = bisect_right(types, (start,)) - 1 if before else bisect_right(types, (end,))
            if 0 <= place < len(types):
                pairs.append((start, end, *types[place]))
        return pairs
