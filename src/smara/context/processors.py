"""Build the context before a model call and observe after it.

Observation may take longer than a turn can wait; then it goes on in its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from smara.context.models import Context, ContextMessage, ContextReceipt, Section
from smara.context.stack import (
    GAP_MS,
    PROMPTS,
    days_of,
    duration,
    others_section,
    section,
    stable_sections,
    task_section,
    time_section,
)
from smara.core import log
from smara.core.clock import Clock
from smara.core.prompts import load_prompt
from smara.core.tokens import TokenCounter
from smara.database.projects import ProjectContext
from smara.errors import SmaraError
from smara.messages.messages import Messages
from smara.messages.models import Message, NewMessage, Thread
from smara.messages.threads import Threads
from smara.observations.models import AgentMode
from smara.observations.observations import Observations
from smara.working.working import Working


def run_within(clock: Clock, seconds: float, action: Callable[[threading.Event], object]) -> bool:
    """Run an action for at most so long, by the clock; whether it ended in time.

    It goes on in its thread when it takes longer, and is told by its event that nobody waits
    any more. What it raises is logged: whoever waits wants to go on in any case.
    """
    done, is_over = threading.Event(), threading.Event()

    def run() -> None:
        try:
            action(is_over)
        except SmaraError as error:
            log.warning("observations.failed", error=error.code)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: nobody else would hear of it
            log.warning("observations.failed", error=type(error).__name__)
        finally:
            done.set()

    threading.Thread(target=run, name="smara-observe", daemon=True).start()
    try:
        return clock.wait_for(done, seconds)
    finally:
        is_over.set()  # also for a KeyboardInterrupt: nobody waits any more


_OTHERS_TOKENS = 2_000
_MOST_CACHED = 64
_MOST_READERS = 1_000
_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What goes into a context."""

    is_enabled: bool = True
    is_read_only: bool = False
    scope: str = "thread"
    timezone: str = "UTC"
    last_messages: int = 10
    wants_suggested_response: bool = False
    block_deadline_seconds: float = 10.0
    activate_after_idle_ms: int = 1_800_000
    most_message_tokens: int = 60_000
    """More raw messages than this are not given, however much is pending."""

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
            block_deadline_seconds=settings.block_deadline_seconds,
            activate_after_idle_ms=settings.activate_after_idle_minutes * 60_000,
            most_message_tokens=2 * settings.observe_after_tokens,
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
        deadline_seconds: float | None = None,
    ) -> Context:
        """The context of one step: what is remembered, then the messages, then ``incoming``.

        ``model`` names who will read it: another one than last time has nothing cached, and neither
        has one that was silent for long, so then what was observed is shown early. Nothing is
        stored here. Never raises: with trouble in memory the incoming messages come back alone.
        """
        given = tuple(_as_context(each) for each in incoming)
        try:
            thread = self._threads.find(thread_id)
            if thread is None:
                return Context((), given, ContextReceipt(thread_id))
            waited, notes = self._advance(
                thread, mode, self._is_cold(thread, model), deadline_seconds=deadline_seconds
            )
            # Read again: activating may have told the thread its task, and somebody may have
            # spoken.
            return self._build(
                self._threads.find(thread_id) or thread, given, step, waited=waited, notes=notes
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

    def _is_cold(self, thread: Thread, model: str | None) -> bool:
        """Whether the reader has nothing of this conversation cached."""
        before = self._readers.get(thread.id)
        if model is not None:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            self._readers[thread.id] = model
        is_idle = self._clock.now_ms() - thread.updated_at >= self._settings.activate_after_idle_ms
        return is_idle or (model is not None and before is not None and before != model)

    def _advance(
        self, thread: Thread, mode: AgentMode, is_cold: bool, deadline_seconds: float | None
    ) -> tuple[float, list[str]]:
        """Let the cycle go on: buffer behind the scenes, activate, and past the limit wait, up to
        the deadline.
        """
        if not self._settings.is_enabled or self._settings.is_read_only:
            return 0.0, []
        wanted = self._observations.look_after(thread.id, mode=mode)
        if wanted.activates or is_cold:
            self._observations.activate(thread.id, mode=mode)
        ahead = self._observations.activate_reflection(thread.id, is_early=is_cold)
        notes = [ahead.error] if ahead.error and ahead.code != "in_progress" else []
        if not wanted.blocks:
            return 0.0, notes
        deadline = (
            self._settings.block_deadline_seconds if deadline_seconds is None else deadline_seconds
        )
        started = self._clock.monotonic()
        is_done = run_within(
            self._clock, deadline, lambda is_over: self._observe(thread.id, mode, is_over)
        )
        waited = self._clock.monotonic() - started
        if not is_done:
            notes.append(
                "the observation took longer than the deadline; it goes on behind the scenes"
            )
        return waited, notes

    def _observe(self, thread_id: str, mode: AgentMode, is_over: threading.Event) -> None:
        """Observe what is pending and show all but the newest; who is at it already is waited
        for.
        """
        while self._observations.buffer(thread_id, mode=mode).code == "in_progress":
            if is_over.wait(
                _AGAIN_SECONDS
            ):  # another process tells nobody when it is done, so we look again
                return
        self._observations.activate(thread_id, mode=mode)

    def _build(
        self,
        thread: Thread,
        given: tuple[ContextMessage, ...],
        step: int,
        waited: float,
        notes: list[str],
    ) -> Context:
        settings = self._settings
        drawn = _NOTHING
        sections: list[Section] = []
        observed = 0
        if settings.is_enabled:
            # In this order: with an activation in between, a message is shown twice rather than not
            # at all.
            observed = self._observations.observed_seq(thread.id)
            drawn = self._stable(thread)
            sections += drawn.sections
        sections += self._around(thread, drawn)
        raw, left_out = self._raw(thread, observed)
        messages = (*self._told(raw, is_continued=observed > 0 and step == 0), *given)
        sizes: dict[str, int] = {}
        for each in sections:
            sizes[each.name] = sizes.get(each.name, 0) + each.tokens
        receipt = ContextReceipt(
            thread.id,
            drawn.ids,
            sizes,
            message_tokens=sum(message.token_count for message in raw),
            left_out_messages=left_out,
            waited_seconds=waited,
            notes=tuple(notes),
        )
        return Context(tuple(sections), messages, receipt)

    def _stable(self, thread: Thread) -> _Drawn:
        """The active observations and their text, read and drawn once for each version of the
        record.
        """
        record = self._observations.record(thread.id)
        if record is None:
            return _NOTHING
        key = (record.id, record.version)
        if key not in self._drawn:
            if len(self._drawn) >= _MOST_CACHED:
                self._drawn.clear()
            active = self._observations.active(thread.id)
            self._drawn[key] = _Drawn(
                tuple(row.id for row in active),
                stable_sections(
                    active, record.scope, self._settings.timezone, counter=self._counter
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
            unobserved = self._observations.unobserved_elsewhere(thread.id)
            found.append(
                others_section(unobserved, settings.timezone, _OTHERS_TOKENS, counter=counter)
            )
        if drawn.ids:
            now = self._clock.now_ms()
            found.append(
                time_section(
                    drawn.days, now, thread.updated_at, timezone=settings.timezone, counter=counter
                )
            )
        return [each for each in found if each is not None and each.text]

    def _raw(self, thread: Thread, observed: int) -> tuple[list[Message], int]:
        """The messages that are shown as they are, and how many were too many."""
        if not self._settings.is_enabled:
            return self._messages.list(thread_id=thread.id, limit=self._settings.last_messages), 0
        found = self._messages.last_tokens(
            thread_id=thread.id, tokens=self._settings.most_message_tokens, after=observed
        )
        pending = thread.message_count - observed
        return found, max(0, pending - len(found))

    def _told(self, raw: Sequence[Message], is_continued: bool) -> Iterable[ContextMessage]:
        if is_continued:
            yield ContextMessage(
                "user",
                f"<system-reminder>{load_prompt(PROMPTS, 'continuation').text}</system-reminder>",
            )
        before: int | None = None
        for message in raw:
            if before is not None and message.created_at - before >= GAP_MS:
                gap = duration(message.created_at - before)
                yield ContextMessage(
                    "user",
                    f"<system-reminder>{gap} passed before the next message.</system-reminder>",
                )
            before = message.created_at
            yield ContextMessage(message.role, message.raw_content, message.id, seq=message.seq)

    # on the way out

    def process_output(
        self,
        thread_id: str,
        said: Sequence[Mapping[str, Any] | NewMessage],
        *,
        mode: AgentMode = "default",
        resource_id: str | None = None,
        session_id: str | None = None,
    ) -> list[Message]:
        """Keep what was said in a step, the person's words included; what could not be kept is
        logged, never raised.

        Call it behind the caller's own guardrails: what they abort was never said.
        """
        if self._settings.is_read_only:
            return []
        try:
            stored = self._messages.add_many(
                thread_id=thread_id, messages=said, resource_id=resource_id, session_id=session_id
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


def _as_context(message: Mapping[str, Any] | NewMessage) -> ContextMessage:
    """A message as it came; one that memory could not keep is still the agent's, and goes through
    as it is.
    """
    from smara.messages.models import plain
    from smara.messages.parts import pack, parts_of
    from smara.messages.prepare import as_new_message

    try:
        new = as_new_message(message)
        return ContextMessage(new.role, pack(parts_of(new.content))[0])
    except (SmaraError, TypeError):
        given = (
            message
            if isinstance(message, Mapping)
            else {"content": getattr(message, "content", message)}
        )
        return ContextMessage(str(given.get("role", "user")), plain(given.get("content")))
