"""Define what a search takes and returns: filters, candidates, hits and answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from smara.core.extract import one_line
from smara.core.items import Items
from smara.core.startup.record import dataclass, field

if TYPE_CHECKING:
    from smara.core.freshness import Freshness
    from smara.knowledge.models import TypedMemory
    from smara.messages.models import Message
    from smara.observations.models import Observation
    from smara.tasks.models import Task


Source = Literal[
    "raw", "compacted", "observation", "reflection", "memory", "task", "working", "code", "commit",
    "item",
]  # fmt: skip
# What may be searched, and the sources that the hits of each say they come from.
KINDS: dict[str, tuple[str, ...]] = {
    "messages": ("raw", "compacted"),
    "observations": ("observation", "reflection"),
    "memories": ("memory",),
    "tasks": ("task",),
    "working": ("working",),
    "code": ("code",),
    "commits": ("commit",),
    "items": ("item",),
}
SOURCES: tuple[str, ...] = tuple(
    dict.fromkeys([*KINDS, *[each for found in KINDS.values() for each in found]])
)
SNIPPET_WIDTH = 240
Phase = Literal["define", "implement", "validate", "refine", "explore", "reflect"]
PHASES: tuple[str, ...] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A message that stands next to a hit."""

    id: str
    role: str
    seq: int
    content: str

    @property
    def snippet(self) -> str:
        """The beginning of it."""
        return one_line(self.content[:400], 160)


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a hit's score: words, meaning, fusion and factors.

    ``words`` is 1 for a text of usual length that holds every word once; ``meaning`` is a
    cosine, ``None`` where nothing is known of it. ``factors`` name what raised or lowered the
    rank, in the order in which it was done. ``coverage`` is the share of the query's words, by
    their weight, that the hit or its neighbors hold; ``unknown`` the share that nothing here
    holds, and ``unknown_names`` the same of its names. ``parts`` are the facts that place a
    message among messages, each with what it brought.
    """

    words: float
    meaning: float | None = None
    fused: float = 0.0
    factors: tuple[tuple[str, float], ...] = ()
    coverage: float = 0.0
    unknown: float = 0.0
    unknown_names: float = 0.0
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found.

    ``rank`` is its position, 1 being best. ``score`` is its relevance from 0 to 1, on one
    scale for all answers: how likely it answers at all. It bounds an answer and does not order
    it. ``why`` says in a few words what made it rank there.
    A message has a role and its place in a thread; an observation has a thread; a memory has a
    ``type``; what is claimed without being confirmed has ``is_confirmed`` false.
    """

    id: str
    source: Source
    content: str
    created_at: int
    rank: int = 0
    score: float = 0.0
    why: tuple[str, ...] = ()
    thread_id: str | None = None
    resource_id: str | None = None
    role: str | None = None
    seq: int | None = None
    task_id: str | None = None
    client_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Neighbor, ...] = ()
    after: tuple[Neighbor, ...] = ()
    terms: tuple[str, ...] = ()
    type: str | None = None
    title: str | None = None
    files: tuple[str, ...] = ()
    is_confirmed: bool = True
    is_trusted: bool = True
    """Whether it may be told to an agent unasked: nothing from outside, nothing below the project's
    level of trust.
    """
    stages: Stages | None = None
    copies: tuple[str, ...] = ()
    """The ids of other hits that show the same words and were folded into this one."""

    @property
    def snippet(self) -> str:
        """The stretch of the content that answers best, in about 240 characters."""
        from smara.core.text import snippet

        return snippet(self.content, self.terms, SNIPPET_WIDTH)

    @property
    def highlights(self) -> list[tuple[int, int]]:
        """The (start, end) spans of query words in ``content``."""
        from smara.core.text import spans

        return spans(self.content, self.terms)


@dataclass(frozen=True, slots=True)
class ThreadHit:
    """A thread that was found, and why."""

    thread_id: str
    resource_id: str
    title: str | None
    rank: int
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ThreadAnswer(Items[ThreadHit]):
    """The threads of a search, best first; a sequence."""

    _FIELD = "hits"
    hits: tuple[ThreadHit, ...] = ()
    nearest: tuple[ThreadHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The cost of a search, in steps that can be counted."""

    terms: int
    postings: int
    candidates: int
    is_complete: bool = True
    notes: tuple[str, ...] = ()
    query_type: str = "semantic"
    used_meaning: bool = False
    stages: tuple[str, ...] = ()
    """What was done, in order, one line each."""


@dataclass(frozen=True, slots=True)
class Answer(Items[Hit]):
    """The hits of a search, best first; a sequence.

    If nothing is relevant enough, there are no hits, and ``nearest`` has the few that come
    closest. ``total_hits`` counts what is relevant; when a very common word was not followed to
    its end (``trace.is_complete`` is false), at least so many.
    """

    _FIELD = "hits"
    hits: tuple[Hit, ...]
    total_hits: int
    trace: Trace
    warnings: tuple[str, ...] = ()
    nearest: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedAnswer:
    """A packed text, its hits, and what did not fit."""

    text: str
    tokens: int
    hits: tuple[Hit, ...]
    left_out: tuple[Hit, ...]
    repeated: tuple[Hit, ...]
    budget_tokens: int
    withheld: tuple[Hit, ...] = ()
    """What may not be told unasked, when only that was wanted."""


@dataclass(frozen=True, slots=True)
class ObservationHit:
    """An observation or a reflection that was found, and why."""

    observation: Observation
    rank: int
    score: float
    why: tuple[str, ...]
    snippet: str


@dataclass(frozen=True, slots=True)
class ObservationAnswer(Items[ObservationHit]):
    """The observations of a search, best first; a sequence."""

    _FIELD = "hits"
    hits: tuple[ObservationHit, ...] = ()
    nearest: tuple[ObservationHit, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that was found, why, and what it is worth today."""

    memory: TypedMemory
    rank: int
    score: float
    why: tuple[str, ...]
    snippet: str
    confidence: float
    code: Freshness | None = None
    """How it stands to the code it names; ``None`` when it names none that is known here."""


@dataclass(frozen=True, slots=True)
class MemoryAnswer(Items[MemoryHit]):
    """The memories of a search, best first; a sequence."""

    _FIELD = "hits"
    hits: tuple[MemoryHit, ...]
    total_hits: int
    warnings: tuple[str, ...] = ()
    nearest: tuple[MemoryHit, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskHit:
    """A task that was found, and why."""

    task: Task
    rank: int
    score: float
    why: tuple[str, ...]
    snippet: str
    messages: tuple[Message, ...] = ()
    """The newest messages of the task, when they were asked for."""


@dataclass(frozen=True, slots=True)
class TaskAnswer(Items[TaskHit]):
    """The tasks of a search, best first.

    ``messages`` if they were asked for.
    """

    _FIELD = "hits"
    hits: tuple[TaskHit, ...]
    total_hits: int
    messages: Answer | None = None
    warnings: tuple[str, ...] = ()
    nearest: tuple[TaskHit, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """The filters of a search: sources, thread, owner, roles and time."""

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
        """True if filters may exclude records of the right source."""
        return any(
            each is not None
            for each in (self.thread_id, self.resource_id, self.since_ms, self.until_ms)
        )

    @property
    def is_about_messages(self) -> bool:
        """True if a filter was given that only messages can meet."""
        return bool(self.roles) or self.task_id is not None

    def includes(self, hit: Hit) -> bool:
        """Return True if a hit that is no message meets the filters."""
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


class SourceMatches(NamedTuple):
    """The candidates of one source, and how common each term is there."""

    candidates: list[SearchCandidate]
    frequencies: Mapping[str, int]
    total: int


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
    cosine: float | None = None
    """Its cosine with the question as it was asked."""
    terms: frozenset[str] = frozenset()
    """The terms of the query that it, or what stands beside it, holds."""
    relevance: float = 0.0
    merit: float | None = None
    """What the learned model gives a message; it orders messages among themselves."""
    parts: tuple[tuple[str, float], ...] = ()
    """What each fact brought to it."""
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
