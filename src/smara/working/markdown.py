"""Edit one section or field of a Markdown page.

The outline says where sections and fields are and which names they have; what stands
between code fences is neither. Everything but the edited part stays as it is, to the last
character.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from smara.core.scope import require_id
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError

_OPENING = regex(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = regex(r" {0,3}(`{3,}|~{3,})[ \t]*$")


@dataclass(eq=False)
class Fences:
    """Reads lines one after the other and knows whether they are code."""

    open: str | None = field(default=None, init=False)
    """The fence that would close the code we are in; ``None`` outside."""

    def is_code(self, line: str) -> bool:
        """Return True if the next line is in a code block.

        Its fences included.
        """
        line = line.rstrip("\r")
        if self.open is None:
            found = _OPENING.match(line)
            self.open = found[1] if found else None
            return found is not None
        found = _CLOSING.match(line)
        if found and found[1][0] == self.open[0] and len(found[1]) >= len(self.open):
            self.open = None
        return True


def open_fence(lines: Iterable[str]) -> str | None:
    """The fence that is still missing at the end of these lines.

    >>> open_fence(["~~~~ python", "x = 1", "~~~"])
    '~~~~'
    """
    fences = Fences()
    for line in lines:
        fences.is_code(line)
    return fences.open


MOST_LEVELS = 6
_MARKS = regex(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_EMPHASIS = regex(r"[*_`]")
_LONGEST_LABEL = 120


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """A heading at ``line``; its content ends before ``end``.

    ``path`` is the titles down to it.
    """

    path: tuple[str, ...]
    level: int
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkdownField:
    """A bullet from ``line`` to ``end``.

    ``head`` is its line up to the colon and the label's emphasis.
    """

    path: tuple[str, ...]
    head: str
    line: int
    end: int

    @property
    def indent(self) -> str:
        """The text before the bullet."""
        return self.head[: len(self.head) - len(self.head.lstrip(" \t"))]


NamedPart = TypeVar("NamedPart", MarkdownSection, MarkdownField)


def fold_name(name: str) -> str:
    """Normalize a name: no emphasis, case, spare space, final colon.

    >>> fold_name("**Tech  Stack**:")
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


def sections(lines: Sequence[str]) -> list[MarkdownSection]:
    """Return a page's sections in order, each before its sub-sections."""
    fences = Fences()
    result: list[MarkdownSection] = []
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
        result.append(MarkdownSection((*path, title), level, number, end=len(lines)))
    return result


def fields(lines: Sequence[str], parts: Sequence[MarkdownSection]) -> list[MarkdownField]:
    """Return a page's fields with what is indented below."""
    fences = Fences()
    is_code = [fences.is_code(line) for line in lines]
    section_at = {section.line: section for section in parts}
    path: tuple[str, ...] = ()
    result: list[MarkdownField] = []
    number = 0
    while number < len(lines):
        if number in section_at:
            path = section_at[number].path
        head = None if is_code[number] else field_head(lines[number])
        end = number + 1
        if head is not None:
            # What is indented below belongs to it.
            for later in range(number + 1, len(lines)):
                line = lines[later]
                is_deeper = _indentation(line) > _indentation(lines[number])
                if later in section_at or (line.strip() and not is_deeper):
                    break
                if line.strip():
                    end = later + 1
            label = head.strip()[1:].strip("*_: \t")
            result.append(MarkdownField((*path, label), head, number, end=end))
        number = end
    return result


def field_head(line: str) -> str | None:
    """Return a line's bullet and label, or ``None``.

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
        and bool(fold_name(label[1:]))
    )
    if not is_label or (after and not after[0].isspace()):
        return None
    return line[: len(line) - len(after)]


def _indentation(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def only(parts: Sequence[NamedPart], name: str) -> NamedPart | None:
    """Return the one of a name, or ``None``.

    Raises ``InvalidInputError`` when there are several.

    ``Notes`` is any heading of that title, ``Work/Notes`` the one under ``Work``. A whole
    way from the top wins over the end of a longer one, and a section over those within it.
    """
    way = _way([name])
    matching = [
        each
        for each in parts
        if any(way == _way(each.path[start:]) for start in range(len(each.path)))
    ]
    if len(matching) > 1:
        whole = [each for each in matching if way == _way(each.path)]
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
    return "/".join(fold_name(part) for title in path for part in title.split("/"))


_NEW_LEVEL = 2
_BLOCK = regex(r"[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~|[|>]")


def replace_section(text: str, name: str, body: str | None) -> str:
    """Change, add or remove (``None``) one section or field.

    The name is looked for in this order: a heading; a field; for ``A/B``, a section ``A``,
    which gets a field ``B`` for one line and a sub-section for several. Else a section is
    added at the end. A name that begins with ``#`` means a heading and nothing else.
    Twice is the same as once.
    """
    is_heading, title, level = _parse_name(name)
    lines = text.split("\n")
    found = sections(lines)
    target: MarkdownSection | MarkdownField | None = only(found, title)
    if target is None and not is_heading:
        target = only(fields(lines, found), title)
    content = [] if body is None else _trim_body(body, title)
    if target is None and body is None:
        return text
    if target is None:
        return _add_part(lines, found, title, level=level, is_heading=is_heading, body=content)
    new: list[str] = []
    if body is not None and isinstance(target, MarkdownField):
        new = _field_lines(target.head, content, target.indent)
    elif body is not None and isinstance(target, MarkdownSection):
        new = [lines[target.line], *_check_lines(content, target.level), ""]
    return "\n".join([*lines[: target.line], *new, *lines[target.end :]])


def _parse_name(name: str) -> tuple[bool, str, int]:
    """Whether a heading is meant, its title, and the level it would be added at.

    >>> _parse_name("### Notes"), _parse_name("Notes")
    ((True, 'Notes', 3), (False, 'Notes', 2))
    """
    require_id(name, "section")
    found = heading(name.strip())
    level, title = found or (_NEW_LEVEL, (heading(f"# {name}") or (0, ""))[1])
    if not fold_name(title):
        raise InvalidInputError(
            f"section must name a heading or a field, and {name!r} does not. Give its title."
        )
    return found is not None, title, level


def _trim_body(body: str, title: str) -> list[str]:
    """The lines of a body without blank ones around it, and without a heading that repeats its
    name.
    """
    lines = _without_blank_ends(body.split("\n"))
    first = heading(lines[0]) if lines else None
    if first and fold_name(first[1]) in (fold_name(title), fold_name(title.rpartition("/")[2])):
        lines = _without_blank_ends(lines[1:])
    return lines


def _without_blank_ends(lines: Sequence[str]) -> list[str]:
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[numbers[0] : numbers[-1] + 1]) if numbers else []


def _check_lines(lines: list[str], level: int | None) -> list[str]:
    """Return lines, refused when they would end their place or swallow what follows.

    A section at ``level`` takes deeper headings; a field, without a level, takes none.
    """
    fences = Fences()
    for line in lines:
        found = None if fences.is_code(line) else heading(line)
        if found and level is None:
            raise InvalidInputError(
                f"A field cannot hold the heading {line.strip()!r}. Leave it out, or update a "
                "section instead."
            )
        if found and level is not None and found[0] <= level:
            raise InvalidInputError(
                f"The content has the heading {line.strip()!r}, which would end the section it is "
                f"put into. Use {'#' * min(level + 1, MOST_LEVELS)} or deeper, or update that "
                "section by its own name."
            )
    if fences.open is not None:
        raise InvalidInputError(
            "The content opens a code fence and does not close it, which would swallow what "
            f"follows. End it with a line {fences.open[:20]!r}."
        )
    return lines


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
    return _check_lines(new, None)


def _add_part(
    lines: list[str],
    parts: Sequence[MarkdownSection],
    title: str,
    level: int,
    is_heading: bool,
    body: list[str],
) -> str:
    """The page with a new field or sub-section of a section that is there, or a new section at its
    end.
    """
    above, _, leaf = title.rpartition("/")
    parent = only(parts, above) if above and fold_name(leaf) and not is_heading else None
    if parent is None:
        return _insert_lines(
            lines, len(lines), [f"{'#' * level} {title}", *_check_lines(body, level)]
        )
    head = f"- {leaf.strip()}:"
    if len(body) <= 1 and field_head(head) == head:
        own_end = next((each.line for each in parts if each.line > parent.line), len(lines))
        return _insert_lines(
            lines, min(own_end, parent.end), _field_lines(head, body, ""), is_close=True
        )
    if parent.level == MOST_LEVELS:
        raise InvalidInputError(
            f"{above!r} has no room for a section: headings go {MOST_LEVELS} levels deep."
        )
    new = [f"{'#' * (parent.level + 1)} {leaf.strip()}", *_check_lines(body, parent.level + 1)]
    return _insert_lines(lines, parent.end, new)


def _insert_lines(lines: list[str], at: int, new: list[str], is_close: bool = False) -> str:
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
