"""What a search gives back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

Source = Literal["raw", "compacted"]
SOURCES: tuple[str, ...] = ("messages", "raw", "compacted")


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found.

    ``rank`` is its position, 1 being best. ``score`` lies between 0 and 1 and can be
    compared within one answer. ``why`` says in a few words what made it rank there.
    """

    id: str
    source: Source
    content: str
    rank: int
    score: float
    why: tuple[str, ...]
    snippet: str
    thread_id: str
    resource_id: str
    role: str
    seq: int
    created_at: int
    task_id: str | None = None
    client_id: str | None = None
    metadata: Any = None
    before: tuple[Neighbor, ...] = ()
    after: tuple[Neighbor, ...] = ()
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A message that stands next to a hit, in short."""

    id: str
    role: str
    seq: int
    snippet: str


@dataclass(frozen=True, slots=True)
class ThreadHit:
    """A thread that was found, with the message that speaks most for it."""

    thread_id: str
    rank: int
    score: float
    why: tuple[str, ...]
    best: Hit | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What a search cost, in steps that can be counted."""

    terms: int
    postings: int
    candidates: int
    is_complete: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Sequence[Hit]):
    """The hits of a search, best first; a sequence."""

    hits: tuple[Hit, ...]
    total_hits: int
    trace: Trace
    warnings: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)
