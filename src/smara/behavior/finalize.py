"""Finalize a session: judge its findings and write the result once.

Detection, promotion and wording run first; one transaction then writes everything. A model
words all memories of a session in one call. Its sentence is used only if it names every file,
command and error of the composed text and contains nothing that looks like an order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple, Protocol, get_args

from smara.behavior import work_state
from smara.behavior.cues import CUES
from smara.behavior.habits import RollingTables, SessionEnd
from smara.behavior.methodology import NATIVE, Methodology, find_methodology
from smara.behavior.models import Finalized, Outcome, Seen, SignalFinding, Verdict
from smara.behavior.outcome import SAID_BY_TYPE, continued, work_of
from smara.behavior.promote import (
    FindingHistory,
    Judge,
    choose,
    gate_for,
    judge_within,
    merge,
    new_memory,
    type_of,
)
from smara.behavior.scratchpad import Pad
from smara.behavior.sessions import Watcher
from smara.behavior.signals.e2e import ObservationType
from smara.behavior.signals.registry import detect_all, repeat_checks, signal_of
from smara.behavior.store import BehaviorStore, WatchedSessionRow
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.prompts import load_prompt
from smara.core.startup.regex import re, regex
from smara.database.database import Session
from smara.environment import patience
from smara.errors import ConflictError, SmaraError
from smara.knowledge.gate import LEARNED_PER_SESSION, SessionType
from smara.knowledge.memories import Memories
from smara.knowledge.models import (
    AddResult,
    NewMemory,
    TypedMemory,
    WorkUnit,
    rank_of,
    tier_of_taint,
)
from smara.models.chat import ChatReply, ChatRequest, list_schema

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

    outcome: Outcome | None = None
    type: SessionType | None = None
    work_unit: WorkUnit | None = None
    is_over: bool = True


PROMPTS = Path(__file__).parent / "prompts"
_NAMED = regex(r"`([^`]+)`")
NOTHING = "none"
"""The class of what says nothing about the program."""
CLASSES = (*get_args(ObservationType), NOTHING)
_LONGEST = 600
_SENTENCES = 3
_TOKENS_EACH = 160
_SCHEMA = list_schema(
    {
        "number": {"type": "integer"},
        "statement": {"type": "string"},
        "class": {"type": "string", "enum": list(CLASSES)},
    }
)


class ModelAccess(Protocol):
    """The models that can be asked; see ``smara.models``."""

    @property
    def is_offline(self) -> bool: ...
    def complete(self, request: ChatRequest, purpose: str = ...) -> ChatReply: ...


class Worded(NamedTuple):
    """Promoted memories in words, and the model calls made."""

    contents: list[str]
    calls: int
    classes: list[str]
    """Of what was seen in the running program, its class (see ``e2e``); empty for everything
    else.
    """


def worded(
    models: ModelAccess | None,
    contents: Sequence[str],
    quotes: Sequence[Sequence[str]],
    deadline_seconds: float,
    classes: Sequence[str] = (),
) -> Worded:
    """Reword contents by a model, with the classes it sees."""
    given = list(classes) or [""] * len(contents)
    if models is None or models.is_offline or not contents:
        return Worded(list(contents), 0, given)
    items = [
        {
            "number": number,
            "statement": content,
            "evidence": list(evidence)[:3],
            **({"class": class_} if class_ else {}),
        }
        for number, (content, evidence, class_) in enumerate(
            zip(contents, quotes, given, strict=True), 1
        )
    ]
    request = ChatRequest(
        load_prompt(PROMPTS, "word").render({"items": json.dumps(items, ensure_ascii=False)}),
        deadline_seconds=deadline_seconds,
        max_output_tokens=_TOKENS_EACH * len(items) + 200,
        schema=_SCHEMA,
    )
    try:
        reply = models.complete(request, "behavior")
    except SmaraError as error:
        log.warning("behavior.not_worded", error=error.code)
        return Worded(list(contents), 1, given)
    replies = [each for each in read_items(reply.text) if isinstance(each.get("number"), int)]
    by_number = {each["number"]: each for each in replies}
    answers = [by_number.get(number, {}) for number in range(1, len(given) + 1)]
    return Worded(
        [
            _better(content, answer.get("statement"))
            for content, answer in zip(contents, answers, strict=True)
        ],
        1,
        [
            answer["class"] if class_ and answer.get("class") in CLASSES else class_
            for class_, answer in zip(given, answers, strict=True)
        ],
    )


def read_items(text: str) -> list[dict[str, Any]]:
    """Return the objects of the JSON list in a model's reply."""
    start, end = text.find("["), text.rfind("]")
    try:
        items = json.loads(text[start : end + 1]) if 0 <= start < end else []
    except ValueError:
        items = []
    return [each for each in items if isinstance(each, dict)]


def _better(composed: str, answer: object) -> str:
    """Return a model's sentence if it may stand for the composed one."""
    line = " ".join(answer.split()) if isinstance(answer, str) else ""
    names = _NAMED.findall(composed)
    is_whole = bool(line) and len(line) <= _LONGEST and all(name in line for name in names)
    is_short = len(re.findall(r"[.!?](?:\s|$)", line)) <= _SENTENCES
    is_new = set(_NAMED.findall(line)) <= set(names)
    return line if is_whole and is_short and is_new and not CUES["order"].search(line) else composed


@dataclass(frozen=True, eq=False)
class Finalizer:
    """Decides on sessions of one project."""

    store: BehaviorStore
    watcher: Watcher
    tables: RollingTables
    memories: Memories
    clock: Clock
    models: Callable[[], ModelAccess | None]
    deadline_seconds: float

    def finalize(self, session_id: str, request: FinalizeRequest) -> Finalized | None:
        """Decide on a session; ``None`` when that is done."""
        self.watcher.flush(session_id)
        for _ in range(_ATTEMPTS):
            with self.store.database.snapshot() as session:
                row = self.store.find(session, session_id)
                pads = [] if row is None else self.watcher.stored(session, row.no)
                done = (
                    self._decide(session, session_id, row, pads=pads, request=request)
                    if row is not None and pads
                    else None
                )
            if row is None:
                return None
            if done is None:
                if request.is_over and row.state != "final":
                    why = "nothing was left to decide on"
                    final = {"state": "final", "finalized_at": self.clock.now_ms(), "why": why}
                    with self.store.database.write() as session:
                        self.store.put(session, row.no, final, version=row.version)
                if request.is_over:
                    self.memories.end_session(session_id)
                return None
            try:
                finalized = self._write(row, done, pads, request)
            except _Moved:
                continue
            self.watcher.forget(session_id)
            if request.is_over:
                self.memories.end_session(session_id)
            log.event(
                "behavior.finalized",
                session=session_id,
                type=done.type,
                outcome=done.outcome,
                promoted=len(finalized.promoted),
            )
            return finalized
        why = f"Session {session_id} goes on while it is decided on. Try again when it has paused."
        raise ConflictError(why, session_id=session_id)

    def _decide(
        self,
        session: Session,
        session_id: str,
        row: WatchedSessionRow,
        pads: Sequence[Pad],
        request: FinalizeRequest,
    ) -> Finalized:
        """Steps one to five, without writing anything."""
        stated: Any = request.type or row.stated_type
        type_, why_type = type_of(pads, stated)
        work = work_of(type_, pads)
        if row.finalized_at is not None:
            before = from_storable(row.evidence).splitlines()
            work = work._replace(evidence=continued(before, work.evidence))
        # "No edit was seen" and "It edited no file" are one thing.
        why = (why_type, *(each for each in work.evidence if (each, type_) not in SAID_BY_TYPE))
        if request.outcome is not None:
            work, why = work._replace(outcome=request.outcome), (*why, "its outcome was stated")
        most = LEARNED_PER_SESSION[gate_for(type_, work.outcome)]
        findings = merge(detect_all(pads))[:_MOST_FINDINGS]
        changing = self.store.changing_sessions(session) + 1
        judge = Judge(
            work.outcome,
            type_,
            pads,
            history=lambda finding: self._history(session, row.no, finding, changing),
        )
        judged = judge_within(judge.judge, findings, _BUDGET_SECONDS * patience(), cpu=thread_time)
        if len(judged) < len(findings):
            left = len(findings) - len(judged)
            log.warning("behavior.budget_spent", session=session_id, left=left)
        memories = {kind: self.store.promoted_data(session, kind) for kind in repeat_checks()}
        return Finalized(
            session_id,
            type_,
            work.outcome,
            why=". ".join(each.rstrip(".") for each in why),
            evidence=work.evidence,
            judged=tuple(choose(judged, max(0, most - row.promoted), memories)),
            steps=sum(pad.step for pad in pads),
        )

    def _history(
        self, session: Session, session_no: int, finding: SignalFinding, changing: int
    ) -> FindingHistory:
        signal, spec = (
            self.store.signal(session, finding.kind, finding.key),
            signal_of(finding.kind),
        )
        others = [] if signal is None else self.store.history(session, signal.no, session_no)
        files = spec.edited_files(finding.data)
        edited = {
            path: count + 1 for path, count in self.store.edit_sessions(session, files).items()
        }
        sessions = finding.counts_as + sum(counts for _, counts in others)
        history = (finding.data, *(data for data, _ in others))
        days = len({data["day"] for data in history if "day" in data}) or 99
        seen = Seen(sessions, history, edited, all_sessions=changing, days=days)
        is_told = spec.is_pair and self.store.is_edge_promoted(session, *files)
        return FindingHistory(seen, signal.memory_id if signal is not None else None, is_told)

    def _write(
        self, row: WatchedSessionRow, done: Finalized, pads: Sequence[Pad], request: FinalizeRequest
    ) -> Finalized:
        """Steps six to eight: words, then one transaction for the memories and all the counting."""
        judged = list(done.judged)
        drafts = {
            at: each.draft
            for at, each in enumerate(judged)
            if each.verdict == "promoted" and each.draft is not None
        }
        contents, calls, classes = worded(
            self.models() if drafts and not row.model_calls else None,
            [each.content for each in drafts.values()],
            [each.quotes for each in drafts.values()],
            deadline_seconds=self.deadline_seconds,
            classes=[str(each.data.get("observation_type", "")) for each in drafts.values()],
        )
        # What is imported happened when it happened, not now.
        now = self.clock.now_ms()
        happened = min(now, max(pad.facts.last_at for pad in pads) or now)
        unit = request.work_unit
        if unit is None and row.work_unit:
            given = json.loads(row.work_unit)
            unit = WorkUnit(given["methodology"], tuple(given["hierarchy"]), given.get("label", ""))
        methodology = unit.methodology if unit is not None else row.methodology
        new: dict[int, NewMemory] = {}
        for (at, draft), content, class_ in zip(drafts.items(), contents, classes, strict=True):
            # What was seen in the running program gets the class that a model saw in it.
            if class_ == NOTHING:
                why = "it says nothing about the program"
                judged[at] = replace(judged[at], verdict="discarded", why=why)
                continue
            if class_:
                data = {**draft.data, "observation_type": class_}
                judged[at] = replace(judged[at], draft=replace(draft, data=data))
            new[at] = new_memory(
                judged[at],
                content,
                done.session_id,
                work_unit=unit,
                methodology=methodology,
                seen_at=happened,
            )
        left, finished = self._left(done, pads, unit, methodology) if request.is_over else ([], {})
        left = [replace(each, seen_at=happened) for each in left]
        results: list[Finalized] = []

        def also(session: Session, added: Sequence[AddResult]) -> None:
            final = list(judged)
            for at, answer in zip(new, added, strict=False):
                memory_id = answer.memory.id if answer.memory is not None else None
                final[at] = replace(final[at], memory_id=memory_id)
                if answer.outcome != "added":
                    verdict: Verdict = "known" if answer.outcome == "duplicate" else "refused"
                    why = "; ".join(answer.why) or answer.outcome
                    final[at] = replace(final[at], verdict=verdict, why=why)
            result = replace(done, judged=tuple(final), model_calls=row.model_calls + calls)
            is_over = request.is_over
            self._count(session, row, result, pads=pads, is_over=is_over, happened_ms=happened)
            results.append(result)

        self.memories.add_many(
            [*new.values(), *left],
            by="system",
            actor="smara",
            session_id=done.session_id if new or left else None,
            session_type=gate_for(done.type, done.outcome),
            put_aside=finished,
            also=also,
        )
        return results[-1]

    def _left(
        self, done: Finalized, pads: Sequence[Pad], unit: WorkUnit | None, methodology: str
    ) -> tuple[list[NewMemory], dict[str, str]]:
        """Return the memory of what the agent itself leaves unfinished, or the ids of memories of
        work that is finished now; helpers work for the agent.
        """
        pad = pads[0]
        method: Methodology = NATIVE
        with suppress(SmaraError):  # its package may not be installed here
            method = find_methodology(methodology)
        state = work_state.state_of(pad, method) if done.type != "changelog" else {}
        before = [
            each
            for each in self.memories.list(type="work_state", limit=50)
            if work_state.is_before(each, done.session_id, state, branch=pad.facts.branch)
        ]
        if not state:
            is_done = work_state.is_all_done(pad)
            return [], {
                each.id: "every step of its list was ticked off" for each in before if is_done
            }
        taint = tuple(sorted(pad.facts.outside))
        memory = work_state.memory_of(
            state,
            done.session_id,
            work_state.task_of(pad),
            unit=unit,
            methodology=methodology,
            taint=taint,
            supersedes=[each.id for each in before if not is_outranked(taint, each)],
        )
        return [memory], {}

    def _count(
        self,
        session: Session,
        row: WatchedSessionRow,
        done: Finalized,
        pads: Sequence[Pad],
        is_over: bool,
        happened_ms: int,
    ) -> None:
        """Within the transaction: the session, its findings, and the rolling tables."""
        now = self.clock.now_ms()
        fields: dict[str, Any] = {
            "promoted": row.promoted + len(done.promoted),
            "model_calls": done.model_calls,
            "type": done.type,
            "outcome": done.outcome,
            "evidence": to_storable("\n".join(done.evidence)),
            "why": to_storable(done.why),
            "steps": done.steps,
        }
        final = {"state": "final", "finalized_at": now, "work_unit": None}
        fields |= final if is_over else {"subtasks": row.subtasks + 1}
        if not self.store.put(session, row.no, fields, version=row.version):
            raise _Moved
        for each in done.judged:
            self.store.put_finding(session, row.no, each, now_ms=now)
            spec = signal_of(each.finding.kind)
            if each.verdict == "promoted" and spec.is_pair:
                first, second = spec.edited_files(each.finding.data)
                self.store.mark_edge_promoted(session, first, second, now_ms=now)
        if is_over:
            end = SessionEnd(done.session_id, done.type, row.methodology, now_ms=happened_ms)
            self.tables.count(session, pads, end)
            self.store.clear_pads(session, row.no)


def is_outranked(taint: Sequence[str], old: TypedMemory) -> bool:
    """Return True if outside work state would replace trusted one.

    Then both stay.
    """
    return rank_of(tier_of_taint(taint)) < rank_of(old.tier)
