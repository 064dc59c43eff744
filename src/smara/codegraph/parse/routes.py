"""Find web routes: which function answers which path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smara.codegraph.language import LanguageSpec
from smara.codegraph.models import Definition, Reference
from smara.codegraph.parse.definitions import LONGEST_NAME, LONGEST_SIGNATURE, DefinitionReader
from smara.codegraph.parse.references import LONGEST_USE, split_use
from smara.codegraph.parse.source import body_hash

if TYPE_CHECKING:
    from tree_sitter import Node


_ANY_VERB = frozenset({"ROUTE", "API_ROUTE", "ALL", "HANDLE", "HANDLEFUNC", "REQUEST"})
_CALLS = frozenset({"call", "call_expression"})
_MARKS = frozenset({"decorator", "annotation", "attribute_item"})
_HANDLERS = frozenset(
    {"identifier", "attribute", "member_expression", "selector_expression", "scoped_identifier"}
)
_INLINE = frozenset({"arrow_function", "function_expression", "func_literal"})
_MOST_CALLS_INSIDE = 50
_MOST_STEPS = 6
MOST_ROUTES = 2_000


def route_pattern(spec: LanguageSpec, data: bytes) -> re.Pattern[bytes] | None:
    """Return what a route of a file would look like, ``None`` where there can be none."""
    for marks, pattern in spec.routes:
        if any(mark in data for mark in marks):
            return pattern
    return None


def read_routes(
    reader: DefinitionReader, root: Node, pattern: re.Pattern[bytes] | None
) -> tuple[list[Definition], list[Reference]]:
    """Return the routes of a file, to be added after its definitions, and what answers each of
    them.

    A decorator's route is answered by the function below it, a call's by what the call is given.
    """
    routes: list[Definition] = []
    answers: list[Reference] = []
    for found in pattern.finditer(reader.source.data) if pattern else ():
        holder = _holder(root, found.start() + 1)
        if holder is None or len(routes) >= MOST_ROUTES:
            continue
        place = len(reader.definitions) + len(routes)
        routes.append(_route(reader, found, holder))
        answers.extend(_answers(reader, holder, routes[-1], place=place))
    return routes, answers


def _holder(root: Node, offset: int) -> Node | None:
    """Return the call or the decorator around an offset, ``None`` where the text only looks like
    one.
    """
    node = root.named_descendant_for_byte_range(offset, offset + 1)
    call = None
    for _ in range(_MOST_STEPS):
        if node is None or "string" in node.type or "comment" in node.type:
            break
        if node.type in _MARKS:
            return node
        if node.type in _CALLS and call is None:
            call = node
        node = node.parent
    return call


def _route(reader: DefinitionReader, found: re.Match[bytes], holder: Node) -> Definition:
    source = reader.source
    groups = found.groupdict()
    path = (groups.get("path") or groups.get("pattern") or b"").decode("utf-8", "replace")
    verb = (groups.get("verb") or b"").decode().upper()
    plain = "" if verb in _ANY_VERB else verb
    name = f"{plain} {path or '/'}".strip()[:LONGEST_NAME]
    start, end = holder.start_byte, holder.end_byte
    text = " ".join(source.text(start, min(end, start + LONGEST_SIGNATURE)).split())
    return Definition(
        "route",
        name,
        name,
        first_line=source.line(start),
        last_line=source.line(end - 1),
        first_byte=start,
        last_byte=end,
        parent=-1,
        signature=text,
        doc="",
        body_hash=body_hash(source.bared[start:end]),
    )


def _answers(
    reader: DefinitionReader, holder: Node, route: Definition, place: int
) -> list[Reference]:
    if holder.type in _MARKS:
        # A decorator stands inside the definition that it decorates, an attribute likewise.
        scope = reader.scopes.at(holder.start_byte)
        if scope < 0:
            return []
        return [
            Reference(
                "calls",
                reader.definitions[scope].name,
                _class_of(reader, scope),
                line=route.first_line,
                scope=place,
            )
        ]
    arguments = holder.child_by_field_name("arguments")
    answers = []
    for argument in arguments.named_children[1:] if arguments else ():
        if argument.type in _INLINE:
            answers += _calls_inside(reader, argument, route, place=place)
            continue
        if argument.type in _CALLS:
            argument = argument.child_by_field_name("function") or argument
        if argument.type in _HANDLERS and argument.end_byte - argument.start_byte <= LONGEST_USE:
            text = reader.source.data[argument.start_byte : argument.end_byte]
            name, receiver = split_use(text, reader.source.spec.separators)
            if name == "as_view" and receiver:
                owner, _, name = receiver.rpartition(".")
                receiver = owner
            if name:
                answers.append(
                    Reference("calls", name, receiver, line=route.first_line, scope=place)
                )
    return answers


def _class_of(reader: DefinitionReader, place: int) -> str:
    """Return the class that a method has to be looked for in, nothing for a function."""
    parent = reader.definitions[place].parent
    return (
        reader.definitions[parent].qualname
        if parent >= 0 and reader.definitions[parent].kind == "class"
        else ""
    )


def _calls_inside(
    reader: DefinitionReader, handler: Node, route: Definition, place: int
) -> list[Reference]:
    """Return what a function calls that is written where the route is: nameless, it leaves its
    calls to the route.
    """
    source = reader.source
    calls: dict[tuple[str, str], Reference] = {}
    for start, end in source.spans("call"):
        if handler.start_byte <= start < handler.end_byte and end - start <= LONGEST_USE:
            name, receiver = split_use(source.data[start:end], source.spec.separators)
            if name and len(calls) < _MOST_CALLS_INSIDE:
                calls.setdefault(
                    (name, receiver),
                    Reference("calls", name, receiver, line=source.line(start), scope=place),
                )
    return list(calls.values())
