"""Edit JSON with comments as text, preserving everything else.

A reader notes where every value begins and ends; a change is a few splices. Example,
appending 2 to the list of ``{"a": [1 // one\\n]}``: a comma is put right after the ``1``,
the new element on a line of its own before the bracket, and the comment stays in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from smara.core.files import read_regular
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError, SmaraError

_SPACE = " \t\r\n\ufeff"
_GAP = regex(r"(?:[ \t\r\n\ufeff]|//[^\n]*\n?|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_INDENTED = regex(r"^([ \t]+)(?!\*|//|/\*)\S", re.MULTILINE)
_SCALAR = regex(r"[^,\]}/ \t\r\n]*")
_DEEPEST = 200


@dataclass(slots=True)
class JsoncNode:
    """A value in a text, with its place and its members.

    Attributes:
        members: Of an object: name, where the name begins, value. Of a list: an empty name, and
            where the element begins.
    """

    start: int
    end: int
    value: Any
    members: list[tuple[str, int, JsoncNode]] = field(default_factory=list)
    has_last_comma: bool = False

    def member(self, name: str) -> JsoncNode | None:
        """Return the member of a name; the last one of several."""
        return next((node for key, _, node in reversed(self.members) if key == name), None)


@dataclass(eq=False)
class _JsoncReader:
    """A place in a text with comments."""  # without a text, making the class takes 3 to 8 ms

    text: str
    at: int = field(default=0, init=False)

    def skip(self) -> None:
        self.at = _behind_gap(self.text, self.at)
        if self.text.startswith("/*", self.at):
            raise self.wrong("the end of a comment")

    def value(self, depth: int) -> JsoncNode:
        if depth > _DEEPEST:
            raise self.wrong("fewer brackets inside each other")
        opening = self.text[self.at : self.at + 1]
        if opening in ("{", "["):
            return self.container(depth, "}" if opening == "{" else "]")
        start = self.at
        if opening == '"':
            text = self.string()
            return JsoncNode(start, self.at, text)
        scalar = _SCALAR.match(self.text, start)
        try:
            value = json.loads(scalar[0] if scalar else "")
        except ValueError:
            raise self.wrong("a value") from None
        self.at = scalar.end() if scalar else start
        return JsoncNode(start, self.at, value)

    def string(self) -> str:
        string = _STRING.match(self.text, self.at)
        if string is None:
            raise self.wrong("the end of a text")
        self.at = string.end()
        return str(json.loads(string[0], strict=False))

    def container(self, depth: int, closing: str) -> JsoncNode:
        node = JsoncNode(self.at, 0, {} if closing == "}" else [])
        self.at += 1
        self.skip()
        while not self.text.startswith(closing, self.at):
            if node.members and not node.has_last_comma:
                raise self.wrong(f"a comma or {closing}")
            start, name = self.at, ""
            if closing == "}":
                if not self.text.startswith('"', self.at):
                    raise self.wrong("a name")
                name = self.string()
                self.skip()
                if not self.text.startswith(":", self.at):
                    raise self.wrong("a colon")
                self.at += 1
                self.skip()
            inner = self.value(depth + 1)
            node.members.append((name, start, inner))
            self.skip()
            node.has_last_comma = self.text.startswith(",", self.at)
            self.at += node.has_last_comma
            self.skip()
        self.at += 1
        node.end = self.at
        values = [(name, inner.value) for name, _, inner in node.members]
        node.value = dict(values) if closing == "}" else [value for _, value in values]
        return node

    def wrong(self, expected: str) -> InvalidInputError:
        line = self.text.count("\n", 0, self.at) + 1
        return InvalidInputError(f"Line {line} is no JSON: {expected} is missing.", line=line)


def _behind_gap(text: str, at: int) -> int:
    """Where the next sign stands, behind spaces and comments."""
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def read_object(path: str) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read."""
    try:
        content = read(read_regular(path).decode()).value
    except (OSError, ValueError, SmaraError):
        return {}
    return content if isinstance(content, dict) else {}


def read(text: str) -> JsoncNode:
    """The value of a text and where everything in it stands.

    An empty text is an empty object.
    """
    if not text.strip(_SPACE):
        return JsoncNode(len(text), len(text), {})
    reader = _JsoncReader(text)
    reader.skip()
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.wrong("the end")
    return node


def merge(text: str, additions: Mapping[str, Any]) -> str:
    """Return the text with additions.

    Members that are missing are added to objects, elements to the end of lists.

    A member that is there with another plain value is left alone: it is the person's.
    """
    if not text.strip(_SPACE):
        newline = "\r\n" if "\r\n" in text else "\n"
        return (
            text.rstrip(_SPACE.replace("\ufeff", ""))
            + _dump(additions, "  ", newline, depth=0)
            + newline
        )
    root = read(text)
    if not isinstance(root.value, dict):
        raise InvalidInputError(
            "The file holds no JSON object, so nothing can be added to it. Look at it by hand."
        )
    # Paths are looked up again for each, since inserting moves the rest.
    for path, value in list(_leaves(root, (), additions)):
        node, depth, entries = read(text), 0, None
        for name in path:
            inner = node.member(name)
            if inner is None:
                entries = [(name, value)]
                break
            node, depth = inner, depth + 1
        text = _append(text, node, depth, entries=entries or [("", each) for each in value])
    return text


def _leaves(
    node: JsoncNode | None, path: tuple[str, ...], value: Any
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what is to be inserted, with its path."""
    if node is None or (isinstance(value, list) and isinstance(node.value, list)):
        yield path, value
    elif isinstance(value, Mapping) and isinstance(node.value, dict):
        for name, each in value.items():
            yield from _leaves(node.member(name), (*path, name), each)


def _append(text: str, node: JsoncNode, depth: int, entries: list[tuple[str, Any]]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    # The text indents by what its first indented line begins with.
    indented = _INDENTED.search(text)
    unit = indented[1] if indented else "  "
    inside = text[node.start : node.end]
    is_flat = bool(node.members) and "\n" not in inside and "//" not in inside
    lead = " " if is_flat else newline + unit * (depth + 1)
    added = ("," + lead).join(
        (f"{json.dumps(name)}: " if name else "")
        + _dump(value, "" if is_flat else unit, newline, depth=depth + 1)
        for name, value in entries
    )
    close = node.end - 1
    content_end = node.start + 1 + len(text[node.start + 1 : close].rstrip(_SPACE))
    tail = text[content_end:close] if node.members or content_end > node.start + 1 else ""
    if not is_flat and "\n" not in tail:
        tail = newline + unit * depth
    comma = "," if node.has_last_comma else ""
    text = text[:content_end] + lead + added + comma + tail + text[close:]
    if node.members and not node.has_last_comma:
        last = node.members[-1][2].end
        text = text[:last] + "," + text[last:]
    return text


def _dump(value: Any, unit: str, newline: str, depth: int) -> str:
    if not unit:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


def remove(text: str, is_ours: Callable[[tuple[str, ...], Any], bool]) -> str:
    """Return the text without our entries, and without what they leave empty.

    ``is_ours`` is asked for every member and element with its path; elements have ``[]`` in theirs.
    """

    def find(node: JsoncNode, path: tuple[str, ...]) -> tuple[JsoncNode, int] | None:
        for position, (name, start, inner) in enumerate(node.members):
            here = (*path, name or "[]")
            if is_ours(here, inner.value):
                return node, position
            found = find(inner, here)
            if found is not None:
                # What held ours and nothing else goes with it; a comment is something else.
                is_left_empty = (
                    found[0] is inner
                    and _holds_one(text, inner)
                    and "/" not in text[start : inner.start]
                )
                return (node, position) if is_left_empty else found
        return None

    while (found := find(read(text), ())) is not None:
        text = _cut(text, *found)
    return text


def _holds_one(text: str, node: JsoncNode) -> bool:
    """Whether nothing but one entry stands between the brackets, not even a comment."""
    if len(node.members) != 1:
        return False
    _, start, inner = node.members[0]
    around = text[node.start + 1 : start] + text[inner.end : node.end - 1]
    return not around.replace(",", "").strip(_SPACE)


def _cut(text: str, parent: JsoncNode, position: int) -> str:
    _, start, node = parent.members[position]
    end = _behind_gap(text, node.end) + 1  # behind the comma
    if position + 1 < len(parent.members):
        return text[:start] + text[end:].lstrip(_SPACE)
    end = end if parent.has_last_comma else node.end
    head = text[:start].rstrip(_SPACE)
    if "\n" in text[len(head) : start] and not text[end:].lstrip(" \t").startswith(("\n", "\r")):
        head += "\n"  # a comment may end the line before, and would swallow what follows
    if position and not parent.has_last_comma:
        comma = _behind_gap(text, parent.members[position - 1][2].end)
        head = head[:comma] + head[comma + 1 :]
    return head + text[end:]
