"""A file in pieces that are searched as one each: functions whole, classes by their head, the rest
as it stands.

Every line of a file belongs to exactly one piece. A function, method or test is a piece of its own,
and no body is ever split: one that is longer than anyone reads at once and holds further functions
is cut where these begin and end, as a class is. A small class is one piece; of a big one the
methods are pieces and what remains is its head. What stands outside of definitions is kept together
in pieces of bounded length. Prose and data are cut in ``prose``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from smara.codegraph.models import CodeChunk, Definition, FileFacts
from smara.codegraph.prose import chunk_prose, parts, trimmed

SMALL_CLASS_LINES = 12
"""A class of at most so many lines is one piece with its methods."""
ENORMOUS_LINES = 400
"""The functions inside of one that is longer than this are pieces of their own."""
MOST_CHARACTERS = 60_000
"""Of a piece that is no body."""
REST_LINES = 80
"""What stands outside of functions, or in a class outside of its methods."""
TINY_LINES = 2
"""So few lines between two pieces go with the piece below them."""
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|<!--|--)")
_CONTAINERS = frozenset({"class", "module"})
_BODIES = frozenset({"function", "method", "test"})
_LONGEST_PREFIX = 300
_MOST_OUTER = 4

Run = tuple[int, int, int]
"""First line, last line, and the place of the definition they belong to (-1 for none)."""


def chunk_file(facts: FileFacts | None, path: str, text: str) -> list[CodeChunk]:
    """Return the pieces of a file; ``facts`` are those of this very text, ``None`` for prose and
    data.

    Lines are those that end in ``\\n``. Blank lines at the ends of pieces are left out.
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if facts is None:
        return chunk_prose(path, lines)
    definitions = facts.definitions
    chunks: list[CodeChunk] = []
    for first, last, place in _joined(_runs(_owners(definitions, lines)), lines):
        is_whole = place >= 0 and (
            definitions[place].kind in _BODIES or not _is_open(definitions[place])
        )
        spans = (
            [(first, last)]
            if is_whole
            else parts(lines, first, last, most_lines=REST_LINES, most_characters=MOST_CHARACTERS)
        )
        for start, end in trimmed(lines, spans):
            chunks.extend(
                _pieces(
                    definitions,
                    path,
                    start,
                    last=end,
                    place=place,
                    body="\n".join(lines[start - 1 : end]),
                    is_whole=is_whole,
                )
            )
    return chunks


def _pieces(
    definitions: Sequence[Definition],
    path: str,
    first: int,
    last: int,
    place: int,
    body: str,
    is_whole: bool,
) -> Iterator[CodeChunk]:
    """Yield the piece made of some lines; outside of bodies a line that is too long is cut where
    the limit falls.
    """
    kind, name = "module", path.rpartition("/")[2]
    if place >= 0:
        kind, name = (
            "function" if definitions[place].kind in _BODIES else "class",
            definitions[place].qualname,
        )
    prefix = _prefix(definitions, place, path)
    most = len(body) if is_whole else MOST_CHARACTERS
    for start in range(0, len(body), most):
        yield CodeChunk(
            kind,  # type: ignore[arg-type]
            name,
            first,
            last_line=last,
            definition=place,
            prefix=prefix,
            text=body[start : start + most],
        )


def _prefix(definitions: Sequence[Definition], place: int, path: str) -> str:
    """Return where a piece belongs: its path, the classes around it, and what it is."""
    signatures: list[str] = []
    while place >= 0 and len(signatures) <= _MOST_OUTER:
        signatures.append(definitions[place].signature)
        place = definitions[place].parent
    return " > ".join((path, *reversed(signatures)))[:_LONGEST_PREFIX]


def _owners(definitions: Sequence[Definition], lines: Sequence[str]) -> list[int]:
    """Return for every line, from the first at 1, the place of the piece it belongs to."""
    owners = [-1] * (len(lines) + 1)
    whole: list[int] = []
    for place, definition in enumerate(definitions):
        while whole and definitions[whole[-1]].last_byte <= definition.first_byte:
            whole.pop()
        if definition.kind not in _CONTAINERS and definition.kind not in _BODIES:
            continue
        if whole and not _is_open(definitions[whole[-1]]):
            continue
        first, last = max(definition.first_line, 1), min(definition.last_line, len(lines))
        if first > last:
            continue
        before = owners[first]
        is_beside = before >= 0 and (not whole or before != whole[-1])
        # A definition that begins on the last line of another goes with it, so that both stay
        # whole.
        owner = before if is_beside else place
        if not is_beside:
            first = _with_comments(lines, owners, first)
        owners[first : last + 1] = [owner] * (last + 1 - first)
        whole.append(place)
    return owners


def _is_open(definition: Definition) -> bool:
    """Say whether what a definition holds is cut into pieces of its own."""
    length = definition.last_line - definition.first_line + 1
    return length > (
        ENORMOUS_LINES if definition.kind in ("function", "method") else SMALL_CLASS_LINES
    )


def _with_comments(lines: Sequence[str], owners: Sequence[int], first: int) -> int:
    """Return where a definition begins with the comments right above it."""
    around = owners[first]
    start = first
    while start > 1 and owners[start - 1] == around and _COMMENT.match(lines[start - 2]):
        start -= 1
    return start


def _runs(owners: Sequence[int]) -> list[Run]:
    """Return the lines of each owner, together where they stand together."""
    runs: list[Run] = []
    line = 1
    for owner, found in groupby(owners[1:]):
        count = sum(1 for _ in found)
        runs.append((line, line + count - 1, owner))
        line += count
    return runs


def _joined(runs: Sequence[Run], lines: Sequence[str]) -> list[Run]:
    """Return the runs with blank and tiny ones joined to the one below, the last to the one
    above.
    """
    joined: list[Run] = []
    waiting: int | None = None
    said_above = list(accumulate(map(bool, map(str.strip, lines)), initial=0))
    for first, last, place in runs:
        start = first if waiting is None else waiting
        said = said_above[last] - said_above[first - 1]
        if (
            said <= TINY_LINES
            and last != len(lines)
            and (place < 0 or said == 0 or last - first < TINY_LINES)
        ):
            waiting = start
            continue
        waiting = None
        if said == 0 and joined:
            joined[-1] = (joined[-1][0], last, joined[-1][2])
        else:
            joined.append((start, last, place))
    return joined
