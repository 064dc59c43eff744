"""Reads one file: parse it once, walk the tree once with one query, and tell what the file says by itself."""

from __future__ import annotations

from smara.codegraph.definitions import DefinitionReader
from smara.codegraph.grammars import captures, parse
from smara.codegraph.hiding import hidden_names
from smara.codegraph.imports import read_imports
from smara.codegraph.macros import without_macros
from smara.codegraph.models import FileFacts, Language
from smara.codegraph.routes import read_routes
from smara.codegraph.source import Source, readable
from smara.codegraph.uses import read_bindings, read_references


def extract(path: str, data: bytes, language: Language) -> FileFacts:
    """Return what a file says by itself, as much of it as can be read.

    Any bytes are taken: what is no proper code yields fewer facts and ``has_errors``, never an error.
    Offsets are those of ``readable(data)``. Depends on nothing but the arguments.
    """
    text = readable(data)
    root, is_whole = parse(language, without_macros(text) if language in ("c", "cpp") else text)
    source = Source.read(path, language, text, captures(language, root))
    reader = DefinitionReader(source)
    reader.read()
    imports = read_imports(source, reader.scopes, reader.definitions)
    references = read_references(source, reader.scopes, reader.definitions, imports)
    bindings = read_bindings(source, reader.scopes, reader.definitions)
    bindings += hidden_names(language, reader.definitions, imports, bindings)
    routes, answers = read_routes(reader, root)
    lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    return FileFacts(
        path, language, lines, (*reader.definitions, *routes), tuple(imports), (*references, *answers), tuple(bindings),
        package=_package(source), has_errors=root.has_error or not is_whole, doc=reader.doc,
    )  # fmt: skip


def _package(source: Source) -> str:
    """Return what the file says it belongs to."""
    spans = source.spans("package")
    return source.text(*spans[0]) if spans else ""
