"""Define what people look at: counts, modules, misses and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from smara.core.startup.record import dataclass, field
from smara.messages.models import Message
from smara.search.models import Hit, PackedAnswer, Trace

Kind = Literal["memories", "decisions", "observations", "messages", "tasks", "working"]
KINDS: tuple[Kind, ...] = (
    "memories",
    "decisions",
    "observations",
    "messages",
    "tasks",
    "working",
)


@dataclass(frozen=True, slots=True)
class FacetCount:
    """One value of a facet, and how many records have it."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """The records of one kind that meet some filters, counted.

    The values of a facet are counted under the filters of all *other* facets, so that each count
    is what a click on it shows.
    """

    kind: Kind
    total: int
    facets: Mapping[str, tuple[FacetCount, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrowsedMessage:
    """A message with its number in the store, for the next page."""

    no: int
    message: Message


@dataclass(frozen=True, slots=True)
class FileSession:
    """A session that changed a file.

    ``seq`` is the message with its last change, ``edits`` counts the calls that succeeded.
    """

    thread_id: str
    seq: int
    at: int
    edits: int = 0
    agent: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class TestFailure:
    """A test that failed in sessions.

    ``seq`` is the message with its last failure, ``runs`` counts the runs in which it failed.
    """

    __test__ = False  # not a test, whatever its name says

    test: str
    error: str
    thread_id: str
    seq: int
    at: int
    runs: int = 1


@dataclass(frozen=True, slots=True)
class WorkingPage:
    """A page of working memory, its place and its text."""

    scope: Literal["resource", "thread"]
    resource_id: str
    thread_id: str | None
    version: int
    content: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class ModuleCoverage:
    """One module of the code, and what is known of it.

    ``covered`` counts its files that a memory in force names.
    """

    path: str
    purpose: str
    files: int
    covered: int
    memories: int
    traps: int
    decisions: int
    stale: int
    uses: tuple[tuple[str, int], ...] = ()

    @property
    def share(self) -> float:
        """The share of its files that a memory names."""
        return self.covered / self.files if self.files else 0.0


@dataclass(frozen=True, slots=True)
class ModuleGroup:
    """The modules below one folder, and what is known of them together.

    ``uses`` counts the references to each of the other groups.
    """

    path: str
    modules: tuple[ModuleCoverage, ...]
    uses: tuple[tuple[str, int], ...] = ()

    def total(self, name: str) -> int:
        """Return the sum of a count, such as ``traps``, over its modules."""
        return sum(getattr(each, name) for each in self.modules)

    @property
    def is_module(self) -> bool:
        """True if it has one module, and is that module."""
        return len(self.modules) == 1 and self.modules[0].path == self.path


@dataclass(frozen=True, slots=True, eq=False)
class WholeGraph:
    """The code graph of a tree, to be drawn.

    It has files, what is in them, and who uses what.
    A node is a place in ``names`` and ``files``; the most used ones are there if not all are.
    """

    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """The qualified name of each node; empty for a file."""
    files: tuple[int, ...] = ()
    """The place of each node's file in ``paths``."""
    links: tuple[tuple[int, int], ...] = ()
    """Who uses what, each pair once."""
    left_out: int = 0
    """How many nodes are not there."""


MissStage = Literal[
    "unknown", "hidden", "found", "below_limit", "below_bound", "crowded_out", "no_match"
]


@dataclass(frozen=True, slots=True)
class Miss:
    """The stage of a search at which one record fell out.

    ``bound`` is the score that a hit needed, ``rank`` its place among all that was ranked.
    ``shared`` are the words of the query that it has.
    """

    id: str
    stage: MissStage
    query: str
    source: str | None = None
    rank: int | None = None
    score: float | None = None
    bound: float | None = None
    limit: int = 0
    candidates: int = 0
    hit: Hit | None = None
    shared: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """One record that an answer rests on.

    ``is_dead`` is true if there is no such record any more, or never was.
    """

    id: str
    label: str
    source: str = ""
    is_dead: bool = False
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question, with what it rests on.

    ``text`` has the citations in place as ``[1]``; ``method`` is ``extractive`` without a model.
    """

    question: str
    text: str
    method: str
    citations: tuple[Citation, ...] = ()
    note: str = ""
    trace: Trace | None = None
    pack: PackedAnswer | None = None


@dataclass(frozen=True, slots=True)
class DayOfUse:
    """A day: receipts, those that were used, and their tokens."""

    at: int
    received: int
    used: int
    tokens: int


@dataclass(frozen=True, slots=True)
class DayOfGrowth:
    """The memories added, retired and in force on one day in UTC."""

    at: int
    added: int
    retired: int
    in_force: int


@dataclass(frozen=True, slots=True)
class HostLife:
    """One agent that was seen at work."""

    agent: str
    sessions: int
    last_event_at: int
    events: int


@dataclass(frozen=True, slots=True)
class ArmReport:
    """The arms of an experiment, and what they show.

    ``arms`` has sessions, those with an outcome, and those that went well. ``more`` is how many
    sessions the smaller arm still needs; ``difference`` of the shares is given only when it needs
    none, with the half width of its interval at 95 %.
    """

    is_on: bool
    arms: Mapping[str, tuple[int, int, int]]
    more: int
    difference: float | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of the timeline, with what came of it in numbers."""

    id: str
    title: str | None
    kind: str
    messages: int
    tokens: int
    updated_at: int
    agent: str | None
    outcome: str | None
    steps: int
    received: int
    used: int
    learned: int
