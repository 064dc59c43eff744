"""The outline of a Markdown page: where its sections and fields are, and by which names they go.

A *section* is a heading with everything down to the next heading of its level or above,
so that sub-sections belong to it. A *field* is a bullet with a label (``- Language:``)
and the more deeply indented lines under it. Lines of code are neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from smara.errors import InvalidInputError
from smara.working.fences import Fences

MOST_LEVELS = 6
_MARKS = re.compile(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_EMPHASIS = re.compile(r"[*_`]")
_LONGEST_LABEL = 120


@dataclass(frozen=True, slots=True)
class Section:
    """A heading at ``line``; what belongs to it ends before ``end``. ``path`` is the titles down to
    it.
    """

    path: tuple[str, ...]
    level: int
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Field:
    """A bullet at ``line`` up to ``end``; ``head`` is its line up to the colon and the label's
    emphasis.
    """

    path: tuple[str, ...]
    head: str
    line: int
    end: int

    @property
    def indent(self) -> str:
        """What stands before the bullet."""
        return self.head[: len(self.head) - len(self.head.lstrip(" \t"))]


Named = TypeVar("Named", Section, Field)


def folded(name: str) -> str:
    """A name as it is compared: without emphasis, case, needless space and a colon at its end.

    >>> folded("**Tech  Stack**:")
    'tech stack'
    """
    return " ".join(_EMPHASIS.sub("", name).split()).rstrip(": ").casefold()


def heading(line: str) -> tuple[int, str] | None:
    """The level and title of a heading; ``None`` for any other line.

    >>> heading("## C# ##"), heading("#no heading")
    ((2, 'C#'), None)
    """
    found = _MARKS.match(line)
    if found is None:
        return None
    title = line[found.end() :].strip()
    without = title.rstrip("#")
    if not without or (without != title and without[-1] in " \t"):
        title = without.rstrip()
    return len(found[1]), title


def sections(lines: Sequence[str]) -> list[Section]:
    """Every section of a page, in order; a sub-section follows the section it belongs to."""
    fences = Fences()
    result: list[Section] = []
    still_open: list[int] = []  # places in the result, each deeper than the one before
    for number, line in enumerate(lines):
        found = None if fences.is_code(line) else heading(line)
        if found is None:
            continue
        level, title = found
        while still_open and result[still_open[-1]].level >= level:
            place = still_open.pop()
            result[place] = replace(result[place], end=number)
        path = result[still_open[-1]].path if still_open else ()
        still_open.append(len(result))
        result.append(Section((*path, title), level, number, end=len(lines)))
    return result


def fields(lines: Sequence[str], found: Sequence[Section]) -> list[Field]:
    """Every field of a page whose sections were found; what is indented under a field is part of
    it.
    """
    fences = Fences()
    is_code = [fences.is_code(line) for line in lines]
    section_at = {section.line: section for section in found}
    path: tuple[str, ...] = ()
    result: list[Field] = []
    number = 0
    while number < len(lines):
        if number in section_at:
            path = section_at[number].path
        head = None if is_code[number] else field_head(lines[number])
        end = number + 1
        if head is not None:
            end = _end_of_field(lines, number, section_at)
            label = head.strip()[1:].strip("*_: \t")
            result.append(Field((*path, label), head, number, end=end))
        number = end
    return result


def field_head(line: str) -> str | None:
    """The bullet and label that a line begins with; ``None`` when it has no label.

    >>> field_head("  - **Name:** Ann"), field_head("- see https://example.org")
    ('  - **Name:**', None)
    """
    rest = line.lstrip(" \t")
    if rest[:1] not in ("-", "*", "+") or rest[1:2] not in (" ", "\t"):
        return None
    label, colon, value = rest.partition(":")
    emphasis = value[:2] if value[:2] in ("**", "__") else ""
    after = value[len(emphasis) :]
    is_label = (
        colon
        and len(label) <= _LONGEST_LABEL
        and label.count("`") % 2 == 0
        and bool(folded(label[1:]))
    )
    if not is_label or (after and not after[0].isspace()):
        return None
    return line[: len(line) - len(after)]


def _end_of_field(lines: Sequence[str], number: int, section_at: dict[int, Section]) -> int:
    own = _indentation(lines[number])
    end = number + 1
    for later in range(number + 1, len(lines)):
        line = lines[later]
        if later in section_at or (line.strip() and _indentation(line) <= own):
            break
        if line.strip():
            end = later + 1
    return end


def _indentation(line: str) -> int:
    spaces = line[: len(line) - len(line.lstrip(" \t"))]
    return len(spaces.expandtabs(4))


def only(found: Sequence[Named], name: str) -> Named | None:
    """The one that goes by a name; ``None`` when there is none, ``InvalidInputError`` when there
    are several.

    ``Notes`` is any heading of that title, ``Work/Notes`` the one under ``Work``. A whole
    way from the top wins over the end of a longer one, and a section over those within it.
    """
    wanted = _way([name])
    matching = [
        each
        for each in found
        if any(wanted == _way(each.path[start:]) for start in range(len(each.path)))
    ]
    if len(matching) > 1:
        whole = [each for each in matching if wanted == _way(each.path)]
        matching = whole if len(whole) == 1 else matching
    if all(each.line < matching[0].end for each in matching[1:]):
        matching = matching[:1]
    if len(matching) > 1:
        ways = ", ".join(repr("/".join(each.path)) for each in matching[:5])
        raise InvalidInputError(
            f"{name!r} names {len(matching)} places: {ways}. Give the way down to one of them, or "
            "put the whole page.",
            section=name,
        )
    return matching[0] if matching else None


def _way(path: Sequence[str]) -> str:
    return "/".join(folded(part) for title in path for part in title.split("/"))
