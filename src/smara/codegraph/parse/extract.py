"""Parse one file once and extract its facts with one query.

C and C++ macros that the grammar cannot read, such as ``class EXPORTED Slice {``, are blanked
first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.codegraph.models import FileFacts, Language, Reuse
from smara.codegraph.parse import incremental
from smara.codegraph.parse.definitions import DefinitionReader, Misplaced, ReusedDefinitions
from smara.codegraph.parse.imports import read_imports
from smara.codegraph.parse.incremental import units_of
from smara.codegraph.parse.languages import captures, parse
from smara.codegraph.parse.references import (
    hidden_names,
    known_names,
    read_bindings,
    read_references,
)
from smara.codegraph.parse.routes import MOST_ROUTES, read_routes, route_pattern
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


_ATTEMPTS = 3


def extract(
    path: str, data: bytes, language: Language, before: FileFacts | None = None
) -> FileFacts:
    """Return what a file says by itself, as much of it as can be read.

    Any bytes are taken: what is no proper code yields fewer facts and ``has_errors``, never an
    error. Offsets are those of ``readable(data)``. ``before`` is what an earlier text of the file
    said, in full: it saves reading what is still the same and changes nothing else.
    """
    text = readable(data)
    if before is not None and before.units and before.language == language:
        found = _spliced(path, text, before)
        if found is not None:
            return found
    root, is_whole = parse(language, without_macros(text) if language in ("c", "cpp") else text)
    source = SourceFile.read(path, language, text, found=captures(language, root))
    reader = DefinitionReader(source)
    reader.read()
    imports = read_imports(source, reader.scopes, reader.definitions)
    references = read_references(source, reader.scopes, reader.definitions, imports=imports)
    lending: set[int] = set()
    bindings = read_bindings(source, reader.scopes, reader.definitions, lending=lending)
    bindings += hidden_names(language, reader.definitions, imports, bindings=bindings)
    routes, answers = read_routes(reader, root, route_pattern(language, text))
    has_errors = root.has_error or not is_whole
    units = () if has_errors or language != "python" else units_of(reader, text, lending)
    return FileFacts(
        path,
        language,
        _count_lines(text),
        definitions=(*reader.definitions, *routes),
        imports=tuple(imports),
        references=(*references, *answers),
        bindings=tuple(bindings),
        package=_package(source),
        has_errors=has_errors,
        doc=reader.doc,
        size=len(text),
        units=units,
    )


def _spliced(path: str, text: bytes, before: FileFacts) -> FileFacts | None:
    """Return what a changed text says by reading what changed of it, ``None`` when all of it has to
    be read.
    """
    refused: set[int] = set()
    kept = incremental.found_again(before, text, refused)
    pattern = route_pattern(before.language, text)
    if pattern is not None and incremental.has_doubtful_routes(kept, text, before, pattern=pattern):
        return None
    for _ in range(_ATTEMPTS):
        if sum(each.end - each.first for each in kept) < len(text) // 4:
            return None
        found = _read_around(path, text, before, kept=kept, pattern=pattern)
        if not isinstance(found, list):
            return found
        refused.update(each.place for each in found)
        kept = incremental.found_again(before, text, refused)
    return None


def _read_around(
    path: str,
    text: bytes,
    before: FileFacts,
    kept: Sequence[ReusedDefinitions],
    pattern: re.Pattern[bytes] | None,
) -> FileFacts | list[ReusedDefinitions] | None:
    """Read a text around what is kept of it; or say what must not be kept, or ``None`` for a text
    with errors.
    """
    rest = incremental.without_kept(text, kept)
    root, is_whole = parse(before.language, rest)
    if root.has_error or not is_whole or not incremental.stand_alone(root, kept):
        return None
    block_ends = [each.end for each in kept for _ in range(each.blocks)]
    source = SourceFile.read(
        path, before.language, rest, found=captures(before.language, root), block_ends=block_ends
    )
    reader = DefinitionReader(source, kept)
    try:
        reader.read()
    except Misplaced as error:
        return [error.kept]
    moves = incremental.Moves(reader, before)
    imports = moves.imports(read_imports(source, reader.scopes, reader.definitions))
    known = known_names(reader.definitions, imports)
    doubtful = incremental.in_doubt(kept, text, known ^ known_names(before.plain, before.imports))
    if doubtful:
        return doubtful
    references = moves.references(
        read_references(source, reader.scopes, reader.definitions, imports=imports)
    )
    lending: set[int] = set()
    bindings = moves.bindings(
        read_bindings(source, reader.scopes, reader.definitions, lending=lending)
    )
    bindings += hidden_names(before.language, reader.definitions, imports, bindings=bindings)
    routes, answers = moves.routes(*read_routes(reader, root, pattern)) if pattern else ([], [])
    if len(routes) > MOST_ROUTES:
        return None
    return FileFacts(
        path,
        before.language,
        _count_lines(text),
        definitions=(*reader.definitions, *routes),
        imports=tuple(imports),
        references=(*references, *answers),
        bindings=tuple(bindings),
        package=_package(source),
        has_errors=False,
        doc=reader.doc,
        size=len(text),
        units=units_of(reader, text, lending, before=before.units),
        taken=tuple(
            Reuse(place, len(each.definitions), each.place, down=down)
            for each, place, down in reader.moved
        ),
    )


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _package(source: SourceFile) -> str:
    """Return what the file says it belongs to."""
    spans = source.spans("package")
    return source.text(*spans[0]) if spans else ""
