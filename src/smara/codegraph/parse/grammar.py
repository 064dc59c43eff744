"""Load grammars and queries, parse a text, and run a query over its tree.

All of it is loaded on first use, with one parser for each thread.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING

from smara.codegraph.language import languages, query_file
from smara.codegraph.models import Language

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser, Query


DEEPEST_LEVEL = 2_000
"""Beyond 65,535 levels a search takes minutes; nobody writes code nested in two thousand."""
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
    """Return what is looked for in a language: all of it in one query, so that the tree is walked
    once.
    """
    from tree_sitter import Query

    files = map(query_file, languages()[language].queries)
    return Query(grammar(language), "".join(f.read_text(encoding="utf-8") for f in files if f))


def parse(language: Language, data: bytes) -> tuple[Node, bool]:
    """Return the tree of a text and whether all of the text is in it.

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
        if offset >= end:
            return b""
        if thread_time() > deadline:
            end = offset
            return b""
        return data[offset : offset + _PIECE]

    return parser(language).parse(read).root_node, end == len(data)


def parser(language: Language) -> Parser:
    """Return this thread's parser of a language; a parser must not be used by two threads at
    once.
    """
    from tree_sitter import Parser

    parsers: dict[Language, Parser] = _HERE.__dict__.setdefault("parsers", {})
    found = parsers.get(language)
    if found is None:
        found = parsers[language] = Parser(grammar(language))
    return found


def captures(language: Language, root: Node) -> dict[str, list[Node]]:
    """Return what the query finds under a node, by name and in no order; nothing in a hopeless
    tangle of errors.
    """
    from tree_sitter import QueryCursor

    if root.has_error and _is_hopeless(root):
        return {}
    cursor = QueryCursor(query(language))
    cursor.set_max_start_depth(DEEPEST_LEVEL)
    return cursor.captures(root)


def _is_hopeless(root: Node) -> bool:
    """Say whether an error under a node has so many children that a search would not come back."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error and node.child_count > MOST_CHILDREN_OF_AN_ERROR:
            return True
        waiting.extend(child for child in node.children if child.has_error)
    return False
