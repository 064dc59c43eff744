"""The level of trust of a project, as it is kept: what was shown so far, what was earned, what is
offered.
"""

from __future__ import annotations

from smara.database.database import Session
from smara.errors import InvalidInputError
from smara.knowledge.store import KnowledgeStore, StateRow
from smara.knowledge.trust import (
    LEVELS,
    OFFERED_AFTER_FLAGS,
    Offer,
    Record,
    TrustStatus,
    is_earned,
    level_of,
    missing_for_next,
)
from smara.knowledge.turn import Turn


def status(session: Session, store: KnowledgeStore, state: StateRow) -> TrustStatus:
    """Where the project stands."""
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
        offer=_offer(session, store, state),
    )


def record_of(session: Session, store: KnowledgeStore, state: StateRow) -> Record:
    """What the memories have shown since the level began."""
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
            "SELECT count(*), coalesce(sum(is_verified), 0) FROM memories"
            " WHERE project_no = :project AND created_at >= ? AND source NOT IN ('user_taught', "
            "'imported')"
        ),
        (since,),
    )
    used = session.one(
        store.sql(
            "SELECT count(DISTINCT memory_no),"
            " count(DISTINCT CASE WHEN kind = 'flagged' THEN memory_no END) FROM memory_events"
            " WHERE project_no = :project AND kind IN ('used', 'flagged') AND at >= ? AND "
            "undone_by IS NULL"
        ),
        (since,),
    )
    counts = [*(sessions or (0,)), *(learned or (0, 0)), *(used or (0, 0))]
    return Record(*map(int, counts))


def _offer(session: Session, store: KnowledgeStore, state: StateRow) -> Offer | None:
    """A more careful level, when one session flagged several memories as wrong and nobody has
    declined.
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


def see_session(turn: Turn, session_id: str) -> None:
    """A session took part; counted once."""
    turn.session.run(
        turn.store.sql(
            "INSERT INTO memory_sessions (project_no, session_id, level, first_at) VALUES "
            "(:project, ?, ?, ?)"
            " ON CONFLICT (project_no, session_id) DO NOTHING"
        ),
        (session_id, turn.state.trust_level, turn.now_ms),
    )


def end_session(turn: Turn, session_id: str) -> None:
    """A session is over: it counts, and a level that is earned begins."""
    see_session(turn, session_id)
    turn.session.run(
        turn.store.sql(
            "UPDATE memory_sessions SET ended_at = ?"
            " WHERE project_no = :project AND session_id = ? AND ended_at IS NULL"
        ),
        (turn.now_ms, session_id),
    )
    level = level_of(turn.state.trust_level)
    record = record_of(turn.session, turn.store, turn.state)
    if is_earned(level, record):
        because = f"{record.sessions} sessions, {record.confirmed} of {record.learned} confirmed,"
        _move(
            turn, level.number + 1, f"{because} {record.flagged} of {record.used} flagged as wrong"
        )


def set_level(turn: Turn, level: object) -> None:
    """A person chooses a level."""
    if not isinstance(level, int) or isinstance(level, bool) or not 1 <= level <= len(LEVELS):
        names = ", ".join(f"{each.number} ({each.name})" for each in LEVELS)
        raise InvalidInputError(
            f"The level of trust must be one of {names}; got {level!r}.", field="level"
        )
    turn.refuse_others("choose the level of trust")
    if level != turn.state.trust_level:
        _move(turn, level, "chosen")


def decline(turn: Turn) -> None:
    """A person stays with the level in spite of the offer."""
    turn.refuse_others("decline the offer of another level")
    offer = _offer(turn.session, turn.store, turn.state)
    if offer is None:
        return
    see_session(turn, offer.session_id)
    turn.session.run(
        turn.store.sql(
            "UPDATE memory_sessions SET is_declined = 1 WHERE project_no = :project AND "
            "session_id = ?"
        ),
        (offer.session_id,),
    )
    _write(turn, turn.state.trust_level, turn.state.trust_level, because=f"declined: {offer.why}")


def _move(turn: Turn, level: int, because: str) -> None:
    _write(turn, turn.state.trust_level, level, because=because)
    turn.state = turn.state._replace(trust_level=level, level_since=turn.now_ms)


def _write(turn: Turn, before: int, after: int, because: str) -> None:
    turn.session.run(
        turn.store.sql(
            "INSERT INTO memory_trust_events (project_no, at, actor, acted_as, from_level, "
            "to_level, because)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?)"
        ),
        (turn.now_ms, turn.actor, turn.by, before, after, because),
    )
