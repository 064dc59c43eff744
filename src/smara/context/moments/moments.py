"""Decide what to inject at each point of an agent's work.

A session gets one pack at its start, and again when its context was emptied. After that it
gets only what is known about the file, command, error or search at hand: each thing once,
and a few in a session. Recall on every prompt was measured to make coding agents worse. Out
of time, or on a database error, nothing is injected. Every injection has a receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from smara.config import Settings
from smara.context.models import (
    BUDGETS,
    Injection,
    InjectionItem,
    Point,
    PointBudget,
    PrecomputedInjections,
    Receipt,
    ReceiptTotals,
)
from smara.context.moments.candidates import InstructionTexts, MemoryFinder
from smara.context.moments.draft import (
    Deadline,
    InjectionDraft,
    InjectionLine,
    make_draft,
    new_lines,
)
from smara.context.moments.experiment import may_say
from smara.context.moments.receipts import EMPTYING, ReceiptKeeper, SessionState, UseDetector
from smara.context.moments.store import MomentStore
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.ids import IdMaker
from smara.core.scope import require_id
from smara.environment import patience
from smara.errors import DeadlineError, InvalidInputError, SmaraError

if TYPE_CHECKING:
    from smara.behavior.behavior import Behavior
    from smara.behavior.habits import Habits
    from smara.behavior.methodology.contexts import PlannerContext, PrefetchedFile
    from smara.context.moments.start import RecentWork
    from smara.context.moments.tool_calls import ToolCallLookup
    from smara.knowledge.memories import Memories
    from smara.tasks.tasks import Tasks


FIRST_STEP = 5
"""Before this step an agent is still reading what it was given."""


@dataclass(frozen=True, slots=True)
class MomentSettings:
    """How much is said."""

    level: str = "full"
    """``full``, only at the ``start`` of sessions, or ``off``."""
    start_tokens: int = 2_400
    most_statements: int = 12
    has_scratchpad: bool = False
    has_prefetch: bool = False

    @classmethod
    def of(cls, settings: Settings) -> MomentSettings:
        """Return what the settings say about moments."""
        return cls(
            settings.moments,
            settings.moment_start_tokens,
            settings.moment_statements,
            has_scratchpad=settings.moment_scratchpad,
            has_prefetch=settings.moment_prefetch,
        )


@dataclass(frozen=True, slots=True)
class MomentParts:
    """What the room needs of others, each opened when it is first asked."""

    store: MomentStore
    clock: Clock
    new_id: IdMaker
    memories: Callable[[], Memories]
    behavior: Callable[[], Behavior]
    habits: Callable[[], Habits]
    lately: Callable[[], RecentWork]
    tasks: Callable[[], Tasks]
    search_pattern: Callable[[str], str | None]
    root: Callable[[], str | None]
    actor: str
    settings: MomentSettings


class Moments:
    """What agents of one project are told unasked, and the receipts of it."""

    def __init__(self, parts: MomentParts) -> None:
        self._parts = parts
        self._known = MemoryFinder(parts.memories, parts.root, parts.search_pattern)
        self._keeper = ReceiptKeeper(parts.store, parts.clock, parts.new_id)
        self._heeder = UseDetector(parts.store, parts.memories, parts.clock)

    # the points

    def start(
        self,
        session_id: str,
        *,
        source: str = "startup",
        agent: str = "",
        cwd: str = "",
        files: Sequence[str] = (),
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """The pack of a session: what is known, confirmed first, where work was left, what is to be
        done.

        ``known_texts`` are the instruction files that the agent has read by itself: what they say
        is left out, as is what this session was told before. After ``source="compact"`` or
        ``"clear"`` it is said again.
        """
        is_emptied = source in EMPTYING

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            return self._start_draft(
                session_id,
                source,
                cwd,
                files=files,
                known_texts=known_texts,
                told=standing.told,
                deadline=deadline,
            )

        return self._say("start", session_id, find, source, agent, is_emptied)

    def first_message(self, session_id: str, text: str) -> Injection | None:
        """How far the work stands that a session's first message is about, if it says so."""

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            from smara.context.moments.triggers import matching, subjects

            found = matching(subjects(self._known, self._parts.tasks()), text)
            deadline.check()
            return make_draft(new_lines(found, standing.told), BUDGETS["first_message"])

        return self._say("first_message", session_id, find) if text.strip() else None

    def before_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        *,
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """What is known about a call that is about to be made: it failed here before, or its file
        has traps.

        It advises: nothing that it says can keep a call from being made. What stands in
        ``known_texts`` is left out.
        """
        from smara.context.moments.tool_calls import call_of

        call = call_of(tool, tool_input)
        if not (call.command or call.files):
            return None
        return self._say(
            "before_tool",
            session_id,
            lambda standing, _: self._tool_draft(
                "before_tool", self._tools.before(call), standing, known_texts=known_texts
            ),
        )

    def after_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        output: str = "",
        error: str | None = None,
        *,
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """What is known about the file just opened, the error just met, or the search just made.

        What stands in ``known_texts``, the agent's own instruction files, is left out.
        """
        from smara.context.moments.tool_calls import call_of

        call = call_of(tool, tool_input)
        if not (call.files or call.pattern or call.command):
            return None

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            return self._tool_draft(
                "after_tool",
                self._tools.after(call, output, error),
                standing,
                known_texts=known_texts,
            )

        return self._say("after_tool", session_id, find)

    def between_steps(
        self,
        session_id: str,
        step: int,
        recent: Sequence[Mapping[str, Any] | HostEvent] = (),
        *,
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """What the newest calls of a session bring up, for agents that ask before each step.

        Each of ``recent`` is an event, or a mapping with ``tool``, ``tool_input`` and perhaps
        ``output`` and ``error``. On: what is known about files just touched, searches already
        answered, commands that failed before. Off unless set: what the session itself has noted
        (``moment_scratchpad``), the contents of files that such work always reads
        (``moment_prefetch``).
        """
        if step < FIRST_STEP:
            return None

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            from smara.context.moments.stages import read_ahead, step_lines

            chosen = self._parts.settings
            lines = step_lines(
                self._tools,
                self._known,
                recent,
                session_id=session_id if chosen.has_scratchpad else None,
                deadline=deadline,
            )
            draft = self._tool_draft("between_steps", lines, standing, known_texts=known_texts)
            if draft is not None or not chosen.has_prefetch:
                return draft
            ahead = new_lines(read_ahead(self._known, self._parts.habits(), recent), standing.told)
            return make_draft(ahead, BUDGETS["coder"])

        return self._say("between_steps", session_id, find)

    def _tool_draft(
        self,
        point: Point,
        lines: Iterable[InjectionLine],
        standing: SessionState,
        known_texts: Sequence[str],
    ) -> InjectionDraft | None:
        texts = InstructionTexts(known_texts)
        new = [
            each
            for each in new_lines(lines, standing.told)
            if not self._stands_in(texts, each.item)
        ]
        return make_draft(new, BUDGETS[point])

    def _stands_in(self, texts: InstructionTexts, item: InjectionItem | None) -> bool:
        if item is None or item.kind != "memory":
            return False
        memory = self._known.memories.find(item.id)
        return memory is not None and texts.say(memory)

    def _say(
        self,
        point: Point,
        session_id: str,
        find: Callable[[SessionState, Deadline], InjectionDraft | None],
        source: str = "",
        agent: str = "",
        is_emptied: bool = False,
    ) -> Injection | None:
        """Find something to say within the time of a point, and keep its receipt; trouble is
        silence.
        """
        require_id(session_id, "session_id")
        if not self._is_on(point):
            return None
        try:
            self._load(point)
            deadline = Deadline(self._parts.clock, BUDGETS[point].seconds * patience())
            standing = self._keeper.standing(session_id, is_emptied)
            if point != "start" and standing.row.statements >= self._parts.settings.most_statements:
                return None
            if not may_say(standing.row.arm, point) and standing.row.arm == "passive":
                return None
            draft = find(standing, deadline)
            deadline.check()
            if draft is None:
                if is_emptied:
                    self._keeper.empty(session_id, standing)
                return None
            return self._keeper.keep(
                point, session_id, draft, standing, source, agent, deadline.elapsed_ms
            )
        except DeadlineError:
            log.warning("moments.out_of_time", point=point)
        except SmaraError as error:
            log.warning("moments.failed", point=point, error=error.code)
        except Exception as error:  # noqa: BLE001 - the agent's turn must not die of its memory
            log.warning("moments.failed", point=point, error=type(error).__name__)
        return None

    def _load(self, point: Point) -> None:
        """Load what a point needs: the first time takes longer than looking does, and must not end
        in silence.
        """
        if point == "start":
            import smara.context.moments.start

            self._parts.lately()
        elif point == "first_message":
            import smara.context.moments.triggers  # noqa: F401 - to have it loaded

            self._parts.tasks()
        else:
            self._tools  # noqa: B018 - made by being looked at
        self._known.memories  # noqa: B018

    def _is_on(self, point: Point) -> bool:
        level = self._parts.settings.level
        return level == "full" or (level == "start" and point == "start")

    def _start_draft(
        self,
        session_id: str,
        source: str,
        cwd: str,
        files: Sequence[str],
        known_texts: Sequence[str],
        told: set[str],
        deadline: Deadline,
    ) -> InjectionDraft | None:
        from smara.context.moments.start import StartRequest, start_draft

        wanted = StartRequest(
            session_id,
            source,
            cwd,
            files=files,
            known_texts=known_texts,
            told=told,
            budget=self._start_budget,
        )
        return start_draft(self._known, self._parts.lately(), wanted, deadline=deadline)

    @property
    def _start_budget(self) -> PointBudget:
        most = BUDGETS["start"]
        return most._replace(tokens=min(most.tokens, self._parts.settings.start_tokens))

    @cached_property
    def _tools(self) -> ToolCallLookup:
        from smara.context.moments.tool_calls import ToolCallLookup

        return ToolCallLookup(self._known, self._parts.habits())

    # made ahead

    def preview(
        self,
        *,
        agent: str = "",
        cwd: str = "",
        files: Sequence[str] = (),
        known_texts: Sequence[str] = (),
    ) -> Injection:
        """What a new session would begin with now, byte for byte; nothing is written, and an empty
        text is silence.

        Of an experiment's sessions this is what those of the arms that hear it are told. Trouble is
        raised.
        """
        draft = None
        if self._is_on("start"):
            deadline = Deadline(self._parts.clock, float("inf"))
            draft = self._start_draft(
                "",
                "startup",
                cwd,
                files=files,
                known_texts=known_texts,
                told=set(),
                deadline=deadline,
            )
        text, tokens, items = draft if draft is not None else ("", 0, ())
        return Injection(text, tokens, "start", items=items, source="startup", agent=agent)

    def prepared(
        self, *, agent: str = "", cwd: str = "", known_texts: Sequence[str] = ()
    ) -> PrecomputedInjections:
        """Everything that a new session may be told, for hooks that have no time to open a store;
        nothing is written.

        Where sessions take part in an experiment, whoever says it has to look at their arm
        (:mod:`.arms`).
        """
        has_arms = self._keeper.has_arms()
        start = self.preview(agent=agent, cwd=cwd, known_texts=known_texts)
        said = start if start.text else None
        if not self._is_on("first_message"):
            return PrecomputedInjections(said, has_arms=has_arms)
        from smara.context.moments.triggers import message_triggers, subjects, tool_triggers

        firsts = message_triggers(subjects(self._known, self._parts.tasks()))
        tools = tool_triggers(
            self._known, self._tools, self._parts.habits(), texts=InstructionTexts(known_texts)
        )
        return PrecomputedInjections(
            said,
            tuple(firsts),
            tuple(tools),
            most_said=self._parts.settings.most_statements,
            has_arms=has_arms,
        )

    def deliver(
        self,
        told: Mapping[str, Any] | Injection,
        *,
        session_id: str,
        source: str = "",
        at_ms: int,
        is_said: bool = True,
    ) -> bool:
        """Write the receipt of something that was said as it had been prepared; safe to repeat.

        ``told`` is a ``Told`` or the mapping of its fields. ``False`` when the receipt was there
        already. ``is_said`` is false for what a session of the control arm would have been told.
        """
        return self._keeper.deliver(told, session_id, source, at_ms, is_said)

    # receipts

    def mark_delivered(self, receipt_id: str) -> bool:
        """What was said was handed to the host; ``False`` when that was known, or when it was not
        to be said.
        """
        return self._keeper.mark_delivered(receipt_id)

    def reached(self, session_id: str, words: Sequence[tuple[int, str]]) -> int:
        """Words that the host's record of a session shows, each with its time, have reached the
        model.

        How many receipts tell it now that did not before. Safe to repeat.
        """
        return self._keeper.reached(session_id, words)

    def mark_used(self, receipt_id: str, how: str) -> Receipt:
        """Say that what was told was used, and by what that is known. No memory counts as verified
        by it.
        """
        return self._keeper.mark_used(receipt_id, how)

    def heed(self, events: Sequence[HostEvent]) -> int:
        """Look in what happened for signs that what was told is used; how much was settled. Safe to
        repeat.
        """
        return self._heeder.heed(events)

    def receipt(self, receipt_id: str) -> Receipt:
        """One receipt, by its id or the beginning of it; ``NotFoundError`` when there is none."""
        return self._keeper.get(receipt_id)

    def receipts(
        self, session_id: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[Receipt]:
        """Receipts, of one session or of all, the newest first."""
        return self._keeper.list(session_id, limit, offset)

    def totals(self) -> ReceiptTotals:
        """All receipts in numbers."""
        with self._parts.store.database.read() as session:
            return self._parts.store.totals(session)

    # the experiment

    @property
    def has_arms(self) -> bool:
        """Whether the sessions of this project take part in an experiment: some are told nothing,
        or less.
        """
        return self._keeper.has_arms()

    def set_arms(self, is_on: bool, *, actor: str | None = None) -> None:
        """Let the sessions of this project take part in an experiment from now on, or no longer."""
        if not isinstance(is_on, bool):
            raise InvalidInputError(f"is_on must be true or false; got {is_on!r}.", field="is_on")
        store, now = self._parts.store, self._parts.clock.now_ms()
        with store.database.write() as session:
            store.put_arms(session, is_on, now, actor=(actor or self._parts.actor)[:200])

    # for agents that work by a plan

    def for_planner(
        self,
        modules: Sequence[str],
        task: str = "",
        *,
        methodology: str = "native",
        session_id: str | None = None,
    ) -> PlannerContext:
        """What to know before planning: constraints, files that must follow, how estimates went;
        see ``behavior``.

        With a ``session_id`` it has a receipt.
        """
        from smara.context.moments.stages import inject_planner

        return inject_planner(
            self._parts.behavior().planner_context(modules, task, methodology),
            self._known,
            self._keeper,
            session_id=session_id,
        )

    def for_coder(
        self,
        modules: Sequence[str],
        read: Callable[[str], str | None],
        *,
        session_id: str | None = None,
    ) -> list[PrefetchedFile]:
        """The files that such work reads, within 32,000 tokens and 12 files; ``read`` gives the
        text of a path.
        """
        from smara.context.moments.stages import inject_coder

        return inject_coder(
            self._parts.behavior().coder_files(modules, read), self._keeper, session_id
        )

    def for_qa(self, modules: Sequence[str] = (), *, session_id: str | None = None) -> str:
        """What a tester should know before the first look: what was seen to fail, what is
        required.
        """
        from smara.context.moments.stages import inject_qa

        return inject_qa(self._known, modules, self._keeper, session_id=session_id)

    def step_limit(self, base: int, module: str, methodology: str = "native") -> int:
        """How many steps an agent may take for work on a module, by how such work went; at most
        twice as many.
        """
        return self._parts.behavior().step_limit(base, module, methodology)
