"""Read a file's definitions: place, parent, signature and body hash."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from smara.codegraph.codec import numbers_in
from smara.codegraph.models import Definition, NodeKind
from smara.codegraph.parse.source import (
    LONGEST_DOC,
    PASSED,
    SourceFile,
    body_hash,
    first_doc_line,
    name_node,
    outer_starts,
    sketch,
)
from smara.core.extract import shorten
from smara.core.paths import is_test_path
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node


LONGEST_SIGNATURE = 240
LONGEST_NAME = 200
_KINDS: dict[str, NodeKind] = {
    "class": "class", "function": "function", "method": "method", "module": "module",
    "default": "function",
    "case": "test", "constant": "constant", "field": "constant",
}  # fmt: skip
_IMPLEMENTATION = "implementation"
_NO_OWNERS = frozenset({"exports", "module", "this", "self", "window", "global", "globalThis"})
_LABELS = (*_KINDS, _IMPLEMENTATION)
_MOST_COMMENTS = 200
_WIDEST_GAP = 400
_DEEPEST = 50
"""Definitions nested deeper than this are no one's handwriting, and their full names would fill the
memory.
"""
_UNFINISHED = Definition(
    "function",
    "",
    "",
    first_line=0,
    last_line=0,
    first_byte=0,
    last_byte=0,
    parent=-1,
    signature="",
    doc="",
    body_hash=b"",
)
_CASES = regex(rb"(?:it|test|describe|context|suite|specify|bench|fit|xit)(?:\.[\w.]+)?")
_TEST_MACROS = frozenset(
    {"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TEST_CASE", "SCENARIO", "BOOST_AUTO_TEST_CASE"}
)


@dataclass(slots=True)
class Scopes:
    """A map from offsets to the definitions around them."""

    breaks: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def at(self, offset: int) -> int:
        """Return the innermost definition around an offset, -1 for none."""
        place = bisect_right(self.breaks, offset) - 1
        return self.owners[place] if place >= 0 else -1


class _Child(NamedTuple):
    """A definition inside another.

    It stands in the other's hash and sketch by its own.
    """

    first: int
    end: int
    first_line: int
    last_line: int
    digest: bytes
    sketch: bytes


@dataclass(slots=True)
class _OpenDefinition:
    """A definition, or an ``impl`` block, whose end has not been reached."""

    end: int
    place: int
    parent: int
    owner: str
    is_class: bool
    is_late: bool = False
    """The type that an ``impl`` block belongs to has not been met yet."""
    facts: tuple[Any, ...] | None = None
    """The fields of the definition up to its doc; an ``impl`` block has none."""
    name_start: int = 0
    name_end: int = 0
    children: list[_Child] = field(default_factory=list)


class DefinitionReader:
    """A reader of one file's definitions, in order."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.definitions: list[Definition] = []
        self.scopes = Scopes()
        self._open: list[_OpenDefinition] = []
        self._outer = outer_starts(source)
        self._in_test_file = is_test_path(source.path)
        self._comment_ends = [end for _, end in source.comments]
        self._by_name: dict[str, int] = {}
        self._seen: set[tuple[int, str]] = set()
        self._late: list[tuple[int, str]] = []
        self._macro_tests: set[int] = set()

    def read(self) -> None:
        """Fill ``definitions`` and ``scopes``."""
        found = self.source.found
        # Of several labels of one span the first holds.
        raws: dict[tuple[int, int], tuple[str, Node]] = {}
        for label in _LABELS:
            for node in found.get(label, ()):
                raws.setdefault((node.start_byte, -node.end_byte), (label, node))
        for (start, negative_end), (label, node) in sorted(raws.items(), key=itemgetter(0)):
            self._close(start)
            if label == _IMPLEMENTATION:
                self._add_implementation(node, start, -negative_end)
            else:
                self._add(label, node, start, -negative_end)
        self._close(len(self.source.data) + 1)
        # Give methods that stand outside of their class the parent that may have come after them.
        for place, owner in self._late:
            parent = self._by_name.get(owner, -1)
            if 0 <= parent != place and place < len(self.definitions):
                self.definitions[place] = self.definitions[place]._replace(parent=parent)
        # Each definition gets the first line of the string that its body begins with.
        source = self.source
        # In code that is half written a body may seem to begin several times; the first beginning
        # holds.
        for node in sorted(source.found.get("doc", ()), key=attrgetter("start_byte"), reverse=True):
            if (place := self.scopes.at(node.start_byte)) >= 0:
                end = min(node.end_byte, node.start_byte + 4 * LONGEST_DOC)
                line = first_doc_line(source.text(node.start_byte, end))
                self.definitions[place] = self.definitions[place]._replace(doc=line)

    def _close(self, offset: int) -> None:
        """Leave what ends before an offset."""
        opened, scopes = self._open, self.scopes
        while opened and opened[-1].end <= offset:
            left = opened.pop()
            around = opened[-1] if opened else None
            scopes.breaks.append(left.end)
            scopes.owners.append(around.place if around else -1)
            if left.facts is not None:
                child = self._finish(left, left.facts)
                if around is not None and around.facts is not None:
                    around.children.append(child)

    def _finish(self, left: _OpenDefinition, facts: tuple[Any, ...]) -> _Child:
        """Keep a definition whose inner ones are all known, and return it for the one around it.

        Inner definitions stand by their own hashes: a class of a thousand methods is read once, not
        once for itself and once for its methods.
        """
        kind, name, _, first_line, last_line, first, end, *_ = facts
        bared, hashes = self.source.bared, self.source.line_hashes
        # A comment behind the last statement counts into the span, and with it the mark of the
        # blocks that end there.
        if end > first and bared[end - 1] in PASSED:
            end = first + len(bared[first:end].rstrip(PASSED))
        pieces: list[bytes] = []
        lines: list[int] = []
        line, position = first_line, first
        own_name = _Child(left.name_start, left.name_end, 0, last_line=0, digest=b"", sketch=b"")
        for child in sorted([*left.children, own_name]):
            pieces += (bared[position : child.first], child.digest)
            position = max(position, child.end)
            if child.last_line:
                lines += hashes[line - 1 : child.first_line - 1]
                lines += numbers_in(child.sketch)
                line = max(line, child.last_line + 1)
        pieces.append(bared[position:end])
        if kind != "constant" or left.children:
            lines += hashes[line - 1 : last_line]
        digest = body_hash(b"".join(pieces), self.source.spec.ignores_trailing_commas)
        drawn = sketch(lines)
        self.definitions[left.place] = Definition._make((*facts, digest, drawn))
        text = f"{name}={digest.hex()}".encode()
        return _Child(first, end, first_line, last_line=last_line, digest=text, sketch=drawn)

    def _add_implementation(self, node: Node, start: int, end: int) -> None:
        """Enter a block that gives methods to a type defined elsewhere, such as Rust's ``impl``."""
        type_ = node.child_by_field_name("type")
        text = self.source.text(type_.start_byte, type_.end_byte) if type_ else ""
        name = text.partition("<")[0].strip()  # ``Shelf<'a, T>`` is ``Shelf``
        place = self._by_name.get(name, -1)
        around = self._open[-1] if self._open else None
        owner = f"{around.owner}.{name}" if around and around.owner else name
        inside = place if place >= 0 else around.place if around else -1
        self._open.append(
            _OpenDefinition(end, inside, place, owner=owner, is_class=True, is_late=place < 0)
        )
        self.scopes.breaks.append(start)
        self.scopes.owners.append(inside)

    def _add(self, label: str, node: Node, start: int, end: int) -> None:
        source, place = self.source, len(self.definitions)
        if (named := self._name(label, node)) is None or len(self._open) > _DEEPEST:
            return
        name, name_start, name_end = named
        owner, name, parent, in_class = self._owner(node, name, place)
        first = self._outer.get(start, start)
        kind, spec = _KINDS[label], source.spec
        if kind in ("function", "method"):
            is_named_so = self._in_test_file and spec.test_names and spec.test_names.match(name)
            head = source.data[first:name_start]
            if is_named_so or (spec.test_marks is not None and spec.test_marks.search(head)):
                kind = "test"
            elif in_class:
                kind = "method"
        kind = "test" if start in self._macro_tests else kind
        if kind == "constant":
            # Worth a node is the first of its name and, in a class, one written in capitals.
            if (label == "field" and not name.isupper()) or (parent, name) in self._seen:
                return
            self._seen.add((parent, name))
        qualname = f"{owner}.{name}" if owner else name
        first_line, last_line = source.line(first), source.line(end - 1 if end > first else first)
        facts = (
            kind,
            name,
            qualname,
            first_line,
            last_line,
            first,
            end,
            parent,
            self._signature(node, kind, start, end=end),
            "" if source.spec.has_docstrings else self._comment_before(first),
        )
        self.definitions.append(_UNFINISHED)
        if kind == "class":
            self._by_name.setdefault(name, place)
        self._open.append(
            _OpenDefinition(
                end,
                place,
                place,
                owner=qualname,
                is_class=kind == "class",
                facts=facts,
                name_start=name_start,
                name_end=name_end,
            )
        )
        self.scopes.breaks.append(first)
        self.scopes.owners.append(place)

    def _name(self, label: str, node: Node) -> tuple[str, int, int] | None:
        if label == "default":
            return "default", node.start_byte, node.start_byte
        if label == "case":
            # Return the title of a test written as a call: ``it("opens", () => …)``.
            called = node.child_by_field_name("function")
            arguments = node.child_by_field_name("arguments")
            title = arguments.named_child(0) if arguments else None
            if (
                called is None
                or title is None
                or not _CASES.fullmatch(self.source.data, called.start_byte, called.end_byte)
            ):
                return None
            text = self.source.text(title.start_byte, title.end_byte).strip("\"'`")
            return " ".join(text.split())[:LONGEST_NAME] or "test", title.start_byte, title.end_byte
        if (named := name_node(node)) is None:
            return None
        value = node.child_by_field_name("value") if label == "constant" else None
        if value is not None and self.source.data.startswith(b"require(", value.start_byte):
            return None  # it only names an imported module: ``const fs = require("fs")``
        start, end = named.start_byte, named.end_byte
        name = self.source.data[start:end].decode("utf-8", "replace")
        if named.type == "property_identifier" and node.type == "assignment_expression":
            # ``Shop.prototype.open = …`` is ``Shop::open``.
            owner = self.source.text(node.start_byte, start).strip(". ").removesuffix(".prototype")
            if owner == "module" and name == "exports":
                name = "default"
            elif owner.isidentifier() and owner not in _NO_OWNERS:
                name = f"{owner}::{name}"
        if name in _TEST_MACROS:
            # ``TEST(Shop, Opens) {`` is ``Shop.Opens``.
            inside = self.source.text(end, min(node.end_byte, end + LONGEST_NAME)).strip()
            parts = inside.removeprefix("(").partition(")")[0].split(",")
            self._macro_tests.add(node.start_byte)
            return ".".join(part.strip(' "\n') for part in parts) or name, start, end
        return (name[:LONGEST_NAME], start, end) if name else None

    def _owner(self, node: Node, name: str, place: int) -> tuple[str, str, int, bool]:
        """Return what a definition belongs to, its own last name, its parent's place, and whether
        that is a class.
        """
        around = self._open[-1] if self._open else None
        inside, parent, is_class = "", -1, False
        if around:
            inside, parent, is_class = around.owner, around.parent, around.is_class
        if around and around.is_late:
            self._late.append((place, around.owner.rpartition(".")[2]))
        if "::" in name:
            path, _, name = "".join(name.split()).removeprefix("::").rpartition("::")
            path = path.replace("::", ".").partition("<")[0].strip()
            self._late.append((place, path.rpartition(".")[2]))
            return f"{inside}.{path}" if inside else path, name, parent, True
        if node.type == self.source.spec.receiver_node:
            receiver = node.child_by_field_name("receiver")
            text = self.source.text(receiver.start_byte, receiver.end_byte) if receiver else ""
            # ``(s *Shelf[T])`` is a ``Shelf``.
            inside = text.strip("() ").partition("[")[0].rpartition(" ")[2].lstrip("*")
            self._late.append((place, inside))
            return inside, name, -1, True
        return inside, name, parent, is_class

    def _signature(self, node: Node, kind: NodeKind, start: int, end: int) -> str:
        """Return a definition up to its body, on one line."""
        body = None if kind == "constant" else node.child_by_field_name("body")
        if body is None and kind not in ("constant", "class"):
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            body = value.child_by_field_name("body") if value else None
        stop = body.start_byte if body else end
        if kind in ("constant", "test") and body is None:
            stop = self.source.data.find(b"\n", start, end) % (end + 1) or end
        elif kind == "class" and body is None and (opening := self.source.spec.class_opening):
            stop = self.source.data.find(opening, start, end) % (end + 1) or end
        written = self.source.code(start, min(stop, start + 4 * LONGEST_SIGNATURE))
        if b"\n" in written:
            written = b" ".join(written.split())
        text = written.decode("utf-8", "replace").rstrip(" :{;=")
        return shorten(text.removesuffix("=>").rstrip(), LONGEST_SIGNATURE)

    def _comment_before(self, start: int) -> str:
        """Return the first line of the comments that stand right above a definition."""
        source, comments = self.source, self.source.comments
        last = place = bisect_right(self._comment_ends, start) - 1
        above = start
        while place >= 0 and last - place < _MOST_COMMENTS:
            between = source.data[comments[place][1] : above]
            if len(between) >= _WIDEST_GAP or between.strip() or between.count(b"\n") > 1:
                break
            above = comments[place][0]
            place -= 1
        lines = (
            first_doc_line(source.text(begin, min(end, begin + 4 * LONGEST_DOC)))
            for begin, end in comments[place + 1 : last + 1]
        )
        return next(filter(None, lines), "")
