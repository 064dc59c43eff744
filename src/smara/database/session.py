"""Define the sessions of either database, and pieces of their statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

Row = tuple[Any, ...]
ColumnType = Literal["integer", "number", "string", "bytes", "other"]


class Column(NamedTuple):
    """A column of a table, as the catalog describes it."""

    name: str
    type: ColumnType
    is_required: bool


class Session(Protocol):
    """Runs statements on one connection."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; the number of rows it changed."""

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row of the answer, or ``None``."""

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows one by one, in constant memory; inside a snapshot."""


def number(session: Session, sql: str, values: Sequence[Any] = ()) -> int:
    """Return the one number of an answer; 0 without a row."""
    row = session.one(sql, values)
    return int(row[0]) if row else 0


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
