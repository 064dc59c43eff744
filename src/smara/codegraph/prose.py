"""Prose and data in pieces: prose at its headings, everything else in blocks of bounded length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from smara.codegraph.kinds import kind_of
from smara.codegraph.models import CodeChunk

MOST_LINES = 100
MOST_CHARACTERS = 12_000
SMALL_SECTION_LINES = 4
_HEADING = re.compile(r"(#{1,6}|={1,6}|\*{1,4})\s+(\S.*?)[#=\s]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#])\1{2,}\s*$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_LONGEST_NAME = 120


def chunk_prose(path: str, lines: Sequence[str]) -> list[CodeChunk]:
    """Return the pieces of a file that is not code; every line that says something is in one of
    them.
    """
    name = path.rpartition("/")[2]
    is_prose = kind_of(path) == "prose"
    chunks: list[CodeChunk] = []
    for first, last, heading in _sections(lines) if is_prose else [(1, len(lines), "")]:
        prefix = f"{path} > {heading}" if heading else path
        for start, end in trimmed(
            lines, parts(lines, first, last, most_lines=MOST_LINES, most_characters=MOST_CHARACTERS)
        ):
            body = "\n".join(lines[start - 1 : end])
            for offset in range(0, len(body), MOST_CHARACTERS):
                piece = body[offset : offset + MOST_CHARACTERS]
                chunks.append(
                    CodeChunk(
                        "prose",
                        heading or name,
                        start,
                        last_line=end,
                        definition=-1,
                        prefix=prefix,
                        text=piece,
                    )
                )
    return chunks


def _sections(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return first line, last line and heading of each section; one of a few lines goes with the
    next.
    """
    starts: list[tuple[int, str]] = [(1, "")]
    for line, heading in _headings(lines):
        if line - starts[-1][0] < SMALL_SECTION_LINES:
            starts[-1] = (starts[-1][0], starts[-1][1] or heading)
        else:
            starts.append((line, heading))
    ends = [start - 1 for start, _ in starts[1:]] + [len(lines)]
    return [(start, end, heading) for (start, heading), end in zip(starts, ends, strict=True)]


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the headings outside of code blocks, each with those above it: ``Use > Search``."""
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
        elif (found := _UNDERLINE.match(text)) and line > 1 and _may_be_title(lines, line - 2):
            if found[1] not in marks:
                marks.append(found[1])
            place, level, heading = line - 1, marks.index(found[1]) + 1, lines[line - 2].strip()
        if heading:
            above = [outer for outer in above if outer[0] < level]
            above.append((level, heading))
            yield place, " > ".join(title for _, title in above)[-_LONGEST_NAME:]


def _may_be_title(lines: Sequence[str], place: int) -> bool:
    """Say whether the line above an underline is a title: alone, and not a row of a table."""
    title = lines[place].strip()
    before = lines[place - 1].strip() if place else ""
    return bool(title) and "|" not in title and (not before or _UNDERLINE.match(before) is not None)


def parts(
    lines: Sequence[str], first: int, last: int, most_lines: int, most_characters: int
) -> Iterator[tuple[int, int]]:
    """Yield lines cut into parts of bounded length, at a blank line in a part's second half where
    there is one.
    """
    start = first
    if (
        last - first < most_lines
        and last - first + sum(map(len, lines[first - 1 : last])) <= most_characters
    ):
        yield first, last
        return
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
            blank = next(
                (
                    line
                    for line in range(end, (start + end) // 2, -1)
                    if not lines[line - 1].strip()
                ),
                end,
            )
            end = blank
        yield start, end
        start = end + 1


def trimmed(lines: Sequence[str], spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans of lines without the blank lines at their ends; those that are all blank are left
    out.
    """
    for first, last in spans:
        while first <= last and not lines[first - 1].strip():
            first += 1
        while first <= last and not lines[last - 1].strip():
            last -= 1
        if first <= last:
            yield first, last
