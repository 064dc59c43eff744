"""Define what the full-text indexes hold: messages, records and vocabulary.

Each engine has three indexes. `FullText` matches message chunks by term, inside a scope.
`RecordIndex` does the same for small records of every other kind. `Words` lists the distinct
words of a project, for completion and partial names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from smara.core.startup.record import dataclass
from smara.database.session import Row

CHUNK_BITS = 16
MAX_CHUNKS = 1 << CHUNK_BITS


def row_of(no: int, chunk: int = 0) -> int:
    """The row number of one chunk of a record.

    >>> row_of(3, 2), no_of(row_of(3, 2))
    (196610, 3)
    """
    return no << CHUNK_BITS | chunk


def no_of(row: int) -> int:
    """The record a row belongs to."""
    return row >> CHUNK_BITS


class IndexRow(NamedTuple):
    """One row on its way into the index."""

    row: int
    prose: str
    code: str
    project_no: int
    thread_no: int
    resource_id: str
    role: str


@dataclass(frozen=True, slots=True)
class Within:
    """The rows a search may find: a project, narrowed by filters."""

    project_no: int
    thread_no: int | None = None
    resource_id: str | None = None
    roles: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    task_id: str | None = None

    is_only_project: bool = False

    @property
    def needs_records(self) -> bool:
        """True if the messages themselves must be read."""
        return self.since_ms is not None or self.until_ms is not None or self.task_id is not None

    @property
    def is_filtered(self) -> bool:
        """True if more than the project is filtered."""
        return (
            self.needs_records
            or self.thread_no is not None
            or self.resource_id is not None
            or bool(self.roles)
        )


class Matching(NamedTuple):
    """SQL pieces joining index rows ``f`` and messages ``m``.

    (A subquery instead of a join costs SQLite as much again as the match itself.)
    """

    row: str
    source: str
    where: str
    order: str
    values: tuple[object, ...]


def record_conditions(within: Within, *more: tuple[str, object]) -> tuple[list[str], list[object]]:
    """Conditions on records ``m`` beyond the index, and some more."""
    every = (
        ("m.created_at >= ?", within.since_ms),
        ("m.created_at < ?", within.until_ms),
        ("m.task_id = ?", within.task_id),
        *more,
    )
    given = [(condition, value) for condition, value in every if value is not None]
    return [condition for condition, _ in given], [value for _, value in given]


def join_terms(conditions: Iterable[str]) -> str:
    """Conditions as the tail of a ``WHERE``."""
    return "".join(f" AND {condition}" for condition in conditions)


RecordKind = Literal[
    "task", "observation", "memory", "working", "code", "commit", "decision", "item"
]
KIND_CODES: dict[RecordKind, int] = {
    "task": 1,
    "observation": 2,
    "memory": 3,
    "working": 4,
    "code": 5,
    "commit": 6,
    "decision": 7,
    "item": 8,
}
"""The number that stands for a kind in a row number."""
KINDS: dict[int, RecordKind] = {code: kind for kind, code in KIND_CODES.items()}
PIECE_BITS = 8
KIND_BITS = 8
MAX_PIECES = 1 << PIECE_BITS


class RecordTerms(NamedTuple):
    """A record as terms: its head, and its body in pieces."""

    head: str
    bodies: tuple[str, ...]


def terms_of(head: str, body: str) -> RecordTerms:
    """The terms of a record's texts."""
    from smara.core.text import analyze, analyze_chunks  # not needed by those who only open a store

    title, *bodies = (
        f"{piece.prose} {piece.code}".strip()
        for piece in (analyze(head), *analyze_chunks(body)[:MAX_PIECES])
    )
    return RecordTerms(title, tuple(bodies))


def record_row(kind: RecordKind, no: int, piece: int = 0) -> int:
    """The row number of one piece of a record.

    >>> record_kind(record_row("task", 7, 3)), record_no(record_row("task", 7, 3))
    ('task', 7)
    """
    return (no << KIND_BITS | KIND_CODES[kind]) << PIECE_BITS | piece


def record_no(row: int) -> int:
    """The number of the record a row belongs to."""
    return row >> (PIECE_BITS + KIND_BITS)


def record_kind(row: int) -> RecordKind:
    """The kind of the record a row belongs to."""
    return KINDS[row >> PIECE_BITS & (1 << KIND_BITS) - 1]


def index_table(kind: RecordKind) -> str:
    """Return the table of a kind: code has its own."""
    return "code_index" if kind == "code" else "record_index"


def trigrams(word: str) -> list[str]:
    """The distinct runs of three characters in a word.

    >>> trigrams("banana")
    ['ban', 'ana', 'nan']
    """
    return list(dict.fromkeys(word[i : i + 3] for i in range(len(word) - 2)))


def shortest(rows: Sequence[Row], limit: int) -> list[str]:
    """The words of one-column rows, shortest first."""
    return sorted({row[0] for row in rows}, key=lambda word: (len(word), word))[:limit]


def after(prefix: str) -> str:
    """The smallest text greater than every text that starts with ``prefix``."""
    return (
        prefix[:-1] + chr(ord(prefix[-1]) + 1)
        if ord(prefix[-1]) < 0xD7FF
        else prefix + "\U0010ffff"
    )
