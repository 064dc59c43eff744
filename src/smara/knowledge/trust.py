"""Decide which memories may be injected, by tier and trust level.

A memory has the lowest trust of all its sources, and only a person can raise it. A project has one
of four levels, earned by sessions in which learned memories proved right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from smara.core.freshness import CODE_CHANGED, Freshness
from smara.core.startup.record import dataclass, field
from smara.database.database import Session
from smara.errors import InvalidInputError
from smara.knowledge.change import MemoryChange
from smara.knowledge.decay import confidence_now, staleness_of
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import MADE_BY, TypedMemory, origins
from smara.knowledge.store import KnowledgeStore, StateRow

OFFERED_AFTER_FLAGS = 3
"""So many memories flagged as wrong in one session, and a more careful level is offered."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of trust, and what the next one needs."""

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
        2, "standard", 0.65,
        meaning="what is new is confirmed together, but for what tools or outsiders said",
        needs_sessions=10,
        needs_corrections_below=0.05,
    ),
    Level(3, "confident", 0.55, meaning="only what needs review is shown after a session"),
    Level(4, "autonomous", 0.45,
    meaning="nothing is shown after a session; only by a person's own choice"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """A more careful level, offered because of what went wrong."""

    level: int
    why: str
    session_id: str


@dataclass(frozen=True, slots=True)
class TrustRecord:
    """The record of a project's memories since its level began.

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
    """The level of trust of a project, and its reasons."""

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
    """The decision if a memory may be injected, and as what."""

    allowed: bool
    as_instruction: bool
    why: str


@dataclass(frozen=True, slots=True)
class Tellable:
    """A memory that may be injected, and its worth.

    Its files have the names of today.
    """

    memory: TypedMemory
    verdict: Verdict
    confidence: float
    hedge: str | None = None


@dataclass(frozen=True, slots=True)
class TrustReport:
    """A memory's tier and the reasons for it, in words."""

    tier: str
    reasons: tuple[str, ...] = field(default=())


_NO, _FACT, _INSTRUCTION = (False, False), (True, False), (True, True)
"""If a memory may be injected, and if as an instruction."""


def level_of(number: int) -> Level:
    """Return a level of trust by its number.

    Raises:
        InvalidInputError: If there is no such level.
    """
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(LEVELS):
        raise InvalidInputError(
            "The level of trust must be one of "
            + ", ".join(f"{each.number} ({each.name})" for each in LEVELS)
            + f"; got {number!r}.",
            field="level",
        )
    return LEVELS[number - 1]


def missing_for_next(level: Level, record: TrustRecord) -> tuple[str, ...]:
    """Return what the next level still needs; the fourth is only chosen."""
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


def is_earned(level: Level, record: TrustRecord) -> bool:
    """Return True if the next level is reached."""
    return level.needs_sessions is not None and not missing_for_next(level, record)


def lowest_taint(inputs: Iterable[TypedMemory]) -> tuple[str, ...]:
    """Return the joint taint of memories that no person cleared."""
    return tuple(sorted({word for memory in inputs if memory.is_tainted for word in memory.taint}))


def may_inject(
    memory: TypedMemory, confidence: float, level: int, is_gone: bool = False
) -> Verdict:
    """Decide if a memory may be injected without being asked for.

    Only what a person confirmed may be told as an instruction. It stands until a person or the
    code contradicts it, however old it is: the bound of the level is for what no person confirmed.
    What tools printed may be told as a fact with its quotation, and what came from outside not at
    all unless asked for.
    """
    rules = level_of(level)
    # What may be told while only changed code asks for the review is a matter of that policy.
    waits = memory.needs_review and not (
        memory.review_reasons
        and all(reason.startswith(CODE_CHANGED) for reason in memory.review_reasons)
    )
    is_quoted_fact = KINDS[memory.type].is_fact and any(each.quote for each in memory.evidence)
    verdicts = (
        (not memory.is_active, _NO, f"it was {memory.deprecated_because}"),
        (
            is_gone or memory.is_stale,
            _NO,
            "what it speaks of has gone or it was marked as stale",
        ),
        (
            memory.tier == "quarantined",
            _NO,
            f"it comes from outside ({origins(memory.taint)}) and no person has cleared it",
        ),
        (memory.tier == "confirmed", _INSTRUCTION, "a person taught or verified it"),
        (
            memory.source == "said" and memory.tier == "unconfirmed",
            _FACT,
            "a person said it in a session, and it is told as a quotation",
        ),
        (
            confidence <= rules.inject_above,
            _NO,
            f"it is {confidence:.0%} sure, and only what is surer than {rules.inject_above:.0%} "
            f"is told here (trust level {rules.name})",
        ),
        (is_quoted_fact, _FACT, "unconfirmed, but a fact that is told with its evidence quoted"),
        (
            memory.tier == "observed",
            _NO,
            "it comes from what tools printed, and no person has confirmed it",
        ),
        (level == 1, _NO, "it is told only once a person confirms it"),
        (waits, _NO, "it waits for review"),
        (True, _FACT, "no person has confirmed it, which this project does not ask for"),
    )
    allowed, why = next((allowed, why) for holds, allowed, why in verdicts if holds)
    return Verdict(*allowed, why)


def trust_report(memory: TypedMemory) -> TrustReport:
    """Explain the tier of a memory."""
    reasons = []
    if memory.is_verified:
        who = memory.verified_by or "a person"
        reasons.append(
            f"taught by {who}" if memory.source == "user_taught" else f"verified by {who}"
        )
        if memory.taint:
            reasons.append(f"cleared of what it came from: {origins(memory.taint)}")
    elif memory.tier == "quarantined":
        reasons.append(
            f"it rests on something from outside: {origins(memory.taint)}; only a person can "
            "clear it"
        )
    elif memory.tier == "observed":
        reasons.append(f"it comes from {origins(memory.taint)} on this machine")
    else:
        reasons.append(f"{MADE_BY[memory.source]}; no person has confirmed it yet")
    reasons += [
        f"to be reviewed: {reason}" for reason in memory.review_reasons if memory.needs_review
    ]
    return TrustReport(memory.tier, tuple(reasons))


def status(session: Session, store: KnowledgeStore, state: StateRow) -> TrustStatus:
    """Return the project's level of trust and what would change it."""
    level, record = level_of(state.trust_level), record_of(session, store, state)
    return TrustStatus(
        level.number,
        level.name,
        level.meaning,
        inject_above=level.inject_above,
        sessions=record.sessions,
        confirmed_share=round(record.confirmed_share, 4),
        correction_rate=round(record.correction_rate, 4),
        next_level_needs=missing_for_next(level, record),
        offer=find_offer(session, store, state),
    )


def record_of(session: Session, store: KnowledgeStore, state: StateRow) -> TrustRecord:
    """Count what the memories have shown since the level began."""
    since = state.level_since
    sessions = session.one(
        store.sql(
            "SELECT count(*) FROM memory_sessions"
            " WHERE project_no = :project AND first_at >= ? AND level = ? AND ended_at IS NOT NULL"
        ),
        (
            since,
            state.trust_level,
        ),  # a session that earned a level does not count for the next one too
    )
    learned = session.one(
        store.sql(
            "SELECT count(*), coalesce(sum(m.is_verified), 0) FROM memories m"
            f" WHERE m.project_no = :project{store.WALL if store.viewer else ''}"
            " AND m.created_at >= ? AND m.source NOT IN ('user_taught', 'imported', 'said')"
        ),
        (*store.viewer, since),
    )
    used = session.one(
        store.sql(
            "SELECT count(DISTINCT e.memory_no),"
            " count(DISTINCT CASE WHEN e.kind = 'flagged' THEN e.memory_no END)"
            " FROM memory_events e JOIN memories m ON m.no = e.memory_no"
            f" WHERE m.project_no = :project{store.WALL if store.viewer else ''}"
            " AND e.project_no = :project AND e.kind IN ('used', 'flagged')"
            " AND e.at >= ? AND e.undone_by IS NULL"
        ),
        (*store.viewer, since),
    )
    counts = [*(sessions or (0,)), *(learned or (0, 0)), *(used or (0, 0))]
    return TrustRecord(*map(int, counts))


def find_offer(session: Session, store: KnowledgeStore, state: StateRow) -> Offer | None:
    """Offer a more careful level after several errors in one session.

    Unless the person has declined it.
    """
    if state.trust_level == 1:
        return None
    row = session.one(
        store.sql(
            "SELECT e.session_id, count(DISTINCT e.memory_no) FROM memory_events e"
            " WHERE e.project_no = :project AND e.kind = 'flagged' AND e.at >= ? AND e.undone_by "
            "IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM memory_sessions s WHERE s.project_no = :project"
            " AND s.session_id = e.session_id AND s.is_declined = 1)"
            f" GROUP BY e.session_id HAVING count(DISTINCT e.memory_no) >= {OFFERED_AFTER_FLAGS}"
            " ORDER BY max(e.no) DESC LIMIT 1"
        ),
        (state.level_since,),
    )
    if row is None:
        return None
    careful = level_of(state.trust_level - 1)
    return Offer(
        careful.number, f"{row[1]} memories were flagged as wrong in one session ({row[0]})", row[0]
    )


def see_session(turn: MemoryChange, session_id: str) -> None:
    """Record that a session took part; counted once."""
    turn.session.run(
        turn.store.sql(
            "INSERT INTO memory_sessions (project_no, session_id, level, first_at) VALUES "
            "(:project, ?, ?, ?)"
            " ON CONFLICT (project_no, session_id) DO NOTHING"
        ),
        (session_id, turn.state.trust_level, turn.now_ms),
    )


def end_session(turn: MemoryChange, session_id: str) -> None:
    """Count a finished session, and begin a level that is earned."""
    see_session(turn, session_id)
    turn.session.run(
        turn.store.sql(
            "UPDATE memory_sessions SET ended_at = ?"
            " WHERE project_no = :project AND session_id = ? AND ended_at IS NULL"
        ),
        (turn.now_ms, session_id),
    )
    raise_level(turn)


def raise_level(turn: MemoryChange) -> None:
    """Begin the next level of trust if it is earned."""
    level = level_of(turn.state.trust_level)
    record = record_of(turn.session, turn.store, turn.state)
    if is_earned(level, record):
        because = f"{record.sessions} sessions, {record.confirmed} of {record.learned} confirmed,"
        because += f" {record.flagged} of {record.used} flagged as wrong"
        record_level(turn, level.number + 1, because)


def record_level(turn: MemoryChange, level: int, because: str) -> None:
    """Record a new level of trust, or an offer that was declined."""
    state = turn.state
    turn.session.run(
        turn.store.sql(
            "INSERT INTO memory_trust_events (project_no, at, actor, acted_as, from_level, "
            "to_level, because)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?)"
        ),
        (turn.now_ms, turn.actor, turn.by, state.trust_level, level, because),
    )
    if level != state.trust_level:
        turn.state = state._replace(trust_level=level, level_since=turn.now_ms)


def find_tellable(
    memory: TypedMemory,
    now_ms: int,
    level: int,
    code: Freshness | None,
    *,
    is_requested: bool = False,
) -> Tellable | None:
    """Return a memory as it may be told now, or None.

    On request also what no person has confirmed is told; nothing from outside, nothing that is
    stale, and nothing so unsure that no level of trust would tell it.
    """
    stale = staleness_of(memory, now_ms, None, code=code)
    worth = confidence_now(memory, now_ms, *stale.telling_factors).value
    verdict = may_inject(memory, worth, level, is_gone=stale.is_gone)
    if not verdict.allowed:
        is_out = not memory.is_active or memory.is_stale or stale.is_gone
        is_unsure = memory.tier != "confirmed" and worth <= LEVELS[-1].inject_above
        if not is_requested or is_out or is_unsure or memory.tier == "quarantined":
            return None
        verdict = Verdict(True, False, "it was asked for")
    anchors = code.anchors if code is not None else ()
    today = {each.path: each.now_path for each in anchors if each.verdict == "moved"}
    files = dict.fromkeys(today.get(path) or path for path in memory.files)
    return Tellable(
        memory if tuple(files) == memory.files else replace(memory, files=tuple(files)),
        verdict,
        worth,
        hedge=code.hedge if code is not None and code.telling != "tell" else None,
    )
