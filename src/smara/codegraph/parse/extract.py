"""Parse one file once and extract its facts with one query.

Grammars and queries are loaded on first use, with one parser for each thread.
"""

from __future__ import annotations

import importlib
import re
import threading
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING

from smara.codegraph.language import languages, query_file
from smara.codegraph.models import Definition, FileFacts, Import, Language, Reference
from smara.codegraph.parse.definitions import (
    LONGEST_NAME,
    LONGEST_SIGNATURE,
    DefinitionReader,
    Scopes,
)
from smara.codegraph.parse.references import (
    LONGEST_USE,
    hidden_names,
    read_bindings,
    read_references,
    split_use,
)
from smara.codegraph.parse.source import SourceFile, body_hash

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser, Query


DEEPEST_LEVEL = 2_000
"""Beyond 65,535 levels a search takes minutes; written code is not nested in two thousand."""
MOST_CHILDREN_OF_AN_ERROR = 10_000
"""The search looks at all children of an error for each of them; with 100,000 of them that takes a
minute.
"""
_PIECE = 16_384
_BASE_SECONDS = 1.0
_SECONDS_PER_BYTE = 2e-6
_HERE = threading.local()


@cache
def grammar(language: Language) -> Grammar:
    """Return the grammar of a language."""
    from tree_sitter import Language as Grammar

    module, function = languages()[language].grammar
    return Grammar(getattr(importlib.import_module(module), function)())


@cache
def query(language: Language) -> Query:
    """Return what is looked for in a language.

    All of it in one query, so that the tree is walked once.
    """
    from tree_sitter import Query

    files = map(query_file, languages()[language].queries)
    return Query(grammar(language), "".join(f.read_text(encoding="utf-8") for f in files if f))


def parse(language: Language, data: bytes) -> tuple[Node, bool]:
    """Return a text's tree and whether it covers all of it.

    Text that is no code at all can take time that grows with its square: 120 kB of ``a?b:`` read as
    Python take a minute. A text is therefore handed over piece by piece, and after a second (two
    more for each megabyte, fifteen times what code takes) it is said to have ended.
    """
    if len(data) <= _PIECE:
        return parser(language).parse(data).root_node, True
    deadline = thread_time() + _BASE_SECONDS + _SECONDS_PER_BYTE * len(data)
    end = len(data)

    def read(offset: int, _point: object) -> bytes:
        nonlocal end
        if thread_time() > deadline:
            end = min(end, offset)
        return data[offset : min(end, offset + _PIECE)]

    return parser(language).parse(read).root_node, end == len(data)


def parser(language: Language) -> Parser:
    """Return this thread's parser of a language.

    A parser must not be used by two threads at once.
    """
    from tree_sitter import Parser

    parsers: dict[Language, Parser] = _HERE.__dict__.setdefault("parsers", {})
    if language not in parsers:
        parsers[language] = Parser(grammar(language))
    return parsers[language]


def captures(language: Language, root: Node) -> dict[str, list[Node]]:
    """Return a query's captures under a node by name, unordered.

    Nothing in a hopeless tangle of errors.
    """
    from tree_sitter import QueryCursor

    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.is_error and node.child_count > MOST_CHILDREN_OF_AN_ERROR:
            return {}  # a search would not come back
        waiting.extend(child for child in node.children if child.has_error)
    cursor = QueryCursor(query(language))
    cursor.set_max_start_depth(DEEPEST_LEVEL)
    return cursor.captures(root)


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


def read_routes(
    reader: DefinitionReader, root: Node, pattern: re.Pattern[bytes] | None
) -> tuple[list[Definition], list[Reference]]:
    """Return a file's routes and what answers each of them.

    They are added after its definitions.

    A decorator's route is answered by the function below it, a call's by what the call is given.
    """
    routes: list[Definition] = []
    answers: list[Reference] = []
    source = reader.source
    for match in pattern.finditer(source.data) if pattern else ():
        if (holder := _holder(root, match.start() + 1)) is None or len(routes) >= MOST_ROUTES:
            continue
        groups = match.groupdict(b"")
        path = (groups.get("path") or groups.get("pattern", b"")).decode("utf-8", "replace")
        verb = groups.get("verb", b"").decode().upper()
        name = f"{'' if verb in _ANY_VERB else verb} {path or '/'}".strip()[:LONGEST_NAME]
        start, end = holder.start_byte, holder.end_byte
        route = Definition(
            "route",
            name,
            name,
            first_line=source.line(start),
            last_line=source.line(end - 1),
            first_byte=start,
            last_byte=end,
            parent=-1,
            signature=" ".join(source.text(start, min(end, start + LONGEST_SIGNATURE)).split()),
            doc="",
            body_hash=body_hash(source.bared[start:end]),
        )
        place = len(reader.definitions) + len(routes)
        routes.append(route)
        answers += _answers(reader, holder, route.first_line, place)
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


def _answers(reader: DefinitionReader, holder: Node, line: int, place: int) -> list[Reference]:
    source = reader.source
    if holder.type in _MARKS:
        # A decorator stands inside the definition that it decorates, an attribute likewise.
        scope = reader.scopes.at(holder.start_byte)
        if scope < 0:
            return []
        handler = reader.definitions[scope]
        above = reader.definitions[handler.parent] if handler.parent >= 0 else None
        owner = above.qualname if above is not None and above.kind == "class" else ""
        return [Reference("calls", handler.name, owner, line, scope=place)]
    arguments = holder.child_by_field_name("arguments")
    answers: list[Reference] = []
    for argument in arguments.named_children[1:] if arguments else ():
        called = argument.child_by_field_name("function") if argument.type in _CALLS else None
        inner = called or argument
        spans = [(inner.start_byte, inner.end_byte)] if inner.type in _HANDLERS else []
        if argument.type in _INLINE:
            # A function written where the route is has no name: its calls are the route's.
            within = range(argument.start_byte, argument.end_byte)
            spans = [span for span in source.spans("call") if span[0] in within]
        calls: dict[tuple[str, str], Reference] = {}
        for start, end in spans:
            if end - start <= LONGEST_USE and len(calls) < _MOST_CALLS_INSIDE:
                name, receiver = split_use(source.data[start:end], source.spec.separators)
                if name == "as_view" and receiver:
                    receiver, _, name = receiver.rpartition(".")
                at = source.line(start) if argument.type in _INLINE else line
                if name:
                    reference = Reference("calls", name, receiver, at, scope=place)
                    calls.setdefault((name, receiver), reference)
        answers += calls.values()
    return answers


LONGEST_STATEMENT = 65_536


def extract(path: str, text: bytes, language: Language) -> FileFacts:
    """Return a file's own facts, as far as it can be parsed.

    Any UTF-8 without NUL is taken: what is no proper code yields fewer facts and ``has_errors``,
    never an error.
    """
    spec = languages()[language]
    root, is_whole = parse(language, spec.prepare(text) if spec.prepare else text)
    source = SourceFile.read(path, spec, text, found=captures(language, root))
    reader = DefinitionReader(source)
    reader.read()
    imports = read_imports(source, reader.scopes, reader.definitions)
    references = read_references(source, reader.scopes, reader.definitions, imports=imports)
    bindings = read_bindings(source, reader.scopes, reader.definitions)
    bindings += hidden_names(spec, reader.definitions, imports, bindings=bindings)
    packages = source.spans("package")
    pattern = next((each for marks, each in spec.routes if any(m in text for m in marks)), None)
    routes, answers = read_routes(reader, root, pattern)
    return FileFacts(
        path,
        language,
        text.count(b"\n") + (not text.endswith(b"\n") and bool(text)),
        definitions=(*reader.definitions, *routes),
        imports=tuple(imports),
        references=(*references, *answers),
        bindings=tuple(bindings),
        package=source.text(*packages[0]) if packages else "",
        has_errors=root.has_error or not is_whole,
    )


def read_imports(source: SourceFile, scopes: Scopes, definitions: list[Definition]) -> list[Import]:
    """Return one import for each imported name, in order."""
    imports: list[Import] = []
    for node in sorted(source.found.get("import", ()), key=lambda node: node.start_byte):
        start, end = node.start_byte, min(node.end_byte, node.start_byte + LONGEST_STATEMENT)
        scope = scopes.at(start)
        while scope >= 0 and definitions[scope].kind == "constant":
            scope = definitions[scope].parent
        line = source.line(start)
        statement = source.spec.read_imports(source.text(start, end))
        imports += [
            Import(module, name, alias, level=level, line=line, scope=scope, is_export=is_export)
            for module, name, alias, level, is_export in statement
        ]
    for node in source.found.get("exported", ()):
        name, line = source.text(node.start_byte, node.end_byte), source.line(node.start_byte)
        imports.append(Import("", name, "default", level=0, line=line, is_export=True))
    return imports
