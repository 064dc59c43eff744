"""The frame that readers of transcripts share: lines in, records out, and what a reader remembers
of calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol, TypeVar

from smara.adapters.decoding import Entry, decode
from smara.adapters.reading import MAX_LINE_BYTES, read_lines
from smara.adapters.records import Counted, Progress, Record

_Value = TypeVar("_Value")
_MOST_CALLS = 10_000


class Reader(Protocol):
    """What makes records of the lines of one file."""

    def take(self, entry: Entry) -> Iterator[Record]:
        """The records that a line gives, or that it settles."""
        ...

    def finish(self) -> Iterator[Record]:
        """What was held back until the end of the file."""
        ...


def read_with(
    reader: Reader,
    path: str | os.PathLike[str],
    progress: Progress | None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """The records of a file, streaming: for each line a message, or a reason why it is none."""
    for line in read_lines(path, progress, max_line_bytes=max_line_bytes):
        entry = decode(line)
        if isinstance(entry, Counted):
            yield entry
        else:
            yield from reader.take(entry)
    yield from reader.finish()


class Recent(dict[str, _Value]):
    """What is known of the last calls by their id: a file may hold any number, and results come
    soon after.
    """

    def __setitem__(self, call_id: str, value: _Value) -> None:
        if call_id not in self and len(self) >= _MOST_CALLS:
            del self[next(iter(self))]
        super().__setitem__(call_id, value)
