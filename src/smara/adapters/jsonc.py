"""Edit JSON with comments as text, preserving everything else.

A reader notes where every value begins and ends; a change is a few splices. Example,
appending 2 to the list of ``{"a": [1 // one\\n]}``: a comma is put right after the ``1``,
the new element on a line of its own before the bracket, and the comment stays in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smara.errors import InvalidInputError, SmaraError

_SPACE = " \t\r\n\ufeff"
_DEEPEST = 200


@dataclass(slots=True)
class JsoncNode:
    """A value in a text, with its place and its members."""

    start: int
    end: int
    value: Any
    members: list[tuple[str, int, JsoncNode]] = field(default_factory=list)
    """Of an object: name, where the name begins, value. Of a list: an empty name, and where the
    element begins.
    """
    has_last_comma: bool = False

    def member(self, name: str) -> JsoncNode | None:
        """Return the member of a name; the last one of several."""
        return next((node for key, _, node in reversed(self.members) if key == name), None)


class _JsoncReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> JsoncNode:
        self.skip()
        node = self.value(0)
        self.skip()
        if self.at < len(self.text):
            raise self.wrong("the end")
        return node

    def skip(self) -> None:
        text, size = self.text, len(self.text)
        while self.at < size:
            if text[self.at] in _SPACE:
                self.at += 1
            elif text.startswith("//", self.at):
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end + 1
            elif text.startswith("/*", self.at):
                end = text.find("*/", self.at + 2)
                if end < 0:
                    raise self.wrong("the end of a comment")
                self.at = end + 2
            else:
                return

    def value(self, depth: int) -> JsoncNode:
        if depth > _DEEPEST:
            raise self.wrong("fewer brackets inside each other")
        opening = self.text[self.at : self.at + 1]
        if opening == "{":
            return self.container(depth, "}")
        if opening == "[":
            return self.container(depth, "]")
        start = self.at
        if opening == '"':
            return JsoncNode(
                start, self.string_end(), json.loads(self.text[start : self.at], strict=False)
            )
        while self.at < len(self.text) and self.text[self.at] not in ",]}/ \t\r\n":
            self.at += 1
        try:
            return JsoncNode(start, self.at, json.loads(self.text[start : self.at]))
        except ValueError:
            self.at = start
            raise self.wrong("a value") from None

    def string_end(self) -> int:
        at = self.at + 1
        while at < len(self.text) and self.text[at] != '"':
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            raise self.wrong("the end of a text")
        self.at = at + 1
        return self.at

    def container(self, depth: int, closing: str) -> JsoncNode:
        node = JsoncNode(self.at, 0, {} if closing == "}" else [])
        self.at += 1
        self.skip()
        while not self.text.startswith(closing, self.at):
            if node.members and not node.has_last_comma:
                raise self.wrong(f"a comma or {closing}")
            self.entry(node, depth, closing)
            self.skip()
            node.has_last_comma = self.text.startswith(",", self.at)
            self.at += node.has_last_comma
            self.skip()
        self.at += 1
        node.end = self.at
        return node

    def entry(self, node: JsoncNode, depth: int, closing: str) -> None:
        start, name = self.at, ""
        if closing == "}":
            if not self.text.startswith('"', self.at):
                raise self.wrong("a name")
            self.string_end()
            name = json.loads(self.text[start : self.at], strict=False)
            self.skip()
            if not self.text.startswith(":", self.at):
                raise self.wrong("a colon")
            self.at += 1
            self.skip()
        value = self.value(depth + 1)
        node.members.append((name, start, value))
        if closing == "}":
            node.value[name] = value.value
        else:
            node.value.append(value.value)

    def wrong(self, expected: str) -> InvalidInputError:
        line = self.text.count("\n", 0, self.at) + 1
        return InvalidInputError(f"Line {line} is no JSON: {expected} is missing.", line=line)


def parse(text: str) -> Any:
    """Parse JSON with comments; an empty text is an empty object."""
    return read(text).value


def read_object(path: str) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            content = parse(file.read())
    except (OSError, ValueError, SmaraError):
        return {}
    return content if isinstance(content, dict) else {}


def read(text: str) -> JsoncNode:
    """The value of a text and where everything in it stands."""
    if not text.strip(_SPACE):
        return JsoncNode(len(text), len(text), {})
    return _JsoncReader(text).read()


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
    for path, value in _leaves(text, additions):
        text = _insert(text, path, value)
    return text


def _leaves(text: str, additions: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """Yield what is to be inserted, with its path.

    Paths are looked up again for each, since inserting moves the rest.
    """
    found: list[tuple[tuple[str, ...], Any]] = []

    def look(node: JsoncNode | None, path: tuple[str, ...], value: Any) -> None:
        here = node.value if node is not None else None
        if node is None or (isinstance(value, list) and isinstance(here, list)):
            found.append((path, value))
        elif isinstance(value, Mapping) and isinstance(here, dict):
            for name, each in value.items():
                look(node.member(name), (*path, name), each)

    root = read(text)
    if not isinstance(root.value, dict):
        raise InvalidInputError(
            "The file holds no JSON object, so nothing can be added to it. Look at it by hand."
        )
    look(root, (), additions)
    return found


def _insert(text: str, path: tuple[str, ...], value: Any) -> str:
    node, depth = read(text), 0
    for name in path:
        inner = node.member(name)
        if inner is None:
            return _append(text, node, depth, entries=[(name, value)])
        node, depth = inner, depth + 1
    return _append(text, node, depth, entries=[("", each) for each in value])


def _append(text: str, node: JsoncNode, depth: int, entries: list[tuple[str, Any]]) -> str:
    """Put entries at the end of an object or a list."""
    unit, newline = _indent(text), "\r\n" if "\r\n" in text else "\n"
    inside = text[node.start : node.end]
    is_flat = bool(node.members) and "\n" not in inside and "//" not in inside
    lead = " " if is_flat else newline + unit * (depth + 1)
    written = ("," + lead).join(
        (f"{json.dumps(name)}: " if name else "")
        + _dump(value, "" if is_flat else unit, newline, depth=depth + 1)
        for name, value in entries
    )
    close = node.end - 1
    kept_until = close - (
        len(text[node.start + 1 : close]) - len(text[node.start + 1 : close].rstrip(_SPACE))
    )
    tail = text[kept_until:close] if node.members or kept_until > node.start + 1 else ""
    if not is_flat and "\n" not in tail:
        tail = newline + unit * depth
    comma = "," if node.has_last_comma else ""
    text = text[:kept_until] + lead + written + comma + tail + text[close:]
    if node.members and not node.has_last_comma:
        last = node.members[-1][2].end
        text = text[:last] + "," + text[last:]
    return text


def _dump(value: Any, unit: str, newline: str, depth: int) -> str:
    if not unit:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


def _indent(text: str) -> str:
    """By what the text indents: what its first indented line begins with."""
    for line in text.splitlines():
        stripped = line.lstrip(" \t")
        if stripped and stripped != line and not stripped.startswith(("*", "//", "/*")):
            return line[: len(line) - len(stripped)]
    return "  "


def remove(text: str, is_ours: Callable[[tuple[str, ...], Any], bool]) -> str:
    """Return the text without our entries, and without what they leave empty.

    ``is_ours`` is asked for every member and element with its path; elements have ``[]`` in theirs.
    """
    while True:
        if not text.strip(_SPACE):
            return text
        found = _find(text, read(text), (), is_ours=is_ours)
        if found is None:
            return text
        parent, position = found
        text = _cut(text, parent, position)


_IsOurs = Callable[[tuple[str, ...], Any], bool]


def _find(
    text: str, node: JsoncNode, path: tuple[str, ...], is_ours: _IsOurs
) -> tuple[JsoncNode, int] | None:
    for position, (name, start, inner) in enumerate(node.members):
        here = (*path, name or "[]")
        if is_ours(here, inner.value):
            return node, position
        found = _find(text, inner, here, is_ours=is_ours)
        if found is not None:
            # What held ours and nothing else goes with it; a comment is something else.
            is_left_empty = (
                found[0] is inner
                and _holds_one(text, inner)
                and "/" not in text[start : inner.start]
            )
            return (node, position) if is_left_empty else found
    return None


def _holds_one(text: str, node: JsoncNode) -> bool:
    """Whether nothing but one entry stands between the brackets, not even a comment."""
    if len(node.members) != 1:
        return False
    _, start, inner = node.members[0]
    around = text[node.start + 1 : start] + text[inner.end : node.end - 1]
    return not around.replace(",", "").strip(_SPACE)


def _cut(text: str, parent: JsoncNode, position: int) -> str:
    _, start, node = parent.members[position]
    if position + 1 < len(parent.members):
        return text[:start] + text[_comma_after(text, node.end) + 1 :].lstrip(_SPACE)
    end = _comma_after(text, node.end) + 1 if parent.has_last_comma else node.end
    head = text[:start].rstrip(_SPACE)
    if "\n" in text[len(head) : start] and not text[end:].lstrip(" \t").startswith(("\n", "\r")):
        head += "\n"  # a comment may end the line before, and would swallow what follows
    if position and not parent.has_last_comma:
        comma = _comma_after(text, parent.members[position - 1][2].end)
        head = head[:comma] + head[comma + 1 :]
    return head + text[end:]


def _comma_after(text: str, at: int) -> int:
    """Where the comma stands that follows a value, comments in between or not."""
    reader = _JsoncReader(text)
    reader.at = at
    reader.skip()
    return reader.at
