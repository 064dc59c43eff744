"""Derive again, without what was erased, what rests on other sources too.

It runs after the transaction of an erase, and again when an unfinished erase is finished: what is
not derived yet is absent, never told as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

from smara.behavior.models import FindingVerdict, Seen, SignalFinding
from smara.behavior.promote import confidence_of, new_memory, trusted
from smara.behavior.signals.registry import draft_of, signal_of
from smara.behavior.store import BehaviorStore, data_of
from smara.core.escape import from_storable, to_storable
from smara.core.scope import Scope
from smara.database.database import Database, Session
from smara.decisions.decisions import Decisions
from smara.decisions.utterances import content_terms
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult
from smara.knowledge.store import KnowledgeStore
from smara.privacy.pointers import Keeper
from smara.tasks.store import TaskStore

_LONGEST_SUBJECT = 160


class ProjectRooms(Protocol):
    """The rooms of one project that derive."""

    @property
    def memories(self) -> Memories: ...
    @property
    def decisions(self) -> Decisions: ...
    @property
    def keeper(self) -> Keeper: ...


def put_totals(database: Database, session: Session, scope: Scope) -> None:
    """Count tasks and memories again.

    Within the transaction that added or removed some: a process that is killed after it would
    leave wrong totals.
    """
    tasks, memories = TaskStore(database, scope), KnowledgeStore(database, scope)
    tasks.lock(session)
    memories.lock(session)
    for table, totals in (
        (tasks.STATE, tasks.count(session)._asdict()),
        (memories.STATE, asdict(memories.recount(session))),
    ):
        columns = ", ".join(f"{name} = ?" for name in totals)
        statement = f"UPDATE {table} SET {columns} WHERE project_no = :project"
        tasks.run(session, statement, *totals.values())


class Lesson(NamedTuple):
    """A signal as the sessions that stay show it."""

    verdict: FindingVerdict
    session_id: str
    """The newest of them."""

    @property
    def content(self) -> str | None:
        """The statement, if they are enough for one."""
        return None if self.verdict.draft is None else self.verdict.draft.content


def judge_lesson(
    store: BehaviorStore, session: Session, signal_no: int, without: Collection[int] = ()
) -> Lesson | None:
    """Judge a signal from its findings, without those of some sessions."""
    rows = store.rows(
        session,
        "SELECT s.kind, f.data, f.counts_as, f.step, f.taint, b.session_id, b.no"
        " FROM behavior_findings f JOIN behavior_sessions b ON b.no = f.session_no"
        " JOIN behavior_signals s ON s.no = f.signal_no"
        " WHERE f.project_no = :project AND f.signal_no = ? AND f.is_valid = 1"
        " ORDER BY f.found_at DESC, f.session_no DESC",
        signal_no,
    )
    rows = [row for row in rows if row[6] not in without]
    if not rows:
        return None
    kind, _, _, step, marks, session_id, _ = rows[0]
    history = [data_of(row[1]) for row in rows]
    sessions, signal = sum(int(row[2]) for row in rows), signal_of(kind)
    seen = Seen(
        sessions,
        history,
        store.edit_sessions(session, signal.edited_files(history[0])),
        all_sessions=store.changing_sessions(session),
        days=len({data["day"] for data in history if "day" in data}) or 99,
    )
    finding = SignalFinding(kind, "", "", step=int(step), data=history[0])
    taint = tuple(sorted({*marks.split(), *signal.taint}))
    verdict = FindingVerdict(
        finding,
        "promoted",
        f"seen in {sessions} sessions",
        draft=draft_of(finding, seen) if sessions >= signal.least_sessions else None,
        confidence=trusted(confidence_of(signal.value, sessions - signal.least_sessions), taint),
        taint=taint,
        is_valid=True,
    )
    return Lesson(verdict, from_storable(session_id))


def judge_again(store: BehaviorStore, memories: Memories) -> int:
    """Judge the lessons that an erase withheld; return the number learned."""
    waiting = " WHERE project_no = :project AND promoted_at IS NOT NULL AND memory_id IS NULL"
    count = 0
    with store.database.read() as session:
        rows = store.rows(session, f"SELECT no FROM behavior_signals{waiting}")
        lessons = [(int(no), judge_lesson(store, session, int(no))) for (no,) in rows]
    for no, lesson in lessons:
        if lesson is not None and lesson.content is not None:
            count += _promote(store, memories, no, lesson)
            continue
        with store.database.write() as session:  # it waits for another session
            _put_signal(store, session, no, None, lesson)
    return count


def _promote(store: BehaviorStore, memories: Memories, signal_no: int, lesson: Lesson) -> bool:
    content, session_id = lesson.content or "", lesson.session_id

    def also(session: Session, added: Sequence[AddResult]) -> None:
        memory = added[0].memory
        _put_signal(store, session, signal_no, memory.id if memory is not None else None, lesson)

    new = new_memory(lesson.verdict, content, session_id, work_unit=None, methodology="native")
    given: dict[str, Any] = {"by": "system", "actor": "smara", "session_id": session_id}
    return memories.add_many([new], also=also, **given)[0].memory is not None


def name_signal(
    store: BehaviorStore, session: Session, signal_no: int, lesson: Lesson | None
) -> None:
    """Name a signal by words of the sessions that stay."""
    data = lesson.verdict.finding.data if lesson is not None else {}
    texts = ", ".join(value for value in data.values() if isinstance(value, str))
    rows = store.rows(
        session,
        "SELECT subject FROM behavior_signals WHERE project_no = :project AND no = ?",
        signal_no,
    )
    words = from_storable(rows[0][0])
    if not content_terms(words) <= content_terms(texts):
        words = (lesson and lesson.content) or texts
    statement = "UPDATE behavior_signals SET subject = ? WHERE project_no = :project AND no = ?"
    store.run(session, statement, to_storable(words[:_LONGEST_SUBJECT]), signal_no)


def _put_signal(
    store: BehaviorStore,
    session: Session,
    signal_no: int,
    memory_id: str | None,
    lesson: Lesson | None,
) -> None:
    """Write what a signal is now."""
    name_signal(store, session, signal_no, lesson)
    store.run(
        session,
        "UPDATE behavior_signals SET memory_id = ?,"
        f" promoted_at = {'promoted_at' if memory_id else 'NULL'}"
        " WHERE project_no = :project AND no = ?",
        memory_id,
        signal_no,
    )
    verdict = "promoted" if memory_id else "waiting"
    store.run(
        session,
        "UPDATE behavior_findings SET verdict = ?, memory_id = ?"
        " WHERE project_no = :project AND signal_no = ? AND verdict IN ('promoted', 'known')",
        verdict,
        memory_id,
        signal_no,
    )
