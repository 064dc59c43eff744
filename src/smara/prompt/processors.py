"""Build the context before a model call and observe after it.

Observation may take longer than a turn can wait; then it goes on in its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.deadline import run_within
from smara.core.startup.record import dataclass
from smara.core.tokens import TokenCounter
from smara.database.projects import ProjectContext
from smara.errors import SmaraError
from smara.messages.messages import History, Messages
from smara.messages.models import Message, MessageSize, NewMessage, Thread
from smara.messages.threads import Threads
from smara.observations.models import AgentMode
from smara.observations.observations import Observations
from smara.prompt.models import Context, ContextMessage, ContextReceipt, Section
from smara.prompt.sections import (
    days_of,
    incoming_message,
    others_section,
    section,
    stable_sections,
    stored_messages,
    summaries_section,
    task_section,
    time_section,
)
from smara.prompt.window import Frame, ThreadWindow, measure
from smara.working.working import Working

_OTHERS_TOKENS = 2_000
_MOST_CACHED = 64
_MOST_READERS = 1_000
_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The settings of contexts."""

    is_enabled: bool = True
    is_read_only: bool = False
    scope: str = "thread"
    timezone: str = "UTC"
    last_messages: int = 10
    wants_suggested_response: bool = False
    has_line_ids: bool = False
    block_deadline_seconds: float = 10.0
    activate_after_idle_ms: int = 1_800_000

    @classmethod
    def of(cls, project: ProjectContext) -> ContextSettings:
        """Return what the project's settings say about contexts."""
        settings = project.settings
        return cls(
            settings.observe_enabled,
            settings.observe_read_only,
            settings.observe_scope,
            timezone=project.timezone,
            last_messages=settings.last_messages,
            wants_suggested_response=settings.suggest_response,
            has_line_ids=settings.observation_ids,
            block_deadline_seconds=settings.block_deadline_seconds,
            activate_after_idle_ms=settings.activate_after_idle_minutes * 60_000,
        )


class _Drawn(NamedTuple):
    """What does not change until other observations are active: their ids, their text, their
    days.
    """

    ids: tuple[str, ...]
    sections: tuple[Section, ...]
    days: tuple[tuple[str, int], ...]


_NOTHING = _Drawn((), (), ())


class Processors:
    """Memory's part in an agent's loop, step by step."""

    def __init__(
        self,
        messages: Messages,
        threads: Threads,
        observations: Observations,
        working: Working,
        counter: TokenCounter,
        clock: Clock,
        settings: ContextSettings,
    ) -> None:
        self._messages = messages
        self._threads = threads
        self._observations = observations
        self._working = working
        self._counter = counter
        self._clock = clock
        self._settings = settings
        self._drawn: dict[tuple[str, int], _Drawn] = {}
        self._readers: dict[str, str] = {}

    # on the way in

    def process_input(
        self,
        thread_id: str,
        incoming: Sequence[Mapping[str, Any] | NewMessage] = (),
        *,
        step: int = 0,
        mode: AgentMode = "default",
        model: str | None = None,
        resource_id: str | None = None,
        deadline_seconds: float | None = None,
    ) -> Context:
        """Return the context of one step: memory, then the messages, then ``incoming``.

        Nothing is stored here. It never raises: with trouble in memory the incoming messages come
        back alone.

        Args:
            thread_id: The conversation.
            incoming: Messages that are not stored yet.
            step: The number of the step in the agent's turn; what is given does not depend on it.
            mode: What the agent does; it moves the thresholds of observation.
            model: Who will read the context. A model other than the last one has nothing cached,
                nor has one after a long silence; then what was observed is shown early.
            resource_id: Whom the conversation belongs to, if it is new; by default whom the
                settings name. What is known of them is there from the first turn.
            deadline_seconds: How long to wait for an observation that is due.
        """
        given = tuple(incoming_message(each) for each in incoming)
        try:
            thread = self._threads.find(thread_id)
            if thread is None:
                new = self._threads.planned(thread_id, resource_id)
                return self._build(new, given, mode, waited=0.0, notes=[])
            before = self._readers.get(thread.id)
            if model is not None:
                if len(self._readers) >= _MOST_READERS:
                    self._readers.clear()
                self._readers[thread.id] = model
            idle_ms = self._clock.now_ms() - thread.updated_at
            # The reader has nothing of this conversation cached.
            is_cold = idle_ms >= self._settings.activate_after_idle_ms or (
                model is not None and before is not None and before != model
            )
            waited, notes = self._advance(thread, mode, is_cold, deadline_seconds=deadline_seconds)
            # Read again: activating may have told the thread its task, and a person may have
            # spoken.
            return self._build(
                self._threads.find(thread_id) or thread, given, mode, waited=waited, notes=notes
            )
        except SmaraError as error:
            log.warning("context.failed", error=error.code)
            return Context(
                (), given, ContextReceipt(thread_id, notes=(f"memory was left out: {error}",))
            )
        except Exception as error:  # noqa: BLE001 - the agent's turn must not die of its memory
            log.warning("context.failed", error=type(error).__name__)
            return Context(
                (),
                given,
                ContextReceipt(thread_id, notes=("memory was left out: unexpected trouble",)),
            )

    def _advance(
        self, thread: Thread, mode: AgentMode, is_cold: bool, deadline_seconds: float | None
    ) -> tuple[float, list[str]]:
        """Let the cycle go on: buffer behind the scenes, activate, and past the limit wait, up to
        the deadline.
        """
        if not self._settings.is_enabled or self._settings.is_read_only:
            return 0.0, []
        due = self._observations.look_after(thread.id, mode=mode)
        if due.activates or is_cold:
            self._observations.activate(thread.id, mode=mode)
        ahead = self._observations.activate_reflection(thread.id, is_early=is_cold)
        notes = [ahead.error] if ahead.error and ahead.code != "in_progress" else []
        if not due.blocks:
            return 0.0, notes
        deadline = (
            self._settings.block_deadline_seconds if deadline_seconds is None else deadline_seconds
        )

        def observe(stop: threading.Event) -> None:
            """Observe what is pending and show all but the newest.

            Wait for another observer.
            """
            while self._observations.buffer(thread.id, mode=mode).code == "in_progress":
                # Another process does not say when it is done, so we look again.
                if stop.wait(_AGAIN_SECONDS):
                    return
            self._observations.activate(thread.id, mode=mode)

        started = self._clock.monotonic()
        try:
            run_within(observe, deadline, self._clock, thread_name="smara-observe")
        except TimeoutError:
            notes.append(
                "the observation took longer than the deadline; it goes on behind the scenes"
            )
        except Exception as error:  # noqa: BLE001 - a turn goes on without its observation
            log.warning("observations.failed", error=getattr(error, "code", type(error).__name__))
        return self._clock.monotonic() - started, notes

    def _build(
        self,
        thread: Thread,
        given: tuple[ContextMessage, ...],
        mode: AgentMode,
        *,
        waited: float,
        notes: list[str],
    ) -> Context:
        frame = self._frame(thread, mode)
        raw = (
            self._messages.list(
                thread_id=thread.id, after=frame.sizes[0].seq - 1, before=frame.sizes[-1].seq + 1
            )
            if frame.sizes
            else []
        )
        tokens: dict[str, int] = {}
        for each in frame.sections:
            tokens[each.name] = tokens.get(each.name, 0) + each.tokens
        receipt = ContextReceipt(
            thread.id,
            frame.observation_ids,
            tokens,
            message_tokens=sum(size.tokens for size in frame.sizes),
            left_out_messages=frame.left_out,
            waited_seconds=waited,
            notes=tuple(notes),
        )
        messages = (*stored_messages(raw, is_continued=frame.after > 0), *given)
        return Context(frame.sections, messages, receipt)

    def window(self, thread_id: str, *, mode: AgentMode = "default") -> ThreadWindow:
        """Measure the window of a thread and its next steps.

        Nothing is started, and no message is read for it.

        Args:
            thread_id: The conversation.
            mode: What the agent does; it moves the thresholds of observation.

        Returns:
            Sections and messages with their tokens, the limits and the tokens until each is met.

        Raises:
            NotFoundError: If there is no such thread.
        """
        thread = self._threads.get(thread_id)
        return measure(thread, self._frame(thread, mode), self._observations, mode)

    def _frame(self, thread: Thread, mode: AgentMode) -> Frame:
        """Return what fills a window, with the sizes of its messages."""
        settings = self._settings
        drawn = _NOTHING
        sections: list[Section] = []
        left_out = after = 0
        if settings.is_enabled:
            # In this order: with an activation in between, a message is shown twice rather than not
            # at all.
            observed = self._observations.observed_seq(thread.id) if thread.message_count else 0
            drawn = self._stable(thread)
            sections += drawn.sections
            after = observed if thread.raw_after is None else min(observed, thread.raw_after)
            most = self._observations.limits(mode).show_most
            sizes = self._messages.sizes(thread_id=thread.id, tokens=most, after=after)
            new = sum(size.seq > observed for size in sizes)
            left_out = max(0, thread.message_count - observed - new)
        else:
            last = self._messages.list(thread_id=thread.id, limit=settings.last_messages)
            sizes = [MessageSize(message.seq, message.token_count) for message in last]
            history = History(self._messages, self._counter)
            before = sizes[0].seq if sizes else 1
            earlier = history.window(thread.id, before=before, tokens=_OTHERS_TOKENS)
            summaries = summaries_section(earlier, self._counter)
            sections += [summaries] if summaries else []
        sections += self._around(thread, drawn)
        return Frame(tuple(sections), sizes, drawn.ids, after, left_out)

    def _stable(self, thread: Thread) -> _Drawn:
        """The active observations and their text, read and drawn once for each version of the
        record.
        """
        record = self._observations.record(thread.id, thread.resource_id)
        if record is None:
            return _NOTHING
        key = (record.id, record.version)
        if key not in self._drawn:
            if len(self._drawn) >= _MOST_CACHED:
                self._drawn.clear()
            active = self._observations.active(thread.id, thread.resource_id)
            self._drawn[key] = _Drawn(
                tuple(row.id for row in active),
                stable_sections(
                    active,
                    record.scope,
                    self._settings.timezone,
                    counter=self._counter,
                    has_ids=self._settings.has_line_ids,
                ),
                days_of(active, self._settings.timezone),
            )
        return self._drawn[key]

    def _around(self, thread: Thread, drawn: _Drawn) -> list[Section]:
        """What changes oftener: working memory, the task, other conversations, the time."""
        settings, counter = self._settings, self._counter
        found: list[Section | None] = []
        for scope, where in (
            ("resource", {"resource_id": thread.resource_id}),
            ("thread", {"thread_id": thread.id}),
        ):
            page = self._working.find(scope=scope, **where)  # type: ignore[arg-type]  # both are scopes
            if page is not None:
                text = self._working.render(scope=scope, **where)  # type: ignore[arg-type]
                found.append(section("working_memory", text, counter))
        found.append(task_section(thread, settings.wants_suggested_response, counter))
        if settings.is_enabled and settings.scope == "resource":
            unobserved = self._observations.unobserved_elsewhere(thread.id, thread.resource_id)
            found.append(
                others_section(unobserved, settings.timezone, _OTHERS_TOKENS, counter=counter)
            )
        if drawn.ids:
            last = thread.updated_at if thread.message_count else None
            now, timezone = self._clock.now_ms(), settings.timezone
            found.append(time_section(drawn.days, now, last, timezone=timezone, counter=counter))
        return [each for each in found if each is not None and each.text]

    # on the way out

    def process_output(
        self,
        thread_id: str,
        messages: Sequence[Mapping[str, Any] | NewMessage],
        *,
        mode: AgentMode = "default",
        resource_id: str | None = None,
        session_id: str | None = None,
    ) -> list[Message]:
        """Store what was said in a step, the person's words included.

        What could not be stored is logged, never raised. Call it behind the caller's own
        guardrails: what they abort was never said.

        Args:
            thread_id: The conversation.
            messages: The messages.
            mode: What the agent does; it moves the thresholds of observation.
            resource_id: Whom the conversation belongs to, if it is new.
            session_id: The run of the agent.

        Returns:
            The stored messages; empty if memory is read-only or failed.
        """
        if self._settings.is_read_only:
            return []
        try:
            stored = self._messages.add_many(
                thread_id=thread_id,
                messages=messages,
                resource_id=resource_id,
                session_id=session_id,
            )
        except SmaraError as error:
            log.warning("context.not_saved", error=error.code)
            return []
        if self._settings.is_enabled:
            try:
                self._observations.look_after(thread_id, mode=mode)
            except SmaraError as error:
                log.warning("observations.not_looked_after", error=error.code)
        return stored
