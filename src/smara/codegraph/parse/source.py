"""Hold one file while it is parsed: bytes, captures, lines, body hashes.

Comments and layout are blanked before a body is hashed, so that a reformatted definition keeps its
hash. In Python the end of every block leaves a mark, since layout has meaning there. A sketch is a
small sample of line hashes by which two bodies are compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING
from zlib import crc32

from smara.codegraph.codec import bytes_of, numbers_in
from smara.codegraph.language import LanguageSpec
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node


HASH_BYTES = 16
SKETCH_HASHES = 16
_BLANKS = b" \t\r\n\f\v"
_HIDDEN = bytes.maketrans(_BLANKS, b"\x0e\x0f\x10\x11\x12\x13")
_DEEPEST_MARK = 8
_QUOTE, _TRIPLE, _RAW = (b'"', b"'"), (b'"' * 3, b"'" * 3), b"rR"
_ESCAPE = regex(rb"\\[\n\\'\"abfnrtv0-7xNuU]")
_BLANKED = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))
PASSED = _BLANKS + bytes(range(1, _DEEPEST_MARK + 1))
"""What says nothing at the end of a definition: blanks, and the marks of the blocks that end with
it.
"""
_QUOTES = bytes.maketrans(b"'", b'"')
_INDENTS = b" \t\r\f\v"

Span = tuple[int, int]


def bare(
    data: bytes,
    text: bytearray,
    strings: Iterable[Span],
    parentheses: Iterable[Span],
    blocks: Iterable[int],
) -> bytes:
    """Return a text without comments bared.

    Strings kept apart from layout, block ends marked.
    """
    for start, end in strings:
        content = data[start:end]
        if start > 3 and (data[start - 2] in _RAW or data[start - 4] in _RAW):
            raw = start - 4 if data[start - 3 : start] in _TRIPLE else start - 2
            if (
                data[start - 1 : start] in _QUOTE
                and data[raw] in _RAW
                and not _ESCAPE.search(content)
            ):
                text[raw] = 32  # raw or not, it says the same
        if b" " in content or b"\n" in content or b"\t" in content:
            # Blanks in a string are part of its content; hidden, they outlive the stripping of
            # layout.
            text[start:end] = content.translate(_HIDDEN)
    for start, end in parentheses:
        if end - start > 2:
            text[start] = text[end - 1] = 32
    places: dict[int, int] = {}
    for end in blocks:
        if end not in places:
            # Comments at the end of a block belong to it; without them it ends where the code
            # before them does. Marks are passed over like blanks, else the place would depend on
            # which block came first.
            place = end
            while place and text[place - 1] in PASSED:
                place -= 1
            places[end] = place
        # The mark says how many blocks end there.
        mark = text[places[end]]
        if mark in _BLANKS or mark < _DEEPEST_MARK:
            text[places[end]] = 1 if mark in _BLANKS else mark + 1
    return bytes(text.replace(b"\\\n", b"  ")) if b"\\\n" in text else bytes(text)


def body_hash(body: bytes, ignores_trailing_commas: bool = False) -> bytes:
    """Hash a normalized definition, ignoring blanks and quote style."""
    plain = body.translate(_QUOTES, _BLANKS)
    if ignores_trailing_commas:
        plain = plain.replace(b",)", b")").replace(b",]", b"]").replace(b",}", b"}")
    return sha256(plain).digest()[:HASH_BYTES]


def line_hashes(text: bytes | bytearray) -> list[int]:
    """Return a hash for each line, whatever its indentation.

    0 for a blank one.
    """
    return list(map(crc32, text.translate(None, _INDENTS).split(b"\n")))


def sketch(hashes: Sequence[int]) -> bytes:
    """Return the smallest of some lines' hashes, at most 64 bytes."""
    lines = sorted(set(hashes))
    return bytes_of(
        lines[1 : SKETCH_HASHES + 1] if lines and not lines[0] else lines[:SKETCH_HASHES]
    )


def likeness(one: bytes, other: bytes) -> float:
    """Return the likeness of two sketches, from 0.0 to 1.0.

    Of the smallest hashes of both together, the share that both have: an estimate of the lines
    shared among all lines, exact while both have at most sixteen. Two empty sketches are alike.
    """
    first, second = set(numbers_in(one)), set(numbers_in(other))
    if not (smallest := sorted(first | second)[:SKETCH_HASHES]):
        return 1.0
    return sum(value in first and value in second for value in smallest) / len(smallest)


@dataclass(slots=True)
class SourceFile:
    """A file's bytes and captures, for the readers of code."""

    path: str
    spec: LanguageSpec
    data: bytes
    found: dict[str, list[Node]]
    bared: bytes
    comments: list[Span]
    line_starts: list[int]
    line_hashes: list[int]

    @classmethod
    def read(
        cls,
        path: str,
        spec: LanguageSpec,
        data: bytes,
        found: dict[str, list[Node]],
    ) -> SourceFile:
        """Return a file made ready.

        Bared of comments and layout, with a table of its lines.
        """
        comments = sorted([(node.start_byte, node.end_byte) for node in found.get("comment", ())])
        # Every comment is blanked but for its line breaks.
        text = bytearray(data) + b"\n"
        for start, end in comments:
            comment = data[start:end]
            blanks = b" " * (end - start)
            text[start:end] = comment.translate(_BLANKED) if b"\n" in comment else blanks
        hashes = line_hashes(text)
        bared = bare(
            data,
            text,
            [(node.start_byte, node.end_byte) for node in found.get("string", ())],
            parentheses=[(node.start_byte, node.end_byte) for node in found.get("parentheses", ())],
            blocks=[node.end_byte for node in found.get("block", ())],
        )
        if b"\r" in data:
            starts = list(
                accumulate(
                    map(len, data.split(b"\n")), lambda start, width: start + width + 1, initial=0
                )
            )
        else:
            starts = list(accumulate(map(len, data.splitlines(keepends=True)), initial=0))
        return cls(path, spec, data, found, bared, comments, line_starts=starts, line_hashes=hashes)

    def line(self, offset: int) -> int:
        """Return the line, counted from one, on which an offset stands."""
        return bisect_right(self.line_starts, offset)

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[start:end].decode("utf-8", "replace")

    def code(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets.

        Comments that begin there are left out, and the gaps closed.
        """
        pieces = []
        for place in range(bisect_left(self.comments, (start, 0)), len(self.comments)):
            first, behind = self.comments[place]
            if first >= end:
                break
            pieces.append(self.data[start:first])
            start = behind
        rest = self.data[start:end]
        return b" ".join(b"".join([*pieces, rest]).split()) if pieces else rest

    def spans(self, label: str) -> list[Span]:
        """Return where the query found something, in order."""
        return sorted([(node.start_byte, node.end_byte) for node in self.found.get(label, ())])

    def pairs(self, first: str, second: str) -> list[tuple[int, int, int, int]]:
        """Return the spans of two names captured together.

        Such as a variable and its type.

        Several variables may share one type, so each takes the nearest: the next one after it or,
        where types are written first, the last one before it.
        """
        names, types = self.spans(first), self.spans(second)
        before = first == "opened.name" or (first == "typed.name" and self.spec.types_first)
        places = [
            bisect_right(types, (start,)) - 1 if before else bisect_right(types, (end,))
            for start, end in names
        ]
        return [
            (*name, *types[place])
            for name, place in zip(names, places, strict=True)
            if 0 <= place < len(types)
        ]


LONGEST_DOC = 160
_MOST_STEPS = 12
_DOC_MARKS = regex(r"^\s*(?:[rRbBuUfF]{0,2}(?:\"\"\"|'''|[\"'])|/\*+!?|//[/!]?|\*+(?!/)|#+!?)")


def first_doc_line(text: str) -> str:
    """Return the first meaningful line of a docstring or comment."""
    for line in text.splitlines():
        words = _DOC_MARKS.sub("", line).strip().rstrip("\"'").removesuffix("*/").strip()
        if any(map(str.isalnum, words)):
            return words[:LONGEST_DOC]
    return ""


def outer_starts(source: SourceFile) -> dict[int, int]:
    """Return where definitions begin when what stands before them counts.

    Decorators, attributes, ``export``.
    """
    starts: dict[int, int] = {}
    for node in source.found.get("outer", ()):
        place = 0 if node.type == "lexical_declaration" else node.named_child_count - 1
        inner = (
            node.child_by_field_name("definition")
            or node.child_by_field_name("declaration")
            or (node.named_child(place) if node.named_child_count else None)
        )
        if inner is not None and inner.start_byte != node.start_byte:
            starts[inner.start_byte] = node.start_byte
    for node in source.found.get("before", ()):
        if (following := node.next_named_sibling) is not None:
            starts[following.start_byte] = node.start_byte
    # What stands before may have something before it: ``export const f``, two attributes. Earlier
    # ones come first.
    for start in sorted(starts):
        starts[start] = starts.get(starts[start], starts[start])
    return starts


def name_node(node: Node) -> Node | None:
    """Return the node of a definition's name, through C's declarators."""
    field = node.child_by_field_name
    if left := field("left"):
        return field("name") or left.child_by_field_name("property") or left
    if name := field("name") or field("property") or field("key"):
        return name
    name = field("declarator")
    for _ in range(_MOST_STEPS):
        if name is None or name.type == "variable_declarator":
            return name.child_by_field_name("name") if name else None
        is_wrapped = name.type in ("reference_declarator", "parenthesized_declarator")
        first = name.named_child(0) if is_wrapped else None
        if (inner := name.child_by_field_name("declarator") or first) is None:
            return name
        name = inner
    return name
