"""Parse one file once and extract its facts with one query.

C and C++ macros that the grammar cannot read, such as ``class EXPORTED Slice {``, are blanked
first.
"""

from __future__ import annotations

import re

from smara.codegraph.models import FileFacts, Language
from smara.codegraph.parse.definitions import DefinitionReader
from smara.codegraph.parse.imports import read_imports
from smara.codegraph.parse.languages import captures, parse
from smara.codegraph.parse.references import hidden_names, read_bindings, read_references
from smara.codegraph.parse.routes import read_routes, route_pattern
from smara.codegraph.parse.source import SourceFile, readable

_BEFORE_A_NAME = re.compile(
    rb"\b(?:class|struct"
    rb"|union)\s+([A-Z][A-Z0-9_]{2,})(?:\([^()\n]*\))?(?=\s+[A-Za-z_][\w:]*\s*(?:final\s*)?[:{])"
)
_ANNOTATIONS = re.compile(
    rb"\b(?:[A-Z_]*GUARDED_BY|[A-Z_]*LOCKS?_(?:REQUIRED|EXCLUDED|RETURNED)|(?:SCOPED_)?LOCKABLE"
    rb"|(?:EXCLUSIVE|SHARED)_(?:TRY)?LOCK_FUNCTION|UNLOCK_FUNCTION"
    rb"|NO_THREAD_SAFETY_ANALYSIS)\b(?:\([^()\n]*\))?"
)
_HINTS = (b"GUARDED_BY", b"LOCKS_", b"LOCK_", b"LOCKABLE", b"NO_THREAD_SAFETY")


def without_macros(text: bytes) -> bytes:
    """The text with such macros blanked, of the same length."""
    if b"class" in text or b"struct" in text:
        text = _BEFORE_A_NAME.sub(_blank_the_name, text)
    if any(hint in text for hint in _HINTS):
        text = _ANNOTATIONS.sub(lambda found: b" " * len(found[0]), text)
    return text


def _blank_the_name(found: re.Match[bytes]) -> bytes:
    start = found.start(1) - found.start()
    return found[0][:start] + b" " * (len(found[0]) - start)


def extract(path: str, data: bytes, language: Language) -> FileFacts:
    """Return what a file says by itself, as much of it as can be read.

    Any bytes are taken: what is no proper code yields fewer facts and ``has_errors``, never an
    error. Offsets are those of ``readable(data)``.
    """
    text = readable(data)
    root, is_whole = parse(language, without_macros(text) if language in ("c", "cpp") else text)
    source = SourceFile.read(path, language, text, found=captures(language, root))
    reader = DefinitionReader(source)
    reader.read()
    imports = read_imports(source, reader.scopes, reader.definitions)
    references = read_references(source, reader.scopes, reader.definitions, imports=imports)
    bindings = read_bindings(source, reader.scopes, reader.definitions)
    bindings += hidden_names(language, reader.definitions, imports, bindings=bindings)
    routes, answers = read_routes(reader, root, route_pattern(language, text))
    return FileFacts(
        path,
        language,
        _count_lines(text),
        definitions=(*reader.definitions, *routes),
        imports=tuple(imports),
        references=(*references, *answers),
        bindings=tuple(bindings),
        package=_package(source),
        has_errors=root.has_error or not is_whole,
        doc=reader.doc,
    )


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _package(source: SourceFile) -> str:
    """Return what the file says it belongs to."""
    spans = source.spans("package")
    return source.text(*spans[0]) if spans else ""
