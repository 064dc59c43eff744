"""The rows of the code's tables, and what they become."""

from __future__ import annotations

from typing import NamedTuple

from smara.codegraph.models import CodeFile, Node
from smara.core.storable import from_storable
from smara.database.database import Row


class TreeRow(NamedTuple):
    """A tree as its row says it is. ``counts`` is JSON."""

    no: int
    root: str
    branch: str | None
    head: str | None
    state: str
    revision: int
    version: int
    started_at: int
    finished_at: int | None
    counts: str


class FileRow(NamedTuple):
    """What has to be known of a file to see whether it changed."""

    no: int
    path: str
    hash: bytes
    size: int
    mtime_ns: int
    is_stale: bool
    revision: int
    skip: str | None


class NodeRow(NamedTuple):
    """A node as it is written; ``ordinal`` tells nodes of one kind and name in a file apart."""

    no: int
    file_no: int
    kind: str
    name: str
    qualname: str
    ordinal: int
    parent_no: int | None
    first_line: int
    last_line: int
    body_hash: bytes
    sketch: bytes
    signature: str
    doc: str


class ChunkRow(NamedTuple):
    """A chunk as it is written, all of its texts redacted and storable."""

    no: int
    file_no: int
    node_no: int | None
    kind: str
    name: str
    first_line: int
    last_line: int
    prefix: str
    text: str


def code_file(row: Row) -> CodeFile:
    no, path, language, kind, hash_, size, mtime_ns, lines, is_test, stale_at, indexed_at = row
    return CodeFile(
        no,
        path,
        language,
        kind=kind,
        hash=bytes(hash_),
        size=size,
        mtime_ns=mtime_ns,
        lines=lines,
        is_test=bool(is_test),
        stale_at=stale_at,
        indexed_at=indexed_at,
    )


def node_row(row: Row) -> NodeRow:
    (
        no,
        file_no,
        kind,
        name,
        qualname,
        ordinal,
        parent_no,
        first,
        last,
        body_hash,
        sketch,
        signature,
        doc,
    ) = row
    return NodeRow(
        no,
        file_no,
        kind,
        name=name,
        qualname=qualname,
        ordinal=ordinal,
        parent_no=parent_no,
        first_line=first,
        last_line=last,
        body_hash=bytes(body_hash),
        sketch=bytes(sketch),
        signature=signature,
        doc=doc,
    )


def node(row: Row) -> Node:
    no, kind, name, qualname, path, first, last, parent_no, signature, doc, body_hash, is_stale = (
        row
    )
    return Node(
        no,
        kind,
        from_storable(name),
        qualname=from_storable(qualname),
        path=path,
        first_line=first,
        last_line=last,
        parent_no=parent_no,
        signature=from_storable(signature),
        doc=from_storable(doc),
        body_hash=bytes(body_hash),
        is_stale=bool(is_stale),
    )
