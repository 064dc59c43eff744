"""Offer the behavior room: watch sessions, finalize them, learn from them."""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from smara.actions.intake import SILENT_SESSION_MS
from smara.behavior import work_state
from smara.behavior.finalize import (
    SUBTASKS_PROMOTED_AFTER,
    Finalizer,
    FinalizeRequest,
    ModelAccess,
    is_outranked,
)
from smara.behavior.habits import (
    Habits,
    RollingTables,
    worth_reading,
)
from smara.behavior.methodology import (
    CODER_FILES,
    CODER_TOKENS,
    MOST_FOR_QA,
    MOST_ISSUES,
    MOST_LOOKED_AT,
    MOST_RECIPES,
    MOST_STEPS,
    ExecutionContext,
    Phase,
    PlannerContext,
    PrefetchedFile,
    WorkUnitResult,
    custom_type_of,
    find_methodology,
    relay_of,
    tell_relay,
    tell_sections,
)
from smara.behavior.models import (
    OUTCOMES,
    BehaviorStatus,
    Finalized,
    JobsDone,
    Noticed,
    Outcome,
    QaReportResult,
    WatchedSession,
)
from smara.behavior.promote import new_memory
from smara.behavior.scratchpad import Pad
from smara.behavior.sessions import Watcher, WatchResult, phase_of
from smara.behavior.signals import import_chase, qa
from smara.behavior.store import BehaviorStore
from smara.behavior.synthesis import WEEK_MS, Synthesis, Synthesized
from smara.behavior.work_state import outcome_of
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.ids import IdMaker
from smara.core.scope import require_id
from smara.core.tokens import TokenCounter
from smara.core.validate import one_of
from smara.database.database import Session
from smara.errors import SmaraError
from smara.knowledge.gate import SESSION_TYPES, SessionType
from smara.knowledge.kinds import KINDS, types_told_at
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult, TypedMemory, WorkUnit
from smara.knowledge.statements import Statement
from smara.secrets import redact

DAY_MS = 86_400_000


class Behavior(Habits):
    """The events of one project's agents, and what they show.

    ``observe`` takes an event of any host; ``finalize`` decides on a session when it has ended, and
    ``run_due`` on all that have, with everything else that waits. Everything that is learned
    becomes a memory, with its evidence, for a person to review.

    Arguments that many methods share:
        session_id: The host's id of a session, at most 512 characters. What reads or changes a
            stored session raises ``NotFoundError`` if it was never watched.
        module: At most two specific folders of a path: ``smara/tasks`` for
            ``src/smara/tasks/store.py``; ``tests`` for all tests.
        modules: The modules the work is about, as for ``module``; none means the whole project.
        methodology: The name of a methodology: ``native``, ``tdd``, ``bmad`` or one that is
            installed. ``InvalidInputError`` if its rules are needed and there is none.
        work_unit: The piece of work that memories of the session belong to.
        limit: The most entries to return.
    """

    def __init__(
        self,
        store: BehaviorStore,
        memories: Memories,
        clock: Clock,
        new_id: IdMaker,
        counter: TokenCounter,
        models: Callable[[], ModelAccess | None],
        deadline_seconds: float = 30.0,
        evict: Callable[[], int] | None = None,
        is_watching: bool = True,
    ) -> None:
        super().__init__(store)
        self._is_watching = is_watching
        self._memories = memories
        self._counter = counter
        self._clock = clock
        self._evict = evict
        self._watcher = Watcher(store, clock)
        self._finalizer = Finalizer(
            store,
            self._watcher,
            RollingTables(store, new_id),
            memories=memories,
            clock=clock,
            models=models,
            deadline_seconds=deadline_seconds,
        )
        self._synthesis = Synthesis(
            store,
            self,
            memories,
            clock=clock,
            models=models,
            deadline_seconds=deadline_seconds,
        )

    # watching

    def observe(self, event: HostEvent) -> None:
        """Observe an event; it is stored with its turn.

        It is also stored by :meth:`checkpoint`. An event that was observed before changes nothing.

        Args:
            event: What a host reported; one without a usable session id is dropped.
        """
        if self._is_watching:
            self._watcher.observe(event)

    def observe_batch(
        self, events: Iterable[HostEvent], also: Callable[[Session], None] | None = None
    ) -> WatchResult:
        """Ingest events in one transaction; drop duplicates. Safe to repeat.

        Args:
            events: The events of any number of sessions.
            also: Writes what belongs to them in the same transaction.

        Returns:
            How many events were new, and how many were known.
        """
        return self._watcher.observe_batch(events if self._is_watching else (), also)

    def checkpoint(self, session_id: str, work_unit: WorkUnit | None = None) -> None:
        """Store a session's scratchpads and work state for successors."""
        self._watcher.flush(session_id)
        if work_unit is not None:
            text = redact(json.dumps(asdict(work_unit))).text
            with self._store.database.write() as session:
                row = self._store.get(session, session_id)
                self._store.put(
                    session, row.no, {"work_unit": text, "methodology": work_unit.methodology[:100]}
                )

    def restore(self, session_id: str) -> WatchedSession:
        """Return a session as stored; watching goes on from there."""
        self._watcher.forget(session_id)
        return self.session(session_id, is_whole=True)

    def pads(self, session_id: str) -> builtins.list[Pad]:
        """Return the scratchpads of a session's agents, the main agent's first.

        Empty for a session that was never watched.
        """
        return self._watcher.pads(session_id)

    def phase(self, session_id: str | None) -> Phase | None:
        """Return the phase of a watched session's work."""
        return phase_of(self.pads(session_id)) if session_id is not None else None

    def state_type(self, session_id: str, type: SessionType) -> None:
        """State the type of a session; it is not inferred then.

        Args:
            type: ``build``, ``insights``, ``roadmap``, ``terminal``, ``changelog``, ``spec`` or
                ``pr_review``.

        Raises:
            InvalidInputError: If there is no such type.
        """
        one_of(type, SESSION_TYPES, "type")
        self._watcher.flush(session_id)
        with self._store.database.write() as session:
            self._store.put(session, self._store.get(session, session_id).no, {"stated_type": type})

    # deciding

    def finalize(
        self,
        session_id: str,
        outcome: Outcome | None = None,
        *,
        type: SessionType | None = None,
        work_unit: WorkUnit | None = None,
    ) -> Finalized | None:
        """Decide on a session: type, outcome, and memories.

        What is not stated is read from what was done, see ``session_types``. One transaction; safe
        to repeat.

        Args:
            outcome: ``accepted``, ``failed`` or another outcome that you know; without it, read
                from tests and commits.
            type: The type, as for :meth:`state_type`; without it, the stated or inferred one.

        Returns:
            The type, the outcome and each finding with its verdict; ``None`` if nothing was heard
            of the session since it was last decided on.

        Raises:
            InvalidInputError: If the outcome or the type is none of these.
        """
        require_id(session_id, "session_id")
        if outcome is not None:
            one_of(outcome, OUTCOMES, "outcome")
        if type is not None:
            one_of(type, SESSION_TYPES, "type")
        return self._finalizer.finalize(session_id, FinalizeRequest(outcome, type, work_unit))

    def subtask_done(
        self, session_id: str, work_unit: WorkUnit, *, is_success: bool = True
    ) -> Finalized | None:
        """Record the end of a subtask; learn from long work.

        Up to the fifth subtask, and after a failure, what it showed is kept for the session's end.

        Args:
            is_success: False if the subtask failed: nothing is learned from it now.

        Returns:
            The decision, as of :meth:`finalize`; ``None`` if it waits for the end.
        """
        self.checkpoint(session_id, work_unit)
        with self._store.database.write() as session:
            row = self._store.get(session, session_id)
            if row.subtasks < SUBTASKS_PROMOTED_AFTER or not is_success:
                self._store.put(session, row.no, {"subtasks": row.subtasks + 1})
                return None
        return self._finalizer.finalize(
            session_id, FinalizeRequest("accepted", None, work_unit, is_over=False)
        )

    def work_unit_done(
        self, methodology: str, context: ExecutionContext, result: WorkUnitResult
    ) -> AddResult:
        """Record the end of a work unit and its outcome.

        A methodology with an ``on_complete`` of its own is told as well.

        Args:
            context: The agent's place in its method, with the session id.
            result: How the work ended, in how many steps, and which files it changed.

        Returns:
            The memory of the outcome; or why it was refused.

        Raises:
            InvalidInputError: If the context has no session id.
        """
        method = find_methodology(methodology)
        unit = method.work_unit_of(context)
        session_id = require_id(context.session_id, "session_id")
        new = outcome_of(unit, result, session_id)
        added = self._memories.add_many([new], by="system", actor="smara", session_id=session_id)[0]
        self.subtask_done(session_id, unit, is_success=result.ended == "success")
        complete = getattr(method, "on_complete", None)
        if callable(complete):
            complete(context, result, self._memories)
        return added

    def keep_work_state(
        self,
        session_id: str,
        output: str,
        *,
        methodology: str = "native",
        work_unit: WorkUnit | None = None,
    ) -> AddResult | None:
        """Record the work state that an agent leaves behind.

        Of sessions that are watched, the plan is read as well when they end.

        Args:
            output: The agent's last words; the methodology reads from them what is done and what
                remains.

        Returns:
            The memory; ``None`` if nothing remains to be done.
        """
        require_id(session_id, "session_id")
        state = find_methodology(methodology).work_state_of(redact(output).text)
        if not state.get("remaining"):
            return None
        new = work_state.memory_of(
            state,
            session_id,
            "",
            unit=work_unit,
            methodology=methodology,
            taint=(),
            supersedes=[
                each.id
                for each in self._memories.list(type="work_state", limit=50)
                if work_state.is_before(each, session_id, state, branch="")
                and not is_outranked((), each)
            ],
        )
        return self._memories.add_many([new], by="system", actor="smara", session_id=session_id)[0]

    def relay(
        self,
        methodology: str,
        source: str,
        target: str,
        *,
        modules: Sequence[str] = (),
        session_id: str | None = None,
        limit: int = 20,
    ) -> str:
        """Return the cited memories that one stage hands to the next.

        Of a session or of modules when they are named; nothing from outside that was not cleared.

        Args:
            source: The stage that hands over.
            target: The stage that goes on.
            session_id: Only what was learned in this session; without it, in all.
            limit: The most memories to hand over.

        Raises:
            InvalidInputError: If the methodology has no such hand-over.
        """
        method = find_methodology(methodology)
        relay = relay_of(method, source, target)
        filters: dict[str, Any] = {"types": list(relay.types)} if relay.types else {}
        if session_id is not None:
            filters["session_id"] = session_id
        return tell_relay(relay, self._memories_of(modules, limit, **filters), method)

    def remember_as(
        self, methodology: str, name: str, content: str, *, session_id: str, **fields: Any
    ) -> AddResult:
        """Add a memory of a methodology's own type.

        It is stored as the general type it is based on, with a tag.

        Args:
            name: The methodology's name of the type.
            content: The statement.
            **fields: Other fields of ``NewMemory``.

        Returns:
            The memory, or the duplicate, or why it was refused.

        Raises:
            InvalidInputError: If the methodology has no such type.
        """
        method = find_methodology(methodology)
        custom = custom_type_of(method, name)
        return self._memories.add(
            content,
            type=custom.base,
            session_id=session_id,
            tags=tuple(dict.fromkeys((*fields.pop("tags", ()), custom.tag))),
            methodology=method.id,
            **fields,
        )

    def run_due(self, limit: int = 8) -> JobsDone:
        """Run due work: ended sessions, modules, daily pruning.

        The first worker takes a job, so any number of workers may run. A job that fails does not
        stop the others. Finding out that nothing is due takes one look, and writes nothing.

        Args:
            limit: The most sessions to decide on.

        Returns:
            The results of all jobs, and how many of them failed.
        """
        now = self._clock.now_ms()
        with self._store.database.read() as session:
            ended = self._store.due(session, now - SILENT_SESSION_MS, limit)
            modules = self._synthesis.due(session)
            last = self._store.job_times(session)
        done = Counter[str]()
        for session_id in ended:
            try:
                finalized = self.finalize(session_id)
                done["promoted"] += len(finalized.promoted) if finalized is not None else 0
                done["finalized"] += 1
            except SmaraError as error:
                done["failed"] += 1
                log.warning("behavior.not_finalized", session=session_id, error=error.code)
        if ended:
            modules = self._store.ask(self._synthesis.due)
        jobs: tuple[tuple[str, str, int, Callable[[], int]], ...] = (
            ("synthesis", "synthesized", 0, lambda: len(self._synthesis.run(modules))),
            ("weekly", "synthesized", WEEK_MS, lambda: len(self._synthesis.weekly(now // WEEK_MS))),
            ("prune", "pruned", DAY_MS, self._prune),
            ("evict", "evicted", DAY_MS, self._evict or (lambda: 0)),
        )
        for name, result, every_ms, work in jobs:
            if every_ms and now - last.get(name, now - every_ms) < every_ms:
                continue
            if every_ms:
                with self._store.database.write() as session:
                    if not self._store.claim_job(session, name, now, every_ms=every_ms):
                        continue
            elif not modules:
                continue
            try:
                done[result] += work()
            except SmaraError as error:
                done["failed"] += 1
                log.warning("behavior.job_failed", job=name, error=error.code)
        return JobsDone(**done)

    def _prune(self) -> int:
        pruned = self._memories.prune()
        return len(pruned.deprecated) + len(pruned.deleted)

    def qa_report(
        self, text: str, *, session_id: str, work_unit: WorkUnit | None = None
    ) -> QaReportResult:
        """Remember the issues of a quality report.

        Each issue that names a file or a test becomes a memory (source ``qa_auto``), at most 30.
        Reports of linters and test runs, JSON, SARIF, JUnit, lists, tables and blocks of fields are
        understood.

        Args:
            text: The report, as the tester or the tool wrote it.
            session_id: The session of the tester.

        Returns:
            The result for each issue, in their order, and what of the report was not understood.
        """
        methodology = work_unit.methodology if work_unit is not None else "native"
        verdicts, read = qa.read_report(redact(text).text)
        build = partial(new_memory, work_unit=work_unit, methodology=methodology)
        new = [
            build(verdict, verdict.draft.content, session_id)
            for verdict in verdicts[:MOST_ISSUES]
            if verdict.draft is not None
        ]
        return QaReportResult(
            tuple(self._memories.add_many(new, by="system", actor="smara", session_id=session_id)),
            left_out_count=len(verdicts[MOST_ISSUES:]),
            unread_count=read.unread_count,
            unread_lines=read.unread_lines,
        )

    # for each stage of the work

    def planner_context(
        self, modules: Sequence[str], task: str = "", methodology: str = "native"
    ) -> PlannerContext:
        """Return a planner's context: constraints, coupled files, estimates.

        Args:
            modules: Their names, or the last parts of them.
            task: What is planned; recipes of other places need two of its telling words.
        """
        modules = self._resolve_modules(modules)
        # Files that one reads to understand another need not change with it.
        sections = {
            kind.planner[0]: [
                each
                for each in self._memories_of(modules, kind.planner[1], type=kind.type)
                if each.data.get("reason") != import_chase.REASON
            ]
            for kind in KINDS.values()
            if kind.planner is not None
        }
        memories = [each for section in sections.values() for each in section]
        # The recipes of these modules, then those that share telling words with the task.
        telling = Statement(task).content_set
        recipes = [
            (each.is_of(modules), len(telling & Statement(each.content).content_set), each)
            for each in self._memories_of((), 50, type="workflow_recipe")
            if not (modules and each.modules) or each.is_of(modules)
        ]
        best = sorted((row for row in recipes if row[0] or row[1] > 1), key=lambda row: row[:2])
        sections["How it is done here"] = [each for *_, each in best[: -MOST_RECIPES - 1 : -1]]
        constraints = [
            f"Not again: {tried} ({why})" if tried and why else each.content
            for each in memories
            if each.type == "dead_end"
            for tried, why in [(each.data.get("approach_tried"), each.data.get("why_it_failed"))]
        ]
        files = [str(path) for each in memories for path in each.data.get("dependent_files", ())]
        estimates = [self.calibration(module, methodology) for module in modules]
        return PlannerContext(
            tell_sections(sections),
            max((each.factor for each in estimates if each is not None), default=1.0),
            tuple(constraints),
            further_files=tuple(dict.fromkeys(files)),
            memories=tuple(each for section in sections.values() for each in section),
        )

    def coder_files(
        self, modules: Sequence[str], read: Callable[[str], str | None]
    ) -> builtins.list[PrefetchedFile]:
        """Return the files such work reads, within 32,000 tokens, 12 files.

        Those that more than 80 % of the sessions on a module read, then those of more than 50 %.
        Not what a memory warns of: files that cost much, and files opened by mistake.

        Args:
            modules: The modules; one with fewer than three sessions adds no file.
            read: Returns the text of a path, or ``None`` if there is no such file.
        """
        modules = self._resolve_modules(modules)
        habits = [each for each in map(self.prefetch, modules) if each is not None]
        paths = [path for each in habits for path in each.always]
        paths += [path for each in habits for path in each.frequently]
        found: list[PrefetchedFile] = []
        left = CODER_TOKENS
        for path in worth_reading(self._memories, paths):
            text = read(path) if len(found) < CODER_FILES else None
            tokens = self._counter.count(text).tokens if text else 0
            if text and tokens <= left:
                found.append(PrefetchedFile(path, text, tokens))
                left -= tokens
        return found

    def qa_memories(self, modules: Sequence[str] = ()) -> dict[str, builtins.list[TypedMemory]]:
        """Return what is known to fail, by type, the most fleeting first."""
        modules, kinds = self._resolve_modules(modules), reversed(types_told_at("qa"))
        return {kind: self._memories_of(modules, MOST_FOR_QA, type=kind) for kind in kinds}

    def qa_context(self, modules: Sequence[str] = ()) -> str:
        """Return a tester's context before the first look."""
        found = self.qa_memories(modules)
        return tell_sections({kind.replace("_", " "): found[kind] for kind in found})

    def _memories_of(
        self, modules: Sequence[str], limit: int, **filters: Any
    ) -> builtins.list[TypedMemory]:
        """Return memories of modules, then those of no module, which hold for all.

        None of them is quarantined, stale or too unsure to be told.
        """
        page = self._memories.list(**filters, limit=MOST_LOOKED_AT if modules else limit)
        fit = [each for each in page if not (modules and each.modules) or each.is_of(modules)]
        fit.sort(key=lambda each: not each.modules and bool(modules))
        return [each.memory for each in self._memories.tellable(fit, is_requested=True)[:limit]]

    def step_limit(self, base: int, module: str, methodology: str = "native") -> int:
        """Return the step limit for work on a module, at most 400.

        Args:
            base: The limit without experience; it is at most doubled, once three estimates were
                compared.
        """
        estimates = [
            self.calibration(each, methodology) for each in self._resolve_modules([module])
        ]
        factor = max((each.factor for each in estimates if each is not None), default=1.0)
        return min(-(-round(base * factor * 1_000) // 1_000), MOST_STEPS)

    # asking

    def session(self, session_id: str, *, is_whole: bool = False) -> WatchedSession:
        """Return one session by its id, or the beginning of it.

        Args:
            is_whole: Whether the id is the whole one, never the beginning of another.

        Raises:
            NotFoundError: If no session was watched that begins so.
            InvalidInputError: If several begin so.
        """
        return self._store.ask(self._store.session, session_id, is_whole)

    def sessions(self, limit: int = 50, offset: int = 0) -> builtins.list[WatchedSession]:
        """Return watched sessions, the newest first.

        Args:
            offset: How many of the newest to skip.
        """
        rest = " ORDER BY last_event_at DESC, no DESC LIMIT ? OFFSET ?"
        return self._store.ask(self._store.sessions, rest, (limit, offset))

    def noticed(self, session_id: str) -> builtins.list[Noticed]:
        """Return what a session showed, with the verdicts and reasons."""
        with self._store.database.read() as session:
            return self._store.noticed(session, self._store.get(session, session_id).no)

    def status(self) -> BehaviorStatus:
        """Return the status of learning."""
        return self._store.ask(self._store.status)

    def synthesis_log(self, limit: int = 50) -> builtins.list[Synthesized]:
        """Return the log of syntheses, the newest first."""
        return self._synthesis.log(limit)

    def close(self) -> None:
        """Store what is only in memory, without delaying the caller."""
        try:
            self._watcher.flush()
        except SmaraError as error:
            log.warning("behavior.not_kept", error=error.code)
