"""What a definition says, apart from how it is laid out: its hash and its sketch.

A file's bytes are first *bared*: comments become spaces, blanks inside strings become other bytes,
and in Python the end of every block leaves a mark, since there layout has meaning. Every offset
stays where it was, so the text of any definition can be cut from the bared bytes and stripped of
its blanks at the speed of ``bytes.translate``. Two definitions with one hash say the same, whatever
they are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from zlib import crc32

from smara.codegraph.numbers import bytes_of, numbers_in

HASH_BYTES = 16
SKETCH_HASHES = 16
_BLANKS = b" \t\r\n\f\v"
_HIDDEN = bytes.maketrans(_BLANKS, b"\x0e\x0f\x10\x11\x12\x13")
_DEEPEST_MARK = 8
_QUOTE, _TRIPLE, _RAW = (b'"', b"'"), (b'"' * 3, b"'" * 3), b"rR"
_ESCAPE = re.compile(rb"\\[\n\\'\"abfnrtv0-7xNuU]")
BLANKED = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))
PASSED = _BLANKS + bytes(range(1, _DEEPEST_MARK + 1))
"""What says nothing at the end of a definition: blanks, and the marks of the blocks that end with
it.
"""
_QUOTES = bytes.maketrans(b"'", b'"')
_INDENTS = b" \t\r\f\v"

Span = tuple[int, int]


def without_comments(data: bytes, comments: Iterable[Span]) -> bytearray:
    """Return the bytes with every comment blanked but for its line breaks, and one line break more
    at the end.
    """
    text = bytearray(data)
    text += b"\n"
    for start, end in comments:
        comment = data[start:end]
        text[start:end] = comment.translate(BLANKED) if b"\n" in comment else b" " * (end - start)
    return text


def bare(
    data: bytes,
    text: bytearray,
    strings: Iterable[Span],
    parentheses: Iterable[Span],
    blocks: Iterable[int],
) -> bytes:
    """Return a text without comments bared: strings kept apart from layout, block ends marked."""
    for start, end in strings:
        said = data[start:end]
        if start > 3 and (data[start - 2] in _RAW or data[start - 4] in _RAW):
            raw = start - 4 if data[start - 3 : start] in _TRIPLE else start - 2
            if data[start - 1 : start] in _QUOTE and data[raw] in _RAW and not _ESCAPE.search(said):
                text[raw] = 32  # raw or not, it says the same
        if b" " in said or b"\n" in said or b"\t" in said:
            # Blanks in a string are part of what is said; hidden, they outlive the stripping of
            # layout.
            text[start:end] = said.translate(_HIDDEN)
    for start, end in parentheses:
        if end - start > 2:
            text[start] = text[end - 1] = 32
    _mark_ends(text, blocks)
    return bytes(text.replace(b"\\\n", b"  ")) if b"\\\n" in text else bytes(text)


def _mark_ends(text: bytearray, blocks: Iterable[int]) -> None:
    """Put a mark where blocks end, saying how many of them do."""
    places: dict[int, int] = {}
    for end in blocks:
        place = places.get(end)
        if place is None:
            # Comments at the end of a block belong to it; without them it ends where the code
            # before them does. Marks are passed over like blanks, else the place would depend on
            # which block came first.
            place = end
            while place and text[place - 1] in PASSED:
                place -= 1
            places[end] = place
        mark = text[place]
        if mark in _BLANKS:
            text[place] = 1
        elif mark < _DEEPEST_MARK:
            text[place] = mark + 1


def body_hash(body: bytes) -> bytes:
    """Return the hash of a bared definition without its blanks and its quotes' style."""
    return sha256(body.translate(_QUOTES, _BLANKS)).digest()[:HASH_BYTES]


def python_body_hash(body: bytes) -> bytes:
    """Return the hash of a bared Python definition; trailing commas do not count either."""
    said = (
        body.translate(_QUOTES, _BLANKS)
        .replace(b",)", b")")
        .replace(b",]", b"]")
        .replace(b",}", b"}")
    )
    return sha256(said).digest()[:HASH_BYTES]


def line_hashes(text: bytes | bytearray) -> list[int]:
    """Return a hash for each line, whatever its indentation; 0 for a blank one."""
    return list(map(crc32, text.translate(None, _INDENTS).split(b"\n")))


def sketch(hashes: Sequence[int]) -> bytes:
    """Return the smallest of some lines' hashes, at most 64 bytes."""
    lines = sorted(set(hashes))
    return bytes_of(
        lines[1 : SKETCH_HASHES + 1] if lines and not lines[0] else lines[:SKETCH_HASHES]
    )


def sketch_of(text: bytes) -> bytes:
    """Return the sketch of any text, to be compared with those of definitions."""
    return sketch(line_hashes(text))


def likeness(one: bytes, other: bytes) -> float:
    """Return how alike two sketches are, from 0.0 (no line shared) to 1.0 (the same lines).

    Of the smallest hashes of both together, the share that both have: an estimate of the lines
    shared among all lines, exact while both have at most sixteen. Two empty sketches are alike.
    """
    first, second = set(numbers_in(one)), set(numbers_in(other))
    smallest = sorted(first | second)[:SKETCH_HASHES]
    if not smallest:
        return 1.0
    return sum(value in first and value in second for value in smallest) / len(smallest)
