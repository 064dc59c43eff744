"""Define signals, findings, drafts and verdicts as frozen values.

A signal is a kind of habit; a finding is one signal in one session; a draft is the
memory that the finding would make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Literal, get_args

from smara.core.startup.record import dataclass, field
from smara.knowledge.gate import SessionType
from smara.knowledge.models import AddResult, MemorySource, MemoryType

Kind = str
"""The kind of a signal: the name in its specification, see ``signals.registry``."""
Outcome = Literal["tested", "committed", "accepted", "failed", "unknown"]
"""What came of a session, by its evidence: tests were green after the last edit of code; it was
committed after the last edit; a person or the calling program accepted it; the last tests were red,
or the caller says that it failed; or nothing shows it.
"""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Verdict = Literal["promoted", "known", "waiting", "discarded", "refused"]
"""``waiting`` for more sessions; ``known`` already; ``refused`` by the gate of knowledge."""
SessionState = Literal["open", "ended", "final"]


Quoted = Literal["agent", "tool", "web", "mcp"]
"""Whose words a memory repeats: of agents and people, of what a tool printed, of pages, of MCP
servers.
"""


@dataclass(frozen=True, slots=True)
class Signal:
    """The specification of a signal: value, quotes, sessions, and memories.

    >>> Signal(3, "retry", 0.90, 0.80, 0.20, ("gotcha",), 2, ("tool",), ("build",)).value
    0.85
    """

    number: int
    kind: Kind
    diagnostic: float
    """How much it tells about a problem, from 0 to 1."""
    relevance: float
    """How likely it is to matter in another session."""
    false_positives: float
    """How often it means nothing."""
    targets: tuple[MemoryType, ...]
    least_sessions: int
    quotes: tuple[Quoted, ...]
    """Whose words its memories repeat; empty for names of files and numbers, which cannot carry an
    order. The taint of its memories follows from it, so it has no default.
    """
    learned_in: tuple[SessionType, ...]
    """The types of sessions that teach it."""
    is_observation: bool = False
    """Whether several agents who see it in one session are enough. Which files a task takes is no
    observation: its agents share the task.
    """
    is_merged_by_words: bool = False
    """Whether findings in nearly the same words, or at the same failure, are one."""
    outlives_failure: bool = False
    """Whether it counts although the work of its session failed."""
    edited: tuple[str, ...] = ()
    """The fields of its data with the files whose edits are counted, see ``Seen``."""
    is_pair: bool = False
    """Whether these are the two files of a pair, which is one memory however it was found."""
    key_field: str = ""
    """The field of its memory that holds the key of its finding, if synthesis says the same."""

    @property
    def taint(self) -> frozenset[str]:
        """The taint of everything that it quotes itself."""
        return frozenset(self.quotes) - {"agent"}

    def edited_files(self, data: Mapping[str, Any]) -> list[str]:
        """Return the files of a finding whose edits are counted."""
        values = [data[name] for name in self.edited if data.get(name)]
        return [
            str(path) for each in values for path in ([each] if isinstance(each, str) else each)
        ]

    @property
    def value(self) -> float:
        return round(
            self.diagnostic * 0.5 + self.relevance * 0.3 + (1.0 - self.false_positives) * 0.2, 4
        )


@dataclass(frozen=True, slots=True)
class SignalFinding:
    """One signal in one session.

    ``key`` is the same whenever the same thing shows again.
    """

    kind: Kind
    key: str
    subject: str
    """A few words for a person."""
    step: int
    """Where in the session it began to show; what came from outside before it may speak through
    it.
    """
    data: Mapping[str, Any] = field(default_factory=dict)
    """What was seen, as JSON holds it."""
    is_proven: bool = False
    """Whether the session itself shows that it is right, such as a command that worked in the
    end.
    """
    counts_as: int = 1
    """As how many sessions it counts: what came again and again in one is no accident."""
    agents: int = 1
    """How many agents, working at the same time, saw the same."""
    last_step: int = 0
    """Where its last words were said, if later than ``step``."""
    size: int = 0
    """How much it says; the larger goes first of those that are equally sure."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding's record in other sessions."""

    sessions: int = 1
    """In how many sessions it showed, this one included, each counted as its finding says."""
    history: Sequence[Mapping[str, Any]] = ()
    """What was seen in each, the newest first, this one included."""
    edit_sessions: Mapping[str, int] = field(default_factory=dict)
    """For files of the finding: in how many sessions they were edited, this one included."""
    all_sessions: int = 0
    """How many sessions have changed files at all, this one included; 0 when that is not known."""
    days: int = 99
    """On how many days it showed: what is seen thrice on one day is mostly one piece of work."""


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """The memory that a finding would make, composed from its evidence."""

    type: MemoryType
    content: str
    quotes: tuple[str, ...]
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Those of its files, if it names none."""
    data: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    source: MemorySource = "observer_inferred"
    commit: str | None = None
    taint: tuple[str, ...] = ()
    says: str = ""
    """What it comes to; drafts that say the same are one memory. Empty: its content."""


@dataclass(frozen=True, slots=True)
class FindingVerdict:
    """A finding with what became of it, and why."""

    finding: SignalFinding
    verdict: Verdict
    why: str
    draft: MemoryDraft | None = None
    confidence: float = 0.0
    taint: tuple[str, ...] = ()
    memory_id: str | None = None
    is_valid: bool = False
    """Whether it counts for later sessions: it was not part of an approach that failed."""


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """A session as it was watched."""

    session_id: str
    agent: str
    state: SessionState
    events: int
    started_at: int
    last_event_at: int
    finalized_at: int | None = None
    type: SessionType | None = None
    outcome: Outcome | None = None
    evidence: tuple[str, ...] = ()
    """What its events show of its work, in sentences."""
    why: str = ""
    methodology: str = "native"
    subtasks: int = 0
    steps: int = 0
    promoted: int = 0
    model_calls: int = 0


@dataclass(frozen=True, slots=True)
class Noticed:
    """A signal of a session as a person looks at it."""

    kind: Kind
    subject: str
    value: float
    sessions: int
    verdict: Verdict
    why: str
    step: int
    memory_id: str | None = None
    taint: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finalized:
    """The decision on a session: type, outcome, and findings."""

    session_id: str
    type: SessionType
    outcome: Outcome
    why: str
    evidence: tuple[str, ...] = ()
    judged: tuple[FindingVerdict, ...] = ()
    steps: int = 0
    model_calls: int = 0

    @property
    def promoted(self) -> tuple[FindingVerdict, ...]:
        return tuple(each for each in self.judged if each.verdict == "promoted")


@dataclass(frozen=True, slots=True)
class BehaviorStatus:
    """The status of learning."""

    open: int = 0
    ended: int = 0
    final: int = 0
    signals: int = 0
    promoted: int = 0
    waiting: int = 0
    last_event_at: int | None = None
    files: int = 0
    edges: int = 0
    errors: int = 0
    modules: int = 0
    by_kind: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QaReportResult:
    """The memories of a quality report, and what of it became none."""

    added: tuple[AddResult, ...] = ()
    left_out_count: int = 0
    """Issues beyond the most that one report may add."""
    unread_count: int = 0
    """Lines that were not understood: they name no file or test, or their shape is unknown."""
    unread_lines: tuple[str, ...] = ()
    """The first of these lines, at most three."""


@dataclass(frozen=True, slots=True)
class JobsDone:
    """The results of background jobs."""

    finalized: int = 0
    promoted: int = 0
    synthesized: int = 0
    pruned: int = 0
    evicted: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.finalized + self.synthesized + self.pruned + self.evicted


def non_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


_NINE_OF_TEN = 1.2816


def wilson_lower_bound(times: int, of: int) -> float:
    """Return Wilson's lower bound of a share, at 90 %.

    >>> [round(wilson_lower_bound(*each), 2) for each in ((3, 3), (3, 5), (30, 50))]
    [0.65, 0.33, 0.51]
    """
    share, width = times / of, _NINE_OF_TEN**2 / of
    spread = _NINE_OF_TEN * sqrt(share * (1 - share) / of + width / (4 * of))
    return (share + width / 2 - spread) / (1 + width)
