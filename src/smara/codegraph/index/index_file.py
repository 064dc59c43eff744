"""Turn one file's bytes into everything the index stores of it.

Pure: no database, and only the one file is read. It runs in worker processes, so that parsing,
redaction and text analysis use every core.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Container
from typing import NamedTuple

from smara.codegraph.codec import pack_facts
from smara.codegraph.index import files
from smara.codegraph.index.files import NotRead, TreeReader
from smara.codegraph.language import kind_of, language_of
from smara.codegraph.models import CodeChunk, FileFacts, FileKind, Language, SkipReason
from smara.core import log
from smara.core.escape import to_storable
from smara.core.paths import is_test_path

_RACY_NS = 2_000_000_000
_LOOKED_AT = 8_192
_LONG_LINE = 2_000
_MOST_CHUNKS = 4_000
_GENERATED = re.compile(
    rb"@generated\b|\bcode generated (?:by|from)\b"
    rb"|\b(?:auto-?generated|automatically generated|generated automatically)"
    rb"[^\n]{0,80}(?:do not (?:edit|modify)|by )|\bdo not (?:edit|modify)\b[^\n]{0,40}\bgenerated\b"
    rb"|\bgenerated\b[^\n]{0,60}\bdo not (?:edit|modify)\b",
    re.IGNORECASE,
)


ChunkKey = tuple[str, str, str, str]
BAD_FILE_ERRORS = (ValueError, IndexError, ArithmeticError, RecursionError, MemoryError)
"""What the content of a file can raise: it must not keep all others out of the index. Anything
else, such as a KeyError of a table, is a bug and ends the run.
"""


class FileRequest(NamedTuple):
    """A file to be read, and its last hash, if any."""

    path: str
    stored_hash: bytes = b""


class ReadyChunk(NamedTuple):
    """A chunk with the terms it is found by."""

    chunk: CodeChunk
    head: str
    bodies: tuple[str, ...]


class FileRecord(NamedTuple):
    """The result of reading one file.

    Without a skip and with the hash that was known, nothing else is filled in.
    """

    path: str
    size: int
    mtime_ns: int
    hash: bytes
    skip: SkipReason | None = None
    is_same: bool = False
    language: Language | None = None
    kind: FileKind = "code"
    lines: int = 0
    is_test: bool = False
    doc: str = ""
    facts: FileFacts | None = None
    """Without the names it uses: those are in ``uses``, packed."""
    uses: bytes = b""
    chunks: tuple[ReadyChunk, ...] = ()
    whole: FileFacts | None = None
    """All that the file says, for whoever makes its edges in the same process."""


def content_hash(data: bytes) -> bytes:
    """Return sixteen bytes that tell one content from another."""
    return hashlib.blake2b(data, digest_size=16).digest()


def work_on(
    reader: TreeReader,
    request: FileRequest,
    has_text: bool = True,
    stored: Container[ChunkKey] = frozenset(),
) -> FileRecord:
    """Read and take apart one file.

    Never raises for what a file holds; ``has_text`` asks for chunks too.

    Chunks that are ``stored`` already come without their terms: they keep those they
    have.
    """
    try:
        opened = reader.read(request.path, files.MOST_BYTES)
    except NotRead as error:
        return FileRecord(request.path, 0, 0, hash=b"", skip=error.reason)
    # A file saved again within the same tick of the clock would look unchanged; its time is not
    # trusted.
    mtime_ns = 0 if time.time_ns() - opened.mtime_ns < _RACY_NS else opened.mtime_ns
    digest = content_hash(opened.data)
    if digest == request.stored_hash:
        return FileRecord(request.path, opened.size, mtime_ns, hash=digest, is_same=True)
    try:
        work = taken_apart(request.path, opened.data, has_text, stored=stored)
    except BAD_FILE_ERRORS as error:
        log.warning("code.not_taken_apart", path=request.path, error=repr(error))
        work = FileRecord(request.path, opened.size, mtime_ns, hash=digest, skip="unreadable")
    return work._replace(size=opened.size, mtime_ns=mtime_ns, hash=digest)


def taken_apart(
    path: str,
    data: bytes,
    has_text: bool = True,
    stored: Container[ChunkKey] = frozenset(),
) -> FileRecord:
    """Return what the content of a file says."""
    empty = FileRecord(path, len(data), 0, hash=b"")
    text = decoded(data)
    if text is None:
        return empty._replace(skip="binary")
    first_line = data[:200].split(b"\n", 1)[0]
    language = language_of(path, data)
    kind = "code" if language is not None else kind_of(path)
    if kind not in ("code", "prose", "data"):
        if not first_line.startswith(b"#!"):
            return empty._replace(skip="unknown")
        kind = "code"
    if len(data) > 4_096:
        lines = text.count("\n") + 1
        longest = max(map(len, text.split("\n")))
        if longest > _LONG_LINE and (len(text) / lines > 300 or longest > len(text) // 2):
            return empty._replace(skip="minified")
    if kind == "code" and _GENERATED.search(b"\n".join(data[:2_000].split(b"\n", 12)[:12])):
        return empty._replace(skip="generated")
    facts = None
    if language is not None:
        from smara.codegraph.parse.extract import extract

        facts = extract(path, text.encode("utf-8", "replace"), language)
    safe_text, safe_facts, doc = _without_secrets(path, text, facts, has_text=has_text)
    ready: tuple[ReadyChunk, ...] = ()
    if has_text:
        from smara.codegraph.parse.chunks import chunk_file, chunk_terms

        ready = tuple(
            ReadyChunk(chunk, "", ())
            if chunk_key(chunk) in stored
            else ReadyChunk(chunk, *chunk_terms(path, chunk.name, chunk.prefix, text=chunk.text))
            for chunk in chunk_file(safe_facts, path, safe_text)[:_MOST_CHUNKS]
        )
    # Other files may ask of this one what its classes extend, and nothing else that it uses.
    bases = tuple(e for e in safe_facts.references if e.kind == "inherits") if safe_facts else ()
    return empty._replace(
        language=language,
        kind=kind,
        lines=text.count("\n") + (not text.endswith("\n") and text != ""),
        is_test=is_test_path(path),
        doc=doc,
        facts=None if safe_facts is None else safe_facts._replace(references=bases),
        uses=b"" if safe_facts is None else pack_facts(safe_facts),
        chunks=ready,
        whole=safe_facts,
    )


def decoded(data: bytes) -> str | None:
    """Return a file's text, or ``None`` if it is binary."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
        return None if "\x00" in text[:_LOOKED_AT] else text
    if b"\x00" in data[:_LOOKED_AT]:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    # Most texts in an old encoding are ASCII but for a few letters; a binary file is nothing of the
    # kind.
    strange = sum(1 for sign in text[:_LOOKED_AT] if sign < " " and sign not in "\t\n\r\f\x0b\x1b")
    return None if strange > len(text[:_LOOKED_AT]) // 100 else text


def _without_secrets(
    path: str, text: str, facts: FileFacts | None, has_text: bool
) -> tuple[str, FileFacts | None, str]:
    """Return the text and the facts without any secret, lines kept where they are; and what the
    file says of itself.
    """
    from smara.secrets import redact
    from smara.secrets.redact import scan

    doc = _first_line(path, text)
    # Where the text is not kept, what is kept of it is looked through alone.
    stored = [doc]
    if facts is not None:
        stored += [each.signature for each in facts.definitions]
        stored += [each.doc for each in facts.definitions if each.doc]
        stored += [each.module for each in facts.imports]
    findings = scan(text) if has_text or scan("\n".join(stored)) else []
    if not findings:
        return text, facts, doc
    pieces: list[str] = []
    position = 0
    for finding in findings:
        hidden = text[finding.start : finding.end]
        # A key over several lines must leave as many: everything below would be told of the wrong
        # line.
        pieces += (text[position : finding.start], finding.placeholder, "\n" * hidden.count("\n"))
        position = finding.end
    safe = "".join([*pieces, text[position:]])
    if facts is not None:
        facts = facts._replace(
            definitions=tuple(
                each._replace(signature=redact(each.signature).text, doc=redact(each.doc).text)
                for each in facts.definitions
            ),
            imports=tuple(each._replace(module=redact(each.module).text) for each in facts.imports),
        )
    return safe, facts, _first_line(path, safe)


def _first_line(path: str, text: str) -> str:
    from smara.codegraph.parse.chunks import first_words

    return first_words(path, text).split("\n", 1)[0][:300]


def chunk_key(chunk: CodeChunk) -> ChunkKey:
    """Return what a chunk is known again by.

    All of it but its place, as it is stored.
    """
    return (
        str(chunk.kind),
        to_storable(chunk.name),
        to_storable(chunk.prefix),
        to_storable(chunk.text),
    )
