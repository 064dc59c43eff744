"""Where a file mentions constants: names in capitals stand in sums, comparisons, indexes, anywhere.

A query with a pattern for each of these places costs more than the rest of the reading. Names in
capitals can be told by their letters, so they are looked for in the text, and only what lies in a
string has to be told apart.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence

from smara.codegraph.source import Source

# What begins with a set of letters is searched for at twice the speed of what begins with a
# boundary.
_NAMES = re.compile(rb"[A-Z](?<!\w[A-Z])[A-Z0-9_]++(?![\w$(])(?!\s*=[^=])")
_PATH = re.compile(rb"(?:(?=[\w$]++(?:\.|::|->))[\w$]++(?:\.|::|->))*+\Z")
_IN_PATHS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.:->")
_JOINTS = (b".", b":", b">")
_LONGEST = 120


def constant_spans(source: Source, known: Collection[str] | None) -> list[tuple[int, int]]:
    """Return where names in capitals stand that a file knows, or that a path leads to; ``None``
    takes any of them.

    Not where they are assigned to, called, imported or quoted.
    """
    data = source.bared
    wanted = (
        None
        if known is None
        else {name.encode("utf-8", "replace") for name in known if name.isupper()}
    )
    found = []
    for match in _NAMES.finditer(data):
        start, end = match.span()
        if data[start - 1 : start] in _JOINTS:
            start = _path_start(data, start)
        elif wanted is not None and match[0] not in wanted:
            continue
        found.append((start, end))
    return (
        _outside(_outside(found, source.spans("string")), source.spans("import"))
        if found
        else found
    )


def _path_start(data: bytes, start: int) -> int:
    """Return where the path before a name begins: ``limits.cart.MOST``."""
    first, least = start, max(0, start - _LONGEST)
    while first > least and data[first - 1] in _IN_PATHS:
        first -= 1
    found = _PATH.search(data, first, start)
    return found.start() if found else start


def _outside(
    spans: list[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the spans that lie in none of the others, which are sorted and do not overlap."""
    if not others:
        return spans
    starts = [start for start, _ in others]
    kept = []
    for span in spans:
        place = bisect_right(starts, span[0]) - 1
        if place < 0 or others[place][1] <= span[0]:
            kept.append(span)
    return kept
