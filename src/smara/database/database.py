"""Define what a room may ask of either database.

A `Session` runs statements inside a transaction; a `Database` opens sessions and offers
the text and vector indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from smara.database.session import Row as Row
from smara.database.session import Session as Session

if TYPE_CHECKING:
    from smara.database.fulltext import FullText, RecordIndex, Words
    from smara.database.vectors import Vectors


DatabaseKind = Literal["sqlite", "postgres"]


class Database(Protocol):
    """One open database."""

    kind: DatabaseKind
    fulltext: FullText
    words: Words
    records: RecordIndex
    vectors: Vectors
    warnings: list[str]
    on_write: Callable[[], object] | None
    """Called after each committed write, but those of what can be made again. Must be quick and
    never raise.
    """

    def read(self, deadline_seconds: float | None = None) -> AbstractContextManager[Session]:
        """A connection for reading; sees everything committed.

        A statement that runs past the deadline is stopped with ``DeadlineError``.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Session]:
        """Open a read connection that sees one moment."""
        ...

    def write(self, is_derived: bool = False) -> AbstractContextManager[Session]:
        """One transaction; leaving the block commits, an exception undoes everything.

        ``is_derived`` says that what is written can be made again: it is as atomic as any
        other write, but the disk is not waited for.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Return engine, version, size and settings of this database."""
        ...

    def integrity(self) -> list[str]:
        """Return what the database's own full check finds wrong."""
        ...

    def shrink_log(self) -> bool:
        """Checkpoint a write-ahead log; ``False`` while it is in use."""
        ...

    def close_idle(self) -> None:
        """Close unused connections."""
        ...

    def vacuum(self) -> None:
        """Give back the room that nothing uses."""
        ...

    def close(self) -> None:
        """Close every connection; safe to call twice."""
        ...


T = TypeVar("T")
PART = 500
"""So many values are put into one statement."""


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """A long list in parts that fit into one statement."""
    for start in range(0, len(values), PART):
        yield values[start : start + PART]


def marks(count: int) -> str:
    """``?, ?, ?`` for an ``IN`` list of ``count`` values."""
    return ", ".join("?" * count)
