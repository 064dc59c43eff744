"""Change one section or field of a Markdown page; everything else stays as it is, to the last
character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.core.scope import require_id
from smara.errors import InvalidInputError
from smara.working.fences import Fences, open_fence
from smara.working.outline import (
    MOST_LEVELS,
    Field,
    Section,
    field_head,
    fields,
    folded,
    heading,
    only,
    sections,
)

_NEW_LEVEL = 2
_BLOCK = re.compile(r"[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~|[|>]")


def replace_section(text: str, name: str, body: str | None) -> str:
    """The page with one section or field changed, added when it is not there, or taken out
    (``None``).

    The name is looked for in this order: a heading; a field; for ``A/B``, a section ``A``,
    which gets a field ``B`` for one line and a sub-section for several. Else a section is
    added at the end. A name that begins with ``#`` means a heading and nothing else.
    Twice is the same as once.
    """
    is_heading, title, level = _wanted(name)
    lines = text.split("\n")
    found = sections(lines)
    target: Section | Field | None = only(found, title)
    if target is None and not is_heading:
        target = only(fields(lines, found), title)
    if target is None:
        return (
            text
            if body is None
            else _added(
                lines, found, title, level=level, is_heading=is_heading, body=_trimmed(body, title)
            )
        )
    if body is None:
        new: list[str] = []
    elif isinstance(target, Field):
        new = _field_lines(target.head, _trimmed(body, title), target.indent)
    else:
        new = [lines[target.line], *_section_body(_trimmed(body, title), target.level), ""]
    return "\n".join([*lines[: target.line], *new, *lines[target.end :]])


def _wanted(name: str) -> tuple[bool, str, int]:
    """Whether a heading is meant, its title, and the level it would be added at.

    >>> _wanted("### Notes"), _wanted("Notes")
    ((True, 'Notes', 3), (False, 'Notes', 2))
    """
    require_id(name, "section")
    found = heading(name.strip())
    level, title = found or (_NEW_LEVEL, (heading(f"# {name}") or (0, ""))[1])
    if not folded(title):
        raise InvalidInputError(
            f"section must name a heading or a field, and {name!r} does not. Give its title."
        )
    return found is not None, title, level


def _trimmed(body: str, title: str) -> list[str]:
    """The lines of a body without blank ones around it, and without a heading that repeats its
    name.
    """
    lines = _without_blank_ends(body.split("\n"))
    first = heading(lines[0]) if lines else None
    if first and folded(first[1]) in (folded(title), folded(title.rpartition("/")[2])):
        lines = _without_blank_ends(lines[1:])
    return lines


def _without_blank_ends(lines: Sequence[str]) -> list[str]:
    told = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[told[0] : told[-1] + 1]) if told else []


def _section_body(body: list[str], level: int) -> list[str]:
    """The lines of a section, refused when they would end it or swallow what follows."""
    fences = Fences()
    for line in body:
        found = None if fences.is_code(line) else heading(line)
        if found and found[0] <= level:
            raise InvalidInputError(
                f"The content has the heading {line.strip()!r}, which would end the section it is "
                "put into. Use "
                f"{'#' * min(level + 1, MOST_LEVELS)} or deeper, or update that section by its "
                "own name."
            )
    _refuse_open_fence(body)
    return body


def _field_lines(head: str, body: list[str], indent: str) -> list[str]:
    """A bullet with its value: behind the label, and further lines indented under it."""
    if not body:
        return [head]
    first, rest = body[0].strip(), body[1:]
    if rest and _BLOCK.match(first):
        first, rest = "", body
    new = [
        f"{head} {first}".rstrip(),
        *(f"{indent}  {line}" if line.strip() else "" for line in rest),
    ]
    _refuse_headings(new)
    _refuse_open_fence(new)
    return new


def _refuse_headings(lines: Sequence[str]) -> None:
    fences = Fences()
    for line in lines:
        if not fences.is_code(line) and heading(line):
            raise InvalidInputError(
                f"A field cannot hold the heading {line.strip()!r}. Leave it out, or update a "
                "section instead."
            )


def _refuse_open_fence(lines: Sequence[str]) -> None:
    fence = open_fence(lines)
    if fence is not None:
        raise InvalidInputError(
            "The content opens a code fence and does not close it, which would swallow what "
            "follows. End it with "
            f"a line {fence[:20]!r}."
        )


def _added(
    lines: list[str],
    found: Sequence[Section],
    title: str,
    level: int,
    is_heading: bool,
    body: list[str],
) -> str:
    """The page with a new field or sub-section of a section that is there, or a new section at its
    end.
    """
    above, _, leaf = title.rpartition("/")
    parent = only(found, above) if above and folded(leaf) and not is_heading else None
    if parent is None:
        return _inserted(lines, len(lines), [f"{'#' * level} {title}", *_section_body(body, level)])
    head = f"- {leaf.strip()}:"
    if len(body) <= 1 and field_head(head) == head:
        own_end = next((each.line for each in found if each.line > parent.line), len(lines))
        return _inserted(
            lines, min(own_end, parent.end), _field_lines(head, body, ""), is_close=True
        )
    if parent.level == MOST_LEVELS:
        raise InvalidInputError(
            f"{above!r} has no room for a section: headings go {MOST_LEVELS} levels deep."
        )
    new = [f"{'#' * (parent.level + 1)} {leaf.strip()}", *_section_body(body, parent.level + 1)]
    return _inserted(lines, parent.end, new)


def _inserted(lines: list[str], at: int, new: list[str], is_close: bool = False) -> str:
    """The page with lines put in before ``at``, with a blank line around them; a fence left open is
    closed first.
    """
    before = list(lines[:at])
    while before and not before[-1].strip():
        before.pop()
    fence = open_fence(before)
    if fence is not None:
        before.append(fence)
    follows = before[-1] if before else ""
    is_list = _BLOCK.match(follows.lstrip(" \t")) is not None or follows[:1] in (" ", "\t")
    gap = [] if not before or (is_close and (is_list or heading(follows))) else [""]
    return "\n".join([*before, *gap, *new, "", *lines[at:]])
