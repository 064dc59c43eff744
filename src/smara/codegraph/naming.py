"""What definitions are called and what is said about them, wherever a language puts it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smara.codegraph.source import Source

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_DOC = 160
_MOST_STEPS = 12
_WIDEST_GAP = 400
_DOC_MARKS = re.compile(r"^\s*(?:[rRbBuUfF]{0,2}(?:\"\"\"|'''|[\"'])|/\*+!?|//[/!]?|\*+(?!/)|#+!?)")
_NO_OWNERS = frozenset({"exports", "module", "this", "self", "window", "global", "globalThis"})


def first_doc_line(text: str) -> str:
    """Return the first line that says something in a docstring or a comment, without its marks."""
    for line in text.splitlines():
        said = _DOC_MARKS.sub("", line).strip().rstrip("\"'").removesuffix("*/").strip()
        if said and any(map(str.isalnum, said)):
            return said[:LONGEST_DOC]
    return ""


def outer_starts(source: Source) -> dict[int, int]:
    """Return where definitions begin when what stands before them counts: decorators, attributes,
    ``export``.
    """
    starts: dict[int, int] = {}
    for node in source.found.get("outer", ()):
        inner = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        if inner is None and node.named_child_count:
            inner = node.named_child(
                0 if node.type == "lexical_declaration" else node.named_child_count - 1
            )
        if inner is not None and inner.start_byte != node.start_byte:
            starts[inner.start_byte] = node.start_byte
    for node in source.found.get("before", ()):
        following = node.next_named_sibling
        if following is not None:
            starts[following.start_byte] = node.start_byte
    # What stands before may have something before it: ``export const f``, two attributes. Earlier
    # ones come first.
    for start in sorted(starts):
        starts[start] = starts.get(starts[start], starts[start])
    return starts


def name_node(node: Node) -> Node | None:
    """Return the node of a definition's name, following C's declarators down to it."""
    found = node.child_by_field_name("name")
    if found is not None:
        return found
    found = node.child_by_field_name("left")
    if found is not None:
        return found.child_by_field_name("property") or found
    found = node.child_by_field_name("property") or node.child_by_field_name("key")
    if found is not None:
        return found
    found = node.child_by_field_name("declarator")
    for _ in range(_MOST_STEPS):
        if found is None or found.type == "variable_declarator":
            return found.child_by_field_name("name") if found else None
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in ("reference_declarator", "parenthesized_declarator"):
            inner = found.named_child(0)
        if inner is None:
            return found
        found = inner
    return found


def assigned_name(owner: str, name: str) -> str:
    """Return what a function assigned to a property is called: ``Shop::open`` for
    ``Shop.prototype.open = …``.
    """
    owner = owner.removesuffix(".prototype")
    if owner == "module" and name == "exports":
        return "default"
    return f"{owner}::{name}" if owner.isidentifier() and owner not in _NO_OWNERS else name


def macro_title(text: str) -> str:
    """Return what a test macro calls its test: ``(Shop, Opens) {`` is ``Shop.Opens``."""
    return ".".join(
        part.strip(' "\n') for part in text.strip().removeprefix("(").partition(")")[0].split(",")
    )


def is_next_to(data: bytes, end: int, start: int) -> bool:
    """Say whether only blanks, and no empty line, stand between two offsets."""
    between = data[end:start]
    return len(between) < _WIDEST_GAP and not between.strip() and between.count(b"\n") <= 1


def without_parameters(text: str) -> str:
    """Return a type without its parameters: ``Shelf<'a, T>`` is ``Shelf``."""
    return text.partition("<")[0].strip()


def receiver_type(text: str) -> str:
    """Return the type in a Go receiver: ``(s *Shelf[T])`` is ``Shelf``."""
    return text.strip("() ").partition("[")[0].rpartition(" ")[2].lstrip("*")
