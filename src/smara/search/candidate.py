"""Carry candidates and filters through the stages of a search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from smara.search.models import KINDS, Hit


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What a caller wants to see: which sources, of whom, of which time."""

    sources: frozenset[str]
    thread_id: str | None = None
    resource_id: str | None = None
    roles: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    task_id: str | None = None
    is_open: bool = False
    """Whether no source was named: where nothing that is remembered answers, the code may."""
    limit: int = 10

    @property
    def is_narrow(self) -> bool:
        """Whether records of the right source may still be unwanted, for their thread, owner or
        time.
        """
        return any(
            each is not None
            for each in (self.thread_id, self.resource_id, self.since_ms, self.until_ms)
        )

    @property
    def is_about_messages(self) -> bool:
        """Whether a filter was given that only messages can meet."""
        return bool(self.roles) or self.task_id is not None

    def includes(self, hit: Hit) -> bool:
        """Whether a hit that is no message meets the filters."""
        return (
            hit.source in self.sources
            and self.thread_id in (None, hit.thread_id)
            and self.resource_id in (None, hit.resource_id)
            and (self.since_ms is None or hit.created_at >= self.since_ms)
            and (self.until_ms is None or hit.created_at < self.until_ms)
        )


def expand_sources(sources: Collection[str] | None, is_about_code: bool = False) -> frozenset[str]:
    """The sources that names stand for: ``messages`` means ``raw`` and ``compacted``.

    Nothing means all that is remembered; the code itself, of which there is more than of everything
    else, only where a question is about code.

    >>> sorted(expand_sources(["observations", "raw"]))
    ['observation', 'raw', 'reflection']
    >>> "code" in expand_sources(None), "code" in expand_sources(None, is_about_code=True)
    (False, True)
    """
    names = (
        [name for name in KINDS if name != "code" or is_about_code] if sources is None else sources
    )
    return frozenset([each for name in names for each in KINDS.get(name, (name,))])


@dataclass(slots=True)
class SearchCandidate:
    """One thing that may answer, with what is known of how well.

    ``words`` is comparable between sources: 1 for a text of usual length that holds every
    word of the query once. ``meaning`` is a cosine, ``None`` while nothing is known of it.
    """

    kind: str
    no: int
    hit: Hit
    words: float = 0.0
    meaning: float | None = None
    near: float | None = None
    """The cosine of the closer of its neighbors."""
    is_in_days: bool = False
    """Whether it is of the days that the query means."""
    fused: float = 0.0
    score: float = 0.0
    factors: list[tuple[str, float]] = field(default_factory=list)

    def multiply(self, reason: str, factor: float) -> None:
        """Raise or lower the score, and remember why."""
        if factor != 1.0:
            self.score *= factor
            self.factors.append((reason, factor))
