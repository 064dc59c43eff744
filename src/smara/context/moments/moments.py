"""Decide what to inject at each point of an agent's work.

A session gets one pack at its start, and again when its context was emptied. After that it
gets only what is known about the file, command, error or search at hand: each thing once,
and a few in a session. Recall on every prompt was measured to make coding agents worse. Out
of time, or on a database error, nothing is injected. Every injection has a receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from smara.config import Settings
from smara.context.models import (
    BUDGETS,
    Injection,
    Point,
    PrecomputedInjections,
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
from smara.context.moments.start import RecentWork, StartRequest, start_draft
from smara.context.moments.store import MomentStore
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.ids import IdMaker
from smara.core.scope import require_id
from smara.core.startup.record import dataclass
from smara.environment import patience
from smara.errors import DeadlineError, SmaraError
from smara.knowledge.store import seen_in

if TYPE_CHECKING:
    from smara.behavior.behavior import Behavior
    from smara.behavior.habits import Habits
    from smara.behavior.methodology import PlannerContext, PrefetchedFile
    from smara.commits.commits import Commits
    from smara.context.moments.tool_calls import ToolCallLookup
    from smara.decisions.decisions import Decisions
    from smara.knowledge.memories import Memories
    from smara.tasks.tasks import Tasks


FIRST_STEP = 5
"""Before this step an agent is still reading what it was given."""


@dataclass(frozen=True, slots=True)
class MomentParts:
    """The other rooms, each opened on first use."""

    store: MomentStore
    clock: Clock
    new_id: IdMaker
    memories: Callable[[], Memories]
    behavior: Callable[[], Behavior]
    habits: Callable[[], Habits]
    lately: RecentWork
    tasks: Callable[[], Tasks]
    commits: Callable[[], Commits]
    decisions: Callable[[], Decisions]
    search_pattern: Callable[[str], str | None]
    root: Callable[[], str | None]
    actor: str
    settings: Settings


class Moments(ReceiptKeeper):
    """The injections into the sessions of one project, and their receipts."""

    def __init__(self, parts: MomentParts) -> None:
        super().__init__(parts.store, parts.clock, parts.new_id, actor=parts.actor)
        self._parts = parts
        self._finder = MemoryFinder(parts.memories, parts.root, parts.search_pattern)
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
        """Return the pack of a session: knowledge, last work, tasks.

        Args:
            session_id: The session; it is told nothing that it was told before.
            source: Why it begins; after ``compact`` or ``clear`` everything is said again.
            agent: The host, for the receipt.
            cwd: The folder it works in.
            files: The files at hand.
            known_texts: The agent's own instruction files; what they say is left out.

        Returns:
            The injection, or None if there is nothing to say.
        """
        return self._say(
            "start",
            session_id,
            lambda standing, deadline: self._start_draft(
                session_id,
                source,
                cwd,
                files=files,
                known_texts=known_texts,
                old_keys=standing.old_keys,
                deadline=deadline,
            ),
            source=source,
            agent=agent,
            is_emptied=source in EMPTYING,
        )

    def first_message(
        self, session_id: str, text: str, *, is_first: bool = True
    ) -> Injection | None:
        """Return decisions about a message, and the work it names.

        Args:
            session_id: The host's id of the session.
            text: What the person wrote; an empty one names nothing.
            is_first: False for a later message; then only decisions are told.

        Returns:
            The injection, or None if nothing is known about the message's subject.
        """

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            from smara.context.moments.triggers import MOST, decided, matching, subjects

            found = decided(self._parts.decisions(), text)
            found = new_lines(found, standing.old_keys, standing.heard_in(session_id))[:MOST]
            deadline.check()
            if is_first:
                found += matching(subjects(self._finder, self._parts.tasks()), text)
            return make_draft(new_lines(found, standing.old_keys), BUDGETS["first_message"])

        return self._say("first_message", session_id, find) if text.strip() else None

    def before_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        *,
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """Return what is known about a call before it is made.

        That it failed here before, or that its file has traps. It advises: nothing that it says can
        keep a call from being made.

        Args:
            session_id: The session.
            tool: The name of the tool.
            tool_input: Its arguments.
            known_texts: The agent's own instruction files; what they say is left out.
        """
        from smara.context.moments.tool_calls import call_of

        call = call_of(tool, tool_input)
        if not (call.command or call.files):
            return None
        return self._say(
            "before_tool",
            session_id,
            lambda standing, _: self._tool_draft(
                "before_tool",
                self._tools.before(call),
                standing,
                session_id=session_id,
                known_texts=known_texts,
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
        """Return what is known about a call just made.

        Args:
            session_id: The session.
            tool: The name of the tool.
            tool_input: Its arguments.
            output: What it answered.
            error: What went wrong.
            known_texts: The agent's own instruction files; what they say is left out.
        """
        from smara.context.moments.tool_calls import call_of

        call = call_of(tool, tool_input)
        if not (call.files or call.pattern or call.command):
            return None

        return self._say(
            "after_tool",
            session_id,
            lambda standing, _: self._tool_draft(
                "after_tool",
                self._tools.after(call, output, error),
                standing,
                session_id=session_id,
                known_texts=known_texts,
            ),
        )

    def between_steps(
        self,
        session_id: str,
        step: int,
        recent: Sequence[Mapping[str, Any] | HostEvent] = (),
        *,
        known_texts: Sequence[str] = (),
    ) -> Injection | None:
        """Return what the newest calls bring up.

        On: what is known about files just touched, searches already answered, commands that failed
        before. Off unless set: what the session itself has noted (``moment_scratchpad``), the
        contents of files that such work always reads (``moment_prefetch``).

        Args:
            session_id: The session.
            step: The number of the step; the first ones are told nothing.
            recent: Events, or mappings with ``tool``, ``tool_input``, ``output`` and ``error``.
            known_texts: The agent's own instruction files; what they say is left out.
        """
        if step < FIRST_STEP:
            return None

        def find(standing: SessionState, deadline: Deadline) -> InjectionDraft | None:
            from smara.context.moments.stages import read_ahead, step_lines

            chosen = self._parts.settings
            lines = step_lines(
                self._tools,
                self._finder,
                recent,
                session_id=session_id if chosen.moment_scratchpad else None,
                deadline=deadline,
            )
            draft = self._tool_draft(
                "between_steps", lines, standing, session_id=session_id, known_texts=known_texts
            )
            if draft is not None or not chosen.moment_prefetch:
                return draft
            ahead = new_lines(
                read_ahead(self._finder, self._parts.habits(), recent), standing.old_keys
            )
            return make_draft(ahead, BUDGETS["coder"])

        return self._say("between_steps", session_id, find)

    def _tool_draft(
        self,
        point: Point,
        lines: Iterable[InjectionLine],
        standing: SessionState,
        *,
        session_id: str,
        known_texts: Sequence[str],
    ) -> InjectionDraft | None:
        texts = InstructionTexts(known_texts)
        new = new_lines(lines, standing.old_keys, standing.heard_in(session_id))
        ids = (each.item.id for each in new if each.item and each.item.kind == "memory")
        memories = filter(None, map(self._finder.memories.find, ids))
        read = {memory.id for memory in memories if texts.say(memory)}
        unread = [each for each in new if each.item is None or each.item.id not in read]
        return make_draft(unread, BUDGETS[point])

    def _say(
        self,
        point: Point,
        session_id: str,
        find: Callable[[SessionState, Deadline], InjectionDraft | None],
        source: str = "",
        agent: str = "",
        is_emptied: bool = False,
    ) -> Injection | None:
        """Find something to say in the time of a point, and write its receipt."""
        require_id(session_id, "session_id")
        if not self._is_on(point):
            return None
        try:
            self._load(point)
            deadline = Deadline(self._parts.clock, BUDGETS[point].seconds * patience())
            standing = self.standing(session_id, is_emptied)
            most, row = self._parts.settings.moment_statements, standing.row
            if (point != "start" and row.statements >= most) or (
                row.arm == "passive" and not may_say(row.arm, point)
            ):
                return None
            with seen_in(session_id):
                draft = find(standing, deadline)
            deadline.check()
            if draft is None:
                if is_emptied:
                    self.empty(session_id, standing)
                return None
            return self.keep(
                point,
                session_id,
                draft,
                standing,
                source=source,
                agent=agent,
                elapsed_ms=deadline.elapsed_ms,
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
        if point == "first_message":
            import smara.context.moments.triggers  # noqa: F401 - to have it loaded

            self._parts.tasks()
        elif point != "start":
            self._tools  # noqa: B018 - made by being looked at
        self._finder.memories  # noqa: B018

    def _is_on(self, point: Point) -> bool:
        level = self._parts.settings.moments
        return level == "full" or (level == "start" and point == "start")

    def _start_draft(
        self,
        session_id: str,
        source: str,
        cwd: str,
        files: Sequence[str],
        known_texts: Sequence[str],
        old_keys: set[str],
        deadline: Deadline,
        accepted: Sequence[str] = (),
        trust_level: int | None = None,
    ) -> InjectionDraft | None:
        most = BUDGETS["start"]
        request = StartRequest(
            session_id,
            source,
            cwd,
            files=files,
            known_texts=known_texts,
            old_keys=old_keys,
            budget=most._replace(tokens=min(most.tokens, self._parts.settings.moment_start_tokens)),
            accepted=accepted,
            trust_level=trust_level,
        )
        return start_draft(self._finder, self._parts.lately, request, deadline=deadline)

    @cached_property
    def _tools(self) -> ToolCallLookup:
        from smara.context.moments.tool_calls import ToolCallLookup

        return ToolCallLookup(self._finder, self._parts.habits(), self._parts.commits)

    # made ahead

    def preview(
        self,
        *,
        agent: str = "",
        cwd: str = "",
        files: Sequence[str] = (),
        known_texts: Sequence[str] = (),
        accepted: Sequence[str] = (),
        trust_level: int | None = None,
    ) -> Injection:
        """Return what a new session would begin with now; nothing is written.

        In an experiment this is what the arms that are told everything would get.

        Args:
            agent: The host.
            cwd: The folder it works in.
            files: The files at hand.
            known_texts: The agent's own instruction files; what they say is left out.
            accepted: Memories in review, as if a person had accepted them.
            trust_level: The level of trust, instead of the one in force.

        Returns:
            The injection; its text is empty if there is nothing to say.
        """
        draft = None
        if self._is_on("start"):
            draft = self._start_draft(
                "",
                "startup",
                cwd,
                files=files,
                known_texts=known_texts,
                old_keys=set(),
                deadline=Deadline(self._parts.clock, float("inf")),
                accepted=accepted,
                trust_level=trust_level,
            )
        text, tokens, items = draft if draft is not None else ("", 0, ())
        return Injection(text, tokens, "start", items=items, source="startup", agent=agent)

    def prepared(
        self, *, agent: str = "", cwd: str = "", known_texts: Sequence[str] = ()
    ) -> PrecomputedInjections:
        """Return all that a new session may be told, for hooks.

        Nothing is written. In an experiment the caller has to look at the session's arm
        (:mod:`.experiment`).

        Args:
            agent: The host.
            cwd: The folder it works in.
            known_texts: The agent's own instruction files; what they say is left out.
        """
        has_arms = self.has_arms
        start = self.preview(agent=agent, cwd=cwd, known_texts=known_texts)
        opening = start if start.text else None
        if not self._is_on("first_message"):
            return PrecomputedInjections(opening, has_arms=has_arms)
        from smara.context.moments.triggers import message_triggers, subjects, tool_triggers

        tools = tool_triggers(self._finder, self._parts.habits(), InstructionTexts(known_texts))
        return PrecomputedInjections(
            opening,
            tuple(message_triggers(subjects(self._finder, self._parts.tasks()))),
            tuple(tools),
            most_said=self._parts.settings.moment_statements,
            has_arms=has_arms,
        )

    def heed(self, events: Sequence[HostEvent]) -> int:
        """Look for signs that injections are used; return how much was settled.

        Args:
            events: What hosts reported, of any number of sessions, in any order.
        """
        return self._heeder.heed(events)

    # for agents that work by a plan

    def for_planner(
        self,
        modules: Sequence[str],
        task: str = "",
        *,
        methodology: str = "native",
        session_id: str | None = None,
    ) -> PlannerContext:
        """Return what to know before planning: constraints, files that must follow, estimates.

        Args:
            modules: The modules that the plan is about.
            task: The task, in words.
            methodology: How the agent plans.
            session_id: The session; without it no receipt is written.
        """
        from smara.context.moments.stages import inject_planner

        with seen_in(session_id):
            context = self._parts.behavior().planner_context(modules, task, methodology)
            return inject_planner(context, self._finder, self, session_id=session_id)

    def for_coder(
        self,
        modules: Sequence[str],
        read: Callable[[str], str | None],
        *,
        session_id: str | None = None,
    ) -> list[PrefetchedFile]:
        """Return the files that such work reads, within limits.

        Args:
            modules: The modules that are worked on.
            read: Returns the text of a path, or None.
            session_id: The session; without it no receipt is written.
        """
        from smara.context.moments.stages import inject_coder

        return inject_coder(self._parts.behavior().coder_files(modules, read), self, session_id)

    def for_qa(self, modules: Sequence[str] = (), *, session_id: str | None = None) -> str:
        """Return what a tester should know.

        Args:
            modules: The modules that are tested.
            session_id: The session; without it no receipt is written.
        """
        from smara.context.moments.stages import inject_qa

        with seen_in(session_id):
            found = self._parts.behavior().qa_memories(modules).values()
        memories = [memory for each in found for memory in each]
        return inject_qa(self._finder, memories, self, session_id=session_id)

    def step_limit(self, base: int, module: str, methodology: str = "native") -> int:
        """Return how many steps work on a module may take.

        Args:
            base: The limit without experience; at most doubled by it, up to 400.
            module: The module, such as ``smara/tasks``.
            methodology: The methodology whose estimates count.
        """
        return self._parts.behavior().step_limit(base, module, methodology)
