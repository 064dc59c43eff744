"""Split a file into chunks for search, and read its opening words.

Every line belongs to exactly one chunk. A function, method or test is a chunk of its own and is
never split unless it is enormous. Prose is split at its headings, anything else into blocks of
bounded length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby

from smara.codegraph.language import kind_of, language_of, languages
from smara.codegraph.models import CodeChunk, Definition, FileFacts
from smara.core.startup.regex import re, regex
from smara.database.fulltext import RecordTerms, terms_of

_BYTES = 6_000
_PYTHON = regex(r"""^(?:#[^\n]*\n|\s)*(?:[rRuU]{0,2})("{3}|'{3}|"|')(.+?)\1""", re.DOTALL)
_BLOCK = regex(r"^\s*/\*+!?(.*?)\*/", re.DOTALL)
_LINES = regex(r"^\s*((?://[/!]?[^\n]*(?:\n|$))+)")
_LICENSE = regex(r"copyright|licen[sc]ed?\b|spdx|all rights reserved", re.IGNORECASE)
_MARKUP = regex(r"^(?:[#=~<>|!]|-{2,}|[-*+] |\.\. |:\w+:|```|\[!\[|\[\w+\]:)")
MOST_OPENING_BYTES = _BYTES
_DIRECTIVE = regex(
    r"go:\w|\+build|eslint|jshint|jslint|global |@ts-|@flow|prettier|nolint|vim:|-\*-|#(?:region"
    r"|pragma)"
)
"""What is said to a tool, not to a reader."""
_DRAWN = regex(r"([=~\-*^#\"'_+.])\1{2,}")
"""A line that underlines a title."""


def first_words(path: str, text: str) -> str:
    """Return the first paragraph of a file that says something.

    Empty when it says nothing, or only who owns it.
    """
    start = text.lstrip("\ufeff")[:_BYTES]
    name = path.rpartition("/")[2].lower()
    if name.startswith("readme") or name.endswith((".md", ".rst", ".txt")):
        # The first paragraph that is neither a heading nor a badge.
        for paragraph in re.split(r"\n\s*\n", start):
            lines = [line.strip() for line in paragraph.strip().splitlines()]
            lines = [line for line in lines if line and not _MARKUP.match(line)]
            plain = " ".join(lines)
            if len(plain.split()) > 2 and not _LICENSE.search(lines[0]):
                return re.sub(r"[*_`]|\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        return ""
    if (language := language_of(path)) is not None and languages()[language].has_docstrings:
        docstring = _PYTHON.match(start)
        return _paragraph(docstring[2]) if docstring else ""
    # The first comment that is not a license.
    start = re.sub(r"^#![^\n]*\n", "", start)
    while comment := _BLOCK.match(start) or _LINES.match(start):
        words = re.sub(r"(?m)^[^\S\n]*(?:\*|//[/!]?)[^\S\n]?", "", comment[1])
        if words.strip() and not _LICENSE.search(words) and not _DIRECTIVE.match(words.strip()):
            return _paragraph(words)
        start = start[comment.end() :]
    return ""


def _paragraph(text: str) -> str:
    """Return the first paragraph, or the second if the first is an underlined title."""
    title = ""
    for paragraph in re.split(r"\n\s*\n", text.strip())[:2]:
        lines = paragraph.strip().splitlines()
        plain = [line for line in lines if not _DRAWN.fullmatch(line.strip())]
        if len(plain) == len(lines):
            return "\n".join(lines)
        title = title or "\n".join(plain)
    return title


MOST_LINES = 100
MOST_CHARACTERS = 12_000
SMALL_SECTION_LINES = 4
_HEADING = regex(r"(#{1,6}|={1,6}|\*{1,4})\s+(\S.*?)[#=\s]*$")
_UNDERLINE = regex(r"([=\-~^\"'`*+#])\1{2,}\s*$")
_FENCE = regex(r"\s*(?:```|~~~)")
_LONGEST_NAME = 120


def chunk_prose(path: str, lines: Sequence[str]) -> list[CodeChunk]:
    """Return the pieces of a file that is not code.

    Every line that says something is in one of them.
    """
    name = path.rpartition("/")[2]
    # The first line and the heading of each section; one of a few lines goes with the next.
    starts: list[tuple[int, str]] = [(1, "")]
    for line, heading in _headings(lines) if kind_of(path) == "prose" else ():
        if line - starts[-1][0] < SMALL_SECTION_LINES:
            starts[-1] = (starts[-1][0], starts[-1][1] or heading)
        else:
            starts.append((line, heading))
    ends = [start - 1 for start, _ in starts[1:]] + [len(lines)]
    chunks: list[CodeChunk] = []
    for (first, heading), last in zip(starts, ends, strict=True):
        prefix = f"{path} > {heading}" if heading else path
        for start, end in trimmed(
            lines, parts(lines, first, last, most_lines=MOST_LINES, most_characters=MOST_CHARACTERS)
        ):
            body = "\n".join(lines[start - 1 : end])
            chunks += [
                CodeChunk(
                    "prose",
                    heading or name,
                    start,
                    last_line=end,
                    definition=-1,
                    prefix=prefix,
                    text=body[offset : offset + MOST_CHARACTERS],
                )
                for offset in range(0, len(body), MOST_CHARACTERS)
            ]
    return chunks


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the headings outside of code blocks, each with those above it.

    ``Use > Search``.
    """
    above: list[tuple[int, str]] = []
    marks: list[str] = []
    in_fence = False
    for line, text in enumerate(lines, start=1):
        if _FENCE.match(text):
            in_fence = not in_fence
        if in_fence:
            continue
        place, level, heading = line, 0, ""
        if found := _HEADING.match(text):
            level, heading = len(found[1]), found[2]
        elif (
            line > 1
            and (found := _UNDERLINE.match(text))
            # Alone, and not a row of a table.
            and (title := lines[line - 2].strip())
            and "|" not in title
            and (
                line < 3 or not lines[line - 3].strip() or _UNDERLINE.match(lines[line - 3].strip())
            )
        ):
            if found[1] not in marks:
                marks.append(found[1])
            place, level, heading = line - 1, marks.index(found[1]) + 1, lines[line - 2].strip()
        if heading:
            above = [outer for outer in above if outer[0] < level]
            above.append((level, heading))
            yield place, " > ".join(title for _, title in above)[-_LONGEST_NAME:]


def parts(
    lines: Sequence[str], first: int, last: int, most_lines: int, most_characters: int
) -> Iterator[tuple[int, int]]:
    """Yield lines in parts of bounded length.

    A part ends at a blank line in its second half where there is one.
    """
    start = first
    while start <= last:
        end, size = start, len(lines[start - 1])
        while (
            end < last
            and end - start + 1 < most_lines
            and size + len(lines[end]) + 1 <= most_characters
        ):
            size += len(lines[end]) + 1
            end += 1
        if end < last:
            later = range(end, (start + end) // 2, -1)
            end = next((line for line in later if not lines[line - 1].strip()), end)
        yield start, end
        start = end + 1


def trimmed(lines: Sequence[str], spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans of lines without the blank lines at their ends.

    Those that are all blank are left out.
    """
    for first, last in spans:
        while first <= last and not lines[first - 1].strip():
            first += 1
        while first <= last and not lines[last - 1].strip():
            last -= 1
        if first <= last:
            yield first, last


SMALL_CLASS_LINES = 12
"""A class of at most so many lines is one piece with its methods."""
ENORMOUS_LINES = 400
"""The functions inside of one that is longer than this are pieces of their own."""
MOST_CHUNK_CHARACTERS = 60_000
"""Of a piece that is no body."""
REST_LINES = 80
"""What stands outside of functions, or in a class outside of its methods."""
TINY_LINES = 2
"""So few lines between two pieces go with the piece below them."""
_COMMENT = regex(r"\s*(?:#|//|/\*|\*|<!--|--)")
_CONTAINERS = frozenset({"class", "module"})
_BODIES = frozenset({"function", "method", "test"})
_LONGEST_PREFIX = 300
_MOST_OUTER = 4

Run = tuple[int, int, int]
"""First line, last line, and the place of the definition they belong to (-1 for none)."""


def chunk_file(facts: FileFacts | None, path: str, text: str) -> list[CodeChunk]:
    """Split a file into pieces by its ``facts``.

    ``facts`` are those of this very text, ``None`` for prose and data.

    Lines are those that end in ``\\n``. Blank lines at the ends of pieces are left out.
    """
    if (lines := text.split("\n")) and not lines[-1]:
        lines.pop()
    if facts is None:
        return chunk_prose(path, lines)
    definitions = facts.definitions
    chunks: list[CodeChunk] = []
    # The lines of each owner, together where they stand together.
    owners = _owners(definitions, lines)
    runs: list[Run] = []
    line = 1
    for owner, same in groupby(owners[1:]):
        count = len(list(same))
        runs.append((line, line + count - 1, owner))
        line += count
    for first, last, place in _joined(runs, lines):
        is_whole = place >= 0 and (
            definitions[place].kind in _BODIES or not _is_open(definitions[place])
        )
        spans = (
            [(first, last)]
            if is_whole
            else parts(
                lines, first, last, most_lines=REST_LINES, most_characters=MOST_CHUNK_CHARACTERS
            )
        )
        kind, name = "module", path.rpartition("/")[2]
        if place >= 0:
            kind = "function" if definitions[place].kind in _BODIES else "class"
            name = definitions[place].qualname
        # A piece belongs to its path, the classes around it, and what it is.
        signatures: list[str] = []
        outer = place
        while outer >= 0 and len(signatures) <= _MOST_OUTER:
            signatures.append(definitions[outer].signature)
            outer = definitions[outer].parent
        for start, end in trimmed(lines, spans):
            body = "\n".join(lines[start - 1 : end])
            # Outside of bodies a line that is too long is cut where the limit falls.
            most = len(body) if is_whole else MOST_CHUNK_CHARACTERS
            chunks += [
                CodeChunk(
                    kind,  # type: ignore[arg-type]
                    name,
                    start,
                    last_line=end,
                    definition=place,
                    prefix=" > ".join((path, *reversed(signatures)))[:_LONGEST_PREFIX],
                    text=body[offset : offset + most],
                )
                for offset in range(0, len(body), most)
            ]
    return chunks


def _owners(definitions: Sequence[Definition], lines: Sequence[str]) -> list[int]:
    """Return for every line, from the first at 1, the place of the piece it belongs to."""
    owners = [-1] * (len(lines) + 1)
    whole: list[int] = []
    for place, definition in enumerate(definitions):
        while whole and definitions[whole[-1]].last_byte <= definition.first_byte:
            whole.pop()
        first, last = max(definition.first_line, 1), min(definition.last_line, len(lines))
        is_inside = bool(whole) and not _is_open(definitions[whole[-1]])
        if definition.kind not in _CONTAINERS | _BODIES or is_inside or first > last:
            continue
        # A definition that begins on the last line of another goes with it, so that both stay
        # whole. Any other begins with the comments right above it.
        owner = before = owners[first]
        if before < 0 or (whole and before == whole[-1]):
            owner = place
            while first > 1 and owners[first - 1] == before and _COMMENT.match(lines[first - 2]):
                first -= 1
        owners[first : last + 1] = [owner] * (last + 1 - first)
        whole.append(place)
    return owners


def _is_open(definition: Definition) -> bool:
    """Return True if what a definition holds is cut into pieces of its own."""
    most = ENORMOUS_LINES if definition.kind in ("function", "method") else SMALL_CLASS_LINES
    return definition.last_line - definition.first_line + 1 > most


def _joined(runs: Sequence[Run], lines: Sequence[str]) -> list[Run]:
    """Return the runs with blank and tiny ones joined to the one below, the last to the one
    above.
    """
    joined: list[Run] = []
    waiting: int | None = None
    filled_above = list(accumulate(map(bool, map(str.strip, lines)), initial=0))
    for first, last, place in runs:
        start = first if waiting is None else waiting
        filled = filled_above[last] - filled_above[first - 1]
        if (
            filled <= TINY_LINES
            and last != len(lines)
            and (place < 0 or filled == 0 or last - first < TINY_LINES)
        ):
            waiting = start
            continue
        waiting = None
        if filled == 0 and joined:
            joined[-1] = (joined[-1][0], last, joined[-1][2])
        else:
            joined.append((start, last, place))
    return joined


def chunk_terms(path: str, name: str, text: str) -> RecordTerms:
    """Return the terms of a chunk.

    Its name and path say more than its body. The prefix is for vectors; its words are here.
    """
    return terms_of(f"{name} {path}", text)
