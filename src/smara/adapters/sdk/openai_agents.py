"""Keep the sessions of the OpenAI Agents SDK in memory: a ``Session``.

Items come back as they were given, after secrets were redacted. What was said and done in them is
read as a Codex rollout is, whose lines are the same items. Memory speaks in the agent's
instructions (`SmaraSession.instructions`), never in the items.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from smara.adapters.blocks import parts_of
from smara.adapters.lines import JsonLine
from smara.adapters.readers.codex import Rollout
from smara.adapters.records import Record, bounded_id
from smara.adapters.sdk.agent_session import AgentSession, fail_open_async
from smara.adapters.sdk.live import LiveReader, delete_sessions, line_of
from smara.aio import AsyncMemory
from smara.errors import MissingExtraError
from smara.frameworks.models import NewEntry, SdkEntry, SdkStream
from smara.memory import Memory
from smara.messages.models import NewThread

try:
    from agents.memory import SessionSettings
except ImportError as error:
    raise MissingExtraError(
        "The OpenAI Agents SDK is not installed. Install it with:"
        " pip install 'smara[openai-agents]'",
        package="openai-agents",
    ) from error

if TYPE_CHECKING:
    from agents import Agent, RunContextWrapper, TResponseInputItem

FRAMEWORK = "openai-agents"
_Value = TypeVar("_Value")


class SmaraSession:
    """A session for ``Runner.run(…, session=…)``.

    Safe for several processes that use one session. Every call runs in a worker thread; a
    cancellation is raised once it is clear whether the change was made.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | AsyncMemory,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        is_redacted: bool = True,
        keeps_messages: bool = False,
        resource_id: str | None = None,
    ) -> None:
        """Open a session; nothing is stored yet.

        Args:
            session_id: The name of the session, one conversation in the memory's project.
            memory: Where it is kept.
            session_settings: The settings of the SDK; ``limit`` is the most items that are read.
            is_redacted: False to store items with the secrets in them. What is searched and
                learned from is always redacted.
            keeps_messages: True to keep what was said when the session is cleared, as the
                SDK's own compaction does. By default it is erased, with a receipt.
            resource_id: Whom the conversation belongs to; by default whom the settings name.

        Raises:
            TypeError: If there is no such setting of the SDK.
        """
        self.session_id = session_id
        given = (
            dict(session_settings) if isinstance(session_settings, Mapping) else session_settings
        )
        self.session_settings: SessionSettings | None = SessionSettings().resolve(given)
        self._memory = Memory(memory.internals)
        self._keeps_messages = keeps_messages
        self._thread = NewThread(
            bounded_id(f"{FRAMEWORK}:{session_id}"), resource_id, metadata={"host": FRAMEWORK}
        )
        reader = LiveReader(self._memory, _ItemSource, resource_id)
        self._streams = self._memory.frameworks.streams(FRAMEWORK, reader, is_redacted=is_redacted)
        self._is_closed = False
        self._pack: str | None = None
        self._last_words: str | None = None
        self._notes: list[str] = []

    @property
    def thread_id(self) -> str:
        """The conversation in memory."""
        return self._thread.id

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, oldest first.

        Args:
            limit: The most items; by default that of the settings, and without one all.
        """
        self._check()
        if limit is None and self.session_settings is not None:
            limit = SessionSettings().resolve(self.session_settings).limit
        entries = await asyncio.to_thread(self._streams.entries, self.session_id, limit=limit)
        return [each.body for each in entries]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none, and read what was said in them.

        Raises:
            InvalidInputError: If an item cannot be written as JSON.
        """
        self._check()
        if items:
            entries = [NewEntry(item, may_repeat=True) for item in items]
            await _settled(self._streams.append, self.session_id, entries, thread=self._thread)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item.

        It stays in memory as said; if the same item comes again, it is the same message.
        """
        self._check()
        entry = await _settled(self._streams.pop, self.session_id)
        return None if entry is None else cast("TResponseInputItem", entry.body)

    async def clear_session(self) -> None:
        """Remove all items, and what was said unless it is kept."""
        self._check()
        await _settled(
            delete_sessions,
            self._memory,
            self._streams,
            [self.session_id],
            keeps_messages=self._keeps_messages,
        )

    def close(self) -> None:
        """Refuse further calls; the memory stays open."""
        self._is_closed = True

    def instructions(
        self,
        own: str | Callable[[RunContextWrapper[Any], Agent[Any]], Any] | None = None,
    ) -> Callable[[RunContextWrapper[Any], Agent[Any]], Coroutine[Any, Any, str]]:
        """Return a function for ``Agent(instructions=…)`` that adds what is remembered.

        Behind the agent's own instructions comes what a session begins with, what was decided
        about the subject of its messages, and what was observed. Nothing of it is stored as said.

        Args:
            own: The agent's own instructions.
        """

        async def recalled(wrapper: RunContextWrapper[Any], agent: Agent[Any]) -> str:
            text = own(wrapper, agent) if callable(own) else own
            text = await text if inspect.isawaitable(text) else text
            words = _last_words(wrapper.turn_input)
            own_text = str(text or "")
            return await fail_open_async("recall", partial(self._recall, own_text, words), own_text)

        return recalled

    def _recall(self, own: str, words: str) -> str:
        moments, name = self._memory.moments, self.thread_id
        is_first = self._pack is None
        if self._pack is None:
            self._pack = AgentSession(self._memory, FRAMEWORK, name).pack()
        if words != self._last_words:
            self._last_words = words
            note = moments.first_message(name, words, is_first=is_first)
            if note is not None:
                moments.mark_delivered(note.receipt_id)
                self._notes.append(note.text)
        context = self._memory.context.process_input(name, resource_id=self._thread.resource_id)
        return "\n\n".join(filter(None, (own, self._pack, *self._notes, context.system)))

    def _check(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"{type(self).__name__} is closed")


class _ItemSource:
    """Reads the items of one session."""

    def __init__(self, stream: SdkStream) -> None:
        self._rollout = Rollout(Path("session"))
        self._rollout.thread = NewThread(stream.thread_id, metadata={"host": FRAMEWORK})

    def take(self, entry: SdkEntry) -> Iterator[Record]:
        """Yield the records that an item gives."""
        line = line_of(entry)
        if not isinstance(line, JsonLine):
            yield line
            return
        kind = line.value.get("type") or ("message" if "role" in line.value else "item")
        around = {"type": kind, "id": entry.key or entry.id, "timestamp": entry.created_at}
        yield from self._rollout.take(replace(line, value={**line.value, **around}))


def _last_words(items: Sequence[Any]) -> str:
    """Return the words of the newest message of a person."""
    spoken = (each for each in reversed(items) if isinstance(each, Mapping))
    last = next((each for each in spoken if each.get("role") == "user"), {})
    return "\n".join(part.text for part in parts_of(last.get("content")) if part.type == "text")


async def _settled(function: Callable[..., _Value], *arguments: Any, **named: Any) -> _Value:
    """Run a change in a worker thread, and raise a cancellation only after its end.

    A caller that was told of the cancellation at once could not know whether to repeat it.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named))
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancellation = cancellation or error
    if cancellation is not None:
        task.exception()  # it was looked at
        raise cancellation
    return task.result()
