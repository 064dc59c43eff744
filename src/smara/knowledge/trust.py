"""Trust: what is told unasked follows the level of trust of a project; what came from outside never
does.

A memory has the lowest trust of everything it was made from, and only a person can raise it:
it cannot raise itself by being shown, used, summarized, merged or derived from. A project
has one of four levels, earned by sessions in which what was learned proved right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from smara.core.freshness import CODE_CHANGED
from smara.knowledge.models import MemoryType, TypedMemory

FACTS: frozenset[MemoryType] = frozenset(
    {
        "gotcha", "error_pattern", "dead_end", "e2e_observation", "work_unit_outcome", "work_state",
        "prefetch_pattern",
        "causal_dependency", "task_calibration", "context_cost",
    }
)  # fmt: skip
"""What happened or was counted, as against what somebody wants or decided: with its evidence quoted
it is no claim.
"""
OFFERED_AFTER_FLAGS = 3
"""So many memories flagged as wrong in one session, and a more careful level is offered."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of trust: what is told unasked, and what it takes to get to the next."""

    number: int
    name: str
    inject_above: float
    meaning: str
    needs_sessions: int | None = None
    needs_confirmed: float | None = None
    needs_corrections_below: float | None = None


LEVELS: tuple[Level, ...] = (
    Level(
        1, "cautious", 0.80, meaning="everything new is confirmed by a person first",
        needs_sessions=3,
        needs_confirmed=0.5
    ),
    Level(
        2, "standard", 0.65, meaning="what is new is confirmed together, but for what is tainted",
        needs_sessions=10,
        needs_corrections_below=0.05,
    ),
    Level(3, "confident", 0.55, meaning="only what needs review is shown after a session"),
    Level(4, "autonomous", 0.45,
    meaning="nothing is shown after a session; only by a person's own choice"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """A more careful level, offered because of what went wrong; nobody is forced."""

    level: int
    why: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Record:
    """What a project's memories have shown since its level began.

    ``confirmed`` of ``learned`` memories were accepted by a person; ``flagged`` of ``used`` ones
    were called wrong.
    """

    sessions: int = 0
    learned: int = 0
    confirmed: int = 0
    used: int = 0
    flagged: int = 0

    @property
    def confirmed_share(self) -> float:
        return self.confirmed / self.learned if self.learned else 0.0

    @property
    def correction_rate(self) -> float:
        return self.flagged / self.used if self.used else 0.0


@dataclass(frozen=True, slots=True)
class TrustStatus:
    """How far the memories of a project are trusted, why, and what would change it."""

    level: int
    name: str
    meaning: str
    inject_above: float
    sessions: int
    confirmed_share: float
    correction_rate: float
    next_level_needs: tuple[str, ...] = ()
    """What is still missing for the next level; empty when it is reached, or when there is none to
    be earned.
    """
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a memory may be told unasked, whether as an instruction, and why."""

    allowed: bool
    as_instruction: bool
    why: str


@dataclass(frozen=True, slots=True)
class Tellable:
    """A memory that may be told unasked: why, what it is worth today, and what of its code has
    changed since.
    """

    memory: TypedMemory
    verdict: Verdict
    confidence: float
    hedge: str | None = None


@dataclass(frozen=True, slots=True)
class TrustTold:
    """A memory's tier and the reasons for it, in words."""

    tier: str
    reasons: tuple[str, ...] = field(default=())


def level_of(number: int) -> Level:
    return LEVELS[number - 1]


def missing_for_next(level: Level, record: Record) -> tuple[str, ...]:
    """What is still missing for the next level; the fourth is never earned, only chosen."""
    found = []
    if level.needs_sessions is not None and record.sessions < level.needs_sessions:
        found.append(f"{level.needs_sessions - record.sessions} more sessions")
    if level.needs_confirmed is not None and record.confirmed_share < level.needs_confirmed:
        found.append(
            f"{level.needs_confirmed:.0%} of what was learned confirmed ({record.confirmed} of "
            f"{record.learned} are)"
        )
    if level.needs_corrections_below is not None:
        if not record.used:
            found.append("memories that were used, to see how many were wrong")
        elif record.correction_rate >= level.needs_corrections_below:
            found.append(
                f"fewer than {level.needs_corrections_below:.0%} of the memories used flagged as "
                "wrong"
                f" ({record.flagged} of {record.used} were)"
            )
    return tuple(found)


def is_earned(level: Level, record: Record) -> bool:
    """Whether the next level is reached."""
    return level.needs_sessions is not None and not missing_for_next(level, record)


def lowest_taint(inputs: Iterable[TypedMemory]) -> tuple[str, ...]:
    """The taint of what is made from some memories: all of theirs, but for what a person has
    cleared.
    """
    return tuple(sorted({word for memory in inputs if memory.is_tainted for word in memory.taint}))


def may_inject(
    memory: TypedMemory, confidence: float, level: int, is_gone: bool = False
) -> Verdict:
    """Whether a memory may be told to an agent that did not ask for it.

    Only what a person confirmed may be told as an instruction. What tools printed may be told
    as a fact with its quotation, and what came from outside not at all unless asked for.
    """
    rules = level_of(level)
    if not memory.is_active:
        return Verdict(False, False, f"it was {memory.deprecated_because}")
    if is_gone or memory.is_stale:
        return Verdict(False, False, "what it speaks of has gone or it was marked as stale")
    if memory.tier == "quarantined":
        return Verdict(
            False,
            False,
            f"it comes from outside ({', '.join(memory.taint)}) and no person has cleared it",
        )
    if confidence <= rules.inject_above:
        told = f"its confidence of {confidence:.2f} is not above {rules.inject_above:.2f}"
        return Verdict(False, False, f"{told}, as the level {rules.name} wants")
    if memory.tier == "confirmed":
        return Verdict(True, True, "a person taught or verified it")
    if memory.type in FACTS and any(each.quote for each in memory.evidence):
        return Verdict(True, False, "unconfirmed, but a fact that is told with its evidence quoted")
    if memory.tier == "observed":
        return Verdict(
            False, False, "it comes from what tools printed, and no person has confirmed it"
        )
    if level == 1:
        return Verdict(False, False, "the level cautious wants a person's confirmation first")
    if memory.needs_review and not _is_asked_by_code(memory):
        return Verdict(False, False, "it waits for review")
    return Verdict(True, False, f"unconfirmed, and the level {rules.name} allows it")


def _is_asked_by_code(memory: TypedMemory) -> bool:
    """Whether only changed code asks for the review: what may be told then is a matter of that
    policy.
    """
    return bool(memory.review_reasons) and all(
        reason.startswith(CODE_CHANGED) for reason in memory.review_reasons
    )


def trust_told(memory: TypedMemory) -> TrustTold:
    """Why a memory has the tier it has."""
    reasons = []
    if memory.is_verified:
        who = memory.verified_by or "a person"
        reasons.append(
            f"taught by {who}" if memory.source == "user_taught" else f"verified by {who}"
        )
        if memory.taint:
            reasons.append(f"cleared of what it came from: {', '.join(memory.taint)}")
    elif memory.tier == "quarantined":
        reasons.append(
            f"it rests on something from outside: {', '.join(memory.taint)}; only a person can "
            "clear it"
        )
    elif memory.tier == "observed":
        reasons.append(f"it rests on what tools or files here said: {', '.join(memory.taint)}")
    else:
        reasons.append(f"made by {memory.source}, and nobody has confirmed it yet")
    reasons += [
        f"to be reviewed: {reason}" for reason in memory.review_reasons if memory.needs_review
    ]
    return TrustTold(memory.tier, tuple(reasons))
