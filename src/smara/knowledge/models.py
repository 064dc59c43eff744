"""Define memories, their evidence, relations and events as values.

A memory is never trusted because it was shown. Its sources decide its *tier*: ``quarantined`` holds
text from outside (the web, other servers, imported files, other people), ``observed`` output of
tools on this machine, ``unconfirmed`` statements of agents and people here, ``confirmed`` what a
person verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

from smara.actions.paths import is_at_module
from smara.core.extract import shorten
from smara.core.items import Items
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex

MemoryType = Literal[
    "gotcha",
    "decision",
    "preference",
    "pattern",
    "requirement",
    "error_pattern",
    "module_insight",
    "prefetch_pattern",
    "work_state",
    "causal_dependency",
    "task_calibration",
    "e2e_observation",
    "dead_end",
    "work_unit_outcome",
    "workflow_recipe",
    "context_cost",
]
MemorySource = Literal[
    "agent_explicit",
    "observer_inferred",
    "qa_auto",
    "mcp_auto",
    "commit_auto",
    "user_taught",
    "imported",
    "said",
]
"""``said`` is what a person said in a session, kept as a quotation."""
MemoryScope = Literal["global", "module", "work_unit", "session"]
Visibility = Literal["personal", "project", "team", "organization"]
TrustTier = Literal["quarantined", "observed", "unconfirmed", "confirmed"]
By = Literal["person", "agent", "system"]
UseOutcome = Literal["helped", "confirmed", "wrong", "failed"]
DeprecatedBecause = Literal["forgotten", "pruned", "superseded", "merged", "rejected"]
RelationType = Literal["required_with", "conflicts_with", "validates", "supersedes", "derived_from"]
ChunkType = Literal["function", "class", "module", "prose"]
State = Literal["active", "deprecated", "all"]
Order = Literal["newest", "confidence"]
EventKind = Literal[
    "created",
    "seen_again",
    "updated",
    "pinned",
    "unpinned",
    "verified",
    "used",
    "flagged",
    "accepted",
    "rejected",
    "forgotten",
    "pruned",
    "restored",
    "superseded",
    "supersedes",
    "merged",
    "absorbed",
    "related",
    "unrelated",
    "marked_stale",
    "marked_fresh",
    "undone",
]

TYPES: tuple[MemoryType, ...] = get_args(MemoryType)
SOURCES: tuple[MemorySource, ...] = get_args(MemorySource)
SCOPES: tuple[MemoryScope, ...] = get_args(MemoryScope)
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
TIERS: tuple[TrustTier, ...] = get_args(TrustTier)
"""From the least trusted to the most."""
WHO: tuple[By, ...] = get_args(By)
USE_OUTCOMES: tuple[UseOutcome, ...] = get_args(UseOutcome)
RELATION_TYPES: tuple[RelationType, ...] = get_args(RelationType)
CHUNK_TYPES: tuple[ChunkType, ...] = get_args(ChunkType)
STATES: tuple[State, ...] = get_args(State)
ORDERS: tuple[Order, ...] = get_args(Order)

LOCAL_TAINT = frozenset({"tool", "file"})
"""What tools on this machine and files of this repository said; every other taint is from
outside.
"""
_ORIGINS = {
    "imported": "an imported file", "web": "the web", "mcp": "an MCP server",
    "tool": "the output of tools", "file": "files", "other": "other people",
}  # fmt: skip
MADE_BY: dict[str, str] = {
    "agent_explicit": "noted by an agent", "observer_inferred": "learned from sessions",
    "qa_auto": "learned from tests", "mcp_auto": "learned from a tool",
    "commit_auto": "learned from commits", "user_taught": "taught by a person",
    "imported": "imported from a file", "said": "said in a session",
}  # fmt: skip
"""How a memory of each source came to be, in words for people."""
SURE, UNSURE = 1.0, 0.5
"""The confidence of ``conflicts_with``; accepting the newer one retires the older if it is sure."""
MAX_CITATION_LENGTH = 40
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NAMED = {"message": "message_id", "observation": "observation_id", "commit": "commit"}
_PLACE = regex(
    r"(?P<path>.+?)(?:@(?P<commit>[0-9a-fA-F]{7,64}))?(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?"
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing a memory rests on: a message, a place, a quotation.

    >>> str(Evidence.parse("src/auth.py@3f2a9c1:10-20"))
    'src/auth.py@3f2a9c1:10-20'
    """

    message_id: str | None = None
    observation_id: str | None = None
    path: str | None = None
    commit: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    quote: str | None = None

    @classmethod
    def parse(cls, text: str, quote: str | None = None) -> Evidence:
        """From ``path@commit:first-last``, ``message:ID``, ``observation:ID`` or ``commit:ID``."""
        kind, _, rest = text.partition(":")
        if kind in _NAMED and rest:
            return cls(**{_NAMED[kind]: rest}, quote=quote)  # type: ignore[arg-type]  # all of them take a text
        match = _PLACE.fullmatch(text)
        if match is None:
            return cls(path=text, quote=quote)
        first = int(match["first"]) if match["first"] else None
        last = int(match["last"]) if match["last"] else first
        return cls(
            path=match["path"],
            commit=match["commit"],
            first_line=first,
            last_line=last,
            quote=quote,
        )

    def __str__(self) -> str:
        if self.message_id:
            return f"message:{self.message_id}"
        if self.observation_id:
            return f"observation:{self.observation_id}"
        if self.path:
            lines = "" if self.first_line is None else f":{self.first_line}"
            if self.last_line is not None and self.last_line != self.first_line:
                lines += f"-{self.last_line}"
            return f"{self.path}{f'@{self.commit}' if self.commit else ''}{lines}"
        return f"commit:{self.commit}" if self.commit else "quotation"


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """The piece of work a memory belongs to."""

    methodology: str
    hierarchy: tuple[str, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The piece of code or prose that a memory stands for."""

    type: ChunkType
    first_line: int | None = None
    last_line: int | None = None
    context_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a memory to another one or to a file."""

    type: RelationType
    memory_id: str | None = None
    path: str | None = None
    confidence: float = 1.0
    is_auto: bool = False


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to be added; its type gives what is left out.

    ``derived_from`` and ``supersedes`` name memories by any id. ``taint`` adds to the taint that
    its evidence has; it is never less than that.
    """

    content: str
    type: MemoryType
    source: MemorySource = "agent_explicit"
    confidence: float | None = None
    tags: Sequence[str] = ()
    files: Sequence[str] = ()
    modules: Sequence[str] = ()
    scope: MemoryScope | None = None
    visibility: Visibility = "project"
    session_id: str | None = None
    seen_at: int | None = None
    """When what it rests on was seen (ms), if that was before now."""
    commit: str | None = None
    evidence: Sequence[Evidence | str] = ()
    work_unit: WorkUnit | None = None
    methodology: str | None = None
    relations: Sequence[Relation] = ()
    derived_from: Sequence[str] = ()
    supersedes: Sequence[str] = ()
    half_life_days: float | None = None
    citation: str | None = None
    chunk: Chunk | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    taint: Sequence[str] = ()
    is_pinned: bool = False
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class TypedMemory:
    """One memory as it is now.

    ``confidence`` is what was given to it; what it is worth today, ``Memories.confidence`` says.
    ``taint`` names what its sources hold besides the words of people and agents here; it stays
    with the memory for ever, and counts for nothing while ``is_verified`` is true.
    """

    id: str
    short_id: str
    type: MemoryType
    content: str
    confidence: float
    tags: tuple[str, ...]
    files: tuple[str, ...]
    modules: tuple[str, ...]
    scope: MemoryScope
    source: MemorySource
    visibility: Visibility
    created_at: int
    created_by: str
    updated_at: int
    version: int
    session_id: str | None = None
    session_ids: tuple[str, ...] = ()
    """Every session that came to know it."""
    seen_at: int | None = None
    """When what it rests on was seen, if that was before it was made: it may have been imported."""
    commit: str | None = None
    evidence: tuple[Evidence, ...] = ()
    work_unit: WorkUnit | None = None
    methodology: str | None = None
    relations: tuple[Relation, ...] = ()
    half_life_days: float | None = None
    """Its own; ``None`` for the one of its type."""
    citation: str | None = None
    chunk: Chunk | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    taint: tuple[str, ...] = ()
    is_pinned: bool = False
    is_verified: bool = False
    verified_at: int | None = None
    verified_by: str | None = None
    needs_review: bool = False
    review_reasons: tuple[str, ...] = ()
    verified_uses: int = 0
    uses_since_wrong: int = 0
    corrections: int = 0
    last_verified_use_at: int | None = None
    stale_at: int | None = None
    stale_because: str | None = None
    deprecated_at: int | None = None
    deprecated_because: DeprecatedBecause | None = None
    superseded_by: str | None = None
    """The id of the memory that took its place, by superseding it or by merging."""
    supersedes: tuple[str, ...] = ()

    def applies_at(self, places: Iterable[str]) -> bool:
        """Return True if it is about files, folders or modules at hand.

        What is about modules is about nothing else; with none named it is about the whole project.
        """
        return self.scope != "module" or not self.modules or self.is_of(places)

    def is_of(self, places: Iterable[str]) -> bool:
        """Return True if a place lies in one of its modules."""
        return any(is_at_module(place, each) for place in places for each in self.modules)

    @property
    def tier(self) -> TrustTier:
        """The trust in it, by what it comes from."""
        return "confirmed" if self.is_verified else tier_of_taint(self.taint)

    @property
    def evidence_at(self) -> int:
        """The time of its evidence, from which it fades."""
        return self.created_at if self.seen_at is None else self.seen_at

    @property
    def is_tainted(self) -> bool:
        """True if it has outside sources that no person cleared."""
        return bool(self.taint) and not self.is_verified

    @property
    def is_active(self) -> bool:
        return self.deprecated_at is None

    @property
    def is_stale(self) -> bool:
        return self.stale_at is not None

    @property
    def context_prefix(self) -> str | None:
        """The text before it when it is embedded, if any."""
        return self.chunk.context_prefix if self.chunk else None

    @property
    def label(self) -> str:
        """A few words to name it by, at most 40 characters."""
        return self.citation or shorten(" ".join(self.content.split()), MAX_CITATION_LENGTH)


def tier_of_taint(taint: Sequence[str]) -> TrustTier:
    """Return the tier of an unverified memory with some taint."""
    if not taint:
        return "unconfirmed"
    return "observed" if LOCAL_TAINT.issuperset(taint) else "quarantined"


def origins(taint: Sequence[str]) -> str:
    """Return where a memory with some taint comes from, in words."""
    return ", ".join(_ORIGINS.get(each, each) for each in taint)


def rank_of(tier: TrustTier) -> int:
    """Tiers as numbers that can be compared, the least trusted being 0."""
    return TIERS.index(tier)


@dataclass(frozen=True, slots=True)
class AddResult:
    """The result of adding: added, duplicate or refused, and why.

    A *duplicate* gives the memory that was there; a refusal gives none.
    """

    outcome: Literal["added", "duplicate", "refused"]
    memory: TypedMemory | None
    why: tuple[str, ...] = ()
    similar_to: str | None = None
    """The short id of what was there already."""
    superseded: tuple[str, ...] = ()
    """The ids of memories that it contradicts and has taken the place of."""
    disputes: tuple[str, ...] = ()
    """The ids of memories that it contradicts and that are more trusted: a person decides."""


@dataclass(frozen=True, slots=True)
class MemoryPage(Items[TypedMemory]):
    """A page of memories; the last has no ``next_offset``."""

    _FIELD = "memories"
    memories: tuple[TypedMemory, ...]
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """One change of a memory: who, when, before and after."""

    id: str
    memory_id: str
    kind: EventKind
    actor: str
    by: By
    session_id: str | None
    at: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class MemoryTotals:
    """The number of memories of a project."""

    total: int = 0
    active: int = 0
    to_review: int = 0


@dataclass(frozen=True, slots=True)
class AcceptResult:
    """The memories that were accepted, and those left with reasons."""

    accepted: tuple[TypedMemory, ...] = ()
    left: tuple[tuple[TypedMemory, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The short ids of deprecated, of removed and of aged memories.

    ``to_review`` was confirmed by a person too long ago to be left alone.
    """

    deprecated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    to_review: tuple[str, ...] = ()
