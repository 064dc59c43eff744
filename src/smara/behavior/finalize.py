"""Finalize a session: judge its findings and write the result once.

Detection, promotion and wording run first; one transaction then writes everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import thread_time
from typing import Any, NamedTuple

from smara.behavior import phrase, work_state
from smara.behavior.habits import RollingTables, SessionEnd
from smara.behavior.methodology.plugin import Methodology
from smara.behavior.methodology.registry import NATIVE, find_methodology
from smara.behavior.models import Finalized, FindingVerdict, Passed, Seen, SignalFinding
from smara.behavior.phrase import ModelAccess
from smara.behavior.promote import (
    TOLD,
    FindingHistory,
    Judge,
    choose,
    gate_for,
    judge_within,
    merge,
    new_memory,
    passed_of,
    type_of,
)
from smara.behavior.scratchpad import Pad
from smara.behavior.sessions import Watcher
from smara.behavior.signals.registry import detect_all
from smara.behavior.store import BehaviorStore, WatchedSessionRow
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import to_storable
from smara.database.database import Session
from smara.environment import patience
from smara.errors import ConflictError, SmaraError
from smara.knowledge.gate import SessionType
from smara.knowledge.memories import Memories
from smara.knowledge.models import (
    AddResult,
    NewMemory,
    TypedMemory,
    WorkUnit,
    rank_of,
    tier_of_taint,
)

_ATTEMPTS = 16
"""Each time somebody tells of further events in between it is decided anew; a few who tell at once
are soon done.
"""
_MOST_FINDINGS = 400
"""Of so many findings at most it is decided in one session; the most valuable come first."""
_BUDGET_SECONDS = 0.1
"""Of processor time: what is not looked at by then is not learned from this session. It takes a few
milliseconds.
"""
SUBTASKS_PROMOTED_AFTER = 5
"""Work with more subtasks than this is learned from after each of them."""


class _Moved(Exception):
    """The session was changed between reading and writing."""


class FinalizeRequest(NamedTuple):
    """The request to decide on a session."""

    outcome: Passed | None = None
    type: SessionType | None = None
    work_unit: WorkUnit | None = None
    is_over: bool = True


class _Remainder(NamedTuple):
    """What a session leaves: a memory of what is unfinished, or those that tell of work which is
    finished now.
    """

    new: tuple[NewMemory, ...] = ()
    finished: Mapping[str, str] = {}


class Finalizer:
    """Decides on sessions of one project."""

    def __init__(
        self,
        store: BehaviorStore,
        watcher: Watcher,
        tables: RollingTables,
        memories: Memories,
        clock: Clock,
        models: Callable[[], ModelAccess | None],
        deadline_seconds: float,
    ) -> None:
        self._store = store
        self._watcher = watcher
        self._tables = tables
        self._memories = memories
        self._clock = clock
        self._models = models
        self._deadline = deadline_seconds

    def finalize(self, session_id: str, wanted: FinalizeRequest) -> Finalized | None:
        """Decide on a session; ``None`` when that is done."""
        self._watcher.flush(session_id)
        for _ in range(_ATTEMPTS):
            with self._store.database.snapshot() as session:
                row = self._store.find(session, session_id)
                pads = [] if row is None else self._watcher.stored(session, row.no)
                done = (
                    self._decide(session, session_id, row, pads=pads, wanted=wanted)
                    if row is not None and pads
                    else None
                )
            if row is None or done is None:
                self._end_empty(row, wanted)
                return None
            try:
                finalized = self._write(row, done, pads, wanted)
            except _Moved:
                continue
            self._watcher.forget(session_id)
            told: dict[str, Any] = {
                "type": done.type,
                "outcome": done.outcome,
                "promoted": len(finalized.promoted),
            }
            log.event("behavior.finalized", session=session_id, **told)
            return finalized
        why = f"Session {session_id} goes on while it is decided on. Try again when it has paused."
        raise ConflictError(why, session_id=session_id)

    def _end_empty(self, row: WatchedSessionRow | None, wanted: FinalizeRequest) -> None:
        if row is None or not wanted.is_over or row.state == "final":
            return
        fields = {
            "state": "final",
            "finalized_at": self._clock.now_ms(),
            "why": "nothing was left to decide on",
        }
        with self._store.database.write() as session:
            self._store.move(session, row.no, row.version, fields=fields)

    def _decide(
        self,
        session: Session,
        session_id: str,
        row: WatchedSessionRow,
        pads: Sequence[Pad],
        wanted: FinalizeRequest,
    ) -> Finalized:
        """Steps one to five, without writing anything."""
        stated: Any = wanted.type or row.stated_type
        type_, why_type = type_of(pads, stated)
        passed, why = (
            passed_of(type_, pads) if wanted.outcome is None else (wanted.outcome, "it was stated")
        )
        gate, _ = gate_for(type_, passed)
        findings = merge(detect_all(pads))[:_MOST_FINDINGS]
        changing = self._store.changing_sessions(session) + 1
        judge = Judge(
            passed,
            gate,
            type_,
            pads=pads,
            known=lambda finding: self._known(session, row.no, finding, changing),
        )
        judged = judge_within(judge.judge, findings, _BUDGET_SECONDS * patience(), cpu=thread_time)
        if len(judged) < len(findings):
            log.warning(
                "behavior.budget_spent", session=session_id, left=len(findings) - len(judged)
            )
        told = [each for kind in TOLD for each in self._store.promoted_data(session, kind)]
        chosen = choose(judged, max(0, gate.most - row.promoted), told)
        steps = sum(pad.step for pad in pads)
        return Finalized(
            session_id, type_, passed, why=f"{why_type}; {why}", judged=tuple(chosen), steps=steps
        )

    def _known(
        self, session: Session, session_no: int, finding: SignalFinding, changing: int
    ) -> FindingHistory:
        signal = self._store.signal(session, finding.kind, finding.key)
        others = [] if signal is None else self._store.history(session, signal.no, session_no)
        files = [str(finding.data[name]) for name in ("a", "b", "config") if finding.data.get(name)]
        files += list(finding.data.get("sources", ()))
        edited = {
            path: count + 1 for path, count in self._store.edit_sessions(session, files).items()
        }
        sessions = finding.counts_as + sum(counts for _, counts in others)
        history = (finding.data, *(data for data, _ in others))
        days = len({data["day"] for data in history if "day" in data}) or 99
        seen = Seen(sessions, history, edited, all_sessions=changing, days=days)
        is_told = finding.kind == "co_access" and self._store.is_edge_promoted(session, *files[:2])
        return FindingHistory(seen, signal.memory_id if signal is not None else None, is_told)

    def _write(
        self, row: WatchedSessionRow, done: Finalized, pads: Sequence[Pad], wanted: FinalizeRequest
    ) -> Finalized:
        """Steps six to eight: words, then one transaction for the memories and all the counting."""
        promoted = [each for each in done.judged if each.verdict == "promoted"]
        composed = [each.draft.content for each in promoted if each.draft is not None]
        quotes = [each.draft.quotes for each in promoted if each.draft is not None]
        models = self._models() if composed and not row.model_calls else None
        seen = [
            str(each.draft.data.get("observation_type", ""))
            for each in promoted
            if each.draft is not None
        ]
        contents, calls, classes = phrase.worded(
            models, composed, quotes, deadline_seconds=self._deadline, classes=seen
        )
        done, promoted, contents = _classed(done, promoted, contents, classes=classes)
        unit = wanted.work_unit or _unit(row.work_unit)
        methodology = unit.methodology if unit is not None else row.methodology
        new = [
            new_memory(each, content, done.session_id, work_unit=unit, methodology=methodology)
            for each, content in zip(promoted, contents, strict=True)
        ]
        left = self._left(done, pads, unit, methodology) if wanted.is_over else _Remainder()
        new += left.new
        _, counted_as = gate_for(done.type, done.outcome)
        results: list[Finalized] = []

        def also(session: Session, added: Sequence[AddResult]) -> None:
            results.append(
                self._count(
                    session,
                    row,
                    done,
                    promoted=promoted,
                    added=added[: len(promoted)],
                    pads=pads,
                    wanted=wanted,
                    calls=calls,
                )
            )

        self._memories.add_many(
            new,
            by="system",
            actor="smara",
            session_id=done.session_id if new else None,
            session_type=counted_as,
            put_aside=left.finished,
            also=also,
        )
        return results[0]

    def _left(
        self, done: Finalized, pads: Sequence[Pad], unit: WorkUnit | None, methodology: str
    ) -> _Remainder:
        """What the agent itself leaves unfinished, or has brought to its end; helpers work for
        it.
        """
        pad = pads[0]
        state = work_state.state_of(pad, _method(methodology)) if done.type != "changelog" else {}
        before = [
            each
            for each in self._memories.list(type="work_state", limit=50)
            if work_state.is_before(each, done.session_id, state, branch=pad.facts.branch)
        ]
        if not state:
            is_done = work_state.is_all_done(pad)
            return _Remainder(
                (), {each.id: "the work was finished" for each in before} if is_done else {}
            )
        taint = tuple(sorted(pad.facts.outside))
        older = [each.id for each in before if not is_outranked(taint, each)]
        task = work_state.task_of(pad)
        return _Remainder(
            (
                work_state.memory_of(
                    state,
                    done.session_id,
                    task,
                    unit=unit,
                    methodology=methodology,
                    taint=taint,
                    supersedes=older,
                ),
            )
        )

    def _count(
        self,
        session: Session,
        row: WatchedSessionRow,
        done: Finalized,
        promoted: Sequence[FindingVerdict],
        added: Sequence[AddResult],
        pads: Sequence[Pad],
        wanted: FinalizeRequest,
        calls: int,
    ) -> Finalized:
        """Within the transaction: the session, its findings, and the rolling tables."""
        now = self._clock.now_ms()
        outcomes = {
            id(judged): _told(judged, each) for judged, each in zip(promoted, added, strict=True)
        }
        judged = tuple(outcomes.get(id(each), each) for each in done.judged)
        count = sum(each.verdict == "promoted" for each in judged)
        fields: dict[str, Any] = {
            "promoted": row.promoted + count,
            "model_calls": row.model_calls + calls,
            "type": done.type,
            "outcome": done.outcome,
            "why": to_storable(done.why),
            "steps": done.steps,
        }
        if wanted.is_over:
            fields.update(state="final", finalized_at=now, work_unit=None)
        else:
            fields.update(subtasks=row.subtasks + 1)
        if not self._store.move(session, row.no, row.version, fields=fields):
            raise _Moved
        for each in judged:
            self._store.put_finding(session, row.no, each, now_ms=now)
            if each.verdict == "promoted" and each.finding.kind == "co_access":
                self._store.mark_edge_promoted(
                    session, each.finding.data["a"], each.finding.data["b"], now_ms=now
                )
        if wanted.is_over:
            # What is imported happened when it happened, not now.
            happened = min(now, max(pad.facts.last_at for pad in pads) or now)
            self._tables.count(
                session,
                pads,
                SessionEnd(done.session_id, done.type, row.methodology, now_ms=happened),
            )
            self._store.clear_pads(session, row.no)
        return replace(done, judged=judged, model_calls=row.model_calls + calls)


def _classed(
    done: Finalized,
    promoted: Sequence[FindingVerdict],
    contents: Sequence[str],
    classes: Sequence[str],
) -> tuple[Finalized, list[FindingVerdict], list[str]]:
    """What was seen in the running program gets the class that a model saw in it; what is of none
    is not learned.
    """
    changed: dict[int, FindingVerdict] = {}
    for each, class_ in zip(promoted, classes, strict=True):
        if class_ == phrase.NOTHING:
            changed[id(each)] = replace(
                each, verdict="discarded", why="it says nothing about the program"
            )
        elif class_ and each.draft is not None:
            data = {**each.draft.data, "observation_type": class_}
            changed[id(each)] = replace(each, draft=replace(each.draft, data=data))
    judged = tuple(changed.get(id(each), each) for each in done.judged)
    kept = [
        (changed.get(id(each), each), said) for each, said in zip(promoted, contents, strict=True)
    ]
    kept = [(each, said) for each, said in kept if each.verdict == "promoted"]
    return replace(done, judged=judged), [each for each, _ in kept], [said for _, said in kept]


def _told(judged: FindingVerdict, added: AddResult) -> FindingVerdict:
    """A verdict after knowledge has answered."""
    memory_id = added.memory.id if added.memory is not None else None
    if added.outcome == "added":
        return replace(judged, memory_id=memory_id)
    why = "; ".join(added.why) or added.outcome
    verdict: Any = "known" if added.outcome == "duplicate" else "refused"
    return replace(judged, verdict=verdict, why=why, memory_id=memory_id)


def _method(name: str) -> Methodology:
    """The methodology of a session; the native one when another's package is not installed here."""
    try:
        return find_methodology(name)
    except SmaraError:
        return NATIVE


def is_outranked(taint: Sequence[str], old: TypedMemory) -> bool:
    """Return True if outside work state would replace trusted one.

    Then both stay.
    """
    return rank_of(tier_of_taint(taint)) < rank_of(old.tier)


def _unit(stored: str | None) -> WorkUnit | None:
    if not stored:
        return None
    given = json.loads(stored)
    return WorkUnit(given["methodology"], tuple(given["hierarchy"]), given.get("label", ""))
