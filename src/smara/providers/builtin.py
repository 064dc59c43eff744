"""Provide the built-in memories `window` and `observational`.

`window` replays the last twenty turns. `observational` adds dated observations of all earlier
turns and a page of working memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from smara.core.escape import neutralize
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.messages.models import Message, NewMessage, NewThread, Part
from smara.messages.parts import parts_of
from smara.prompt.compose import ChatEntry
from smara.prompt.models import ContextMessage, Section
from smara.prompt.sections import spoken
from smara.prompt.shapes import Shape, shaped
from smara.providers.models import ChatMessage, ToolUse, Turn
from smara.search.models import Hit, Neighbor


def as_messages(turn: Turn) -> list[NewMessage]:
    """Return the messages of a turn, with ids of their own."""
    about = {"turn": turn.id, **({"source": turn.input_source} if turn.input_source else {})}
    uses = [(use, use.call_id or f"{turn.id}-call-{n}") for n, use in enumerate(turn.tool_uses)]
    calls = [
        Part("tool_call", name=use.name, arguments=dict(use.arguments), call_id=call_id)
        for use, call_id in uses
    ]
    results = [
        Part("tool_result", use.result, name=use.name, call_id=call_id, is_error=use.is_error)
        for use, call_id in uses
    ]
    thought = [Part("reasoning", turn.thinking)] if turn.thinking else []
    reply = [Part("text", turn.output)] if turn.output else []
    drafts: list[tuple[Any, str, list[Part]]] = [
        ("user", "input", [Part("text", turn.input)] if turn.input else []),
        ("assistant", "calls", [*thought, *calls] if calls else []),
        ("tool", "results", results),
        ("assistant", "output", reply if calls else [*thought, *reply]),
    ]
    return [
        NewMessage(
            role,
            parts,
            f"{turn.id}-{name}",
            created_at=turn.timestamp,
            task_id=None,
            metadata=about,
        )
        for role, name, parts in drafts
        if parts
    ]


_NO_RESULT = Part("tool_result")


def as_turns(messages: Iterable[Message]) -> Iterator[Turn]:
    """Yield the turns of messages in order."""
    for turn_id, group in groupby(
        messages, key=lambda message: str(message.metadata.get("turn") or message.id)
    ):
        first, *rest = group
        parts = [(message.role, part) for message in (first, *rest) for part in message.parts]
        results = {part.call_id: part for _, part in parts if part.type == "tool_result"}
        uses = tuple(
            _tool_use(call, results.get(call.call_id, _NO_RESULT))
            for _, call in parts
            if call.type == "tool_call"
        )
        texts = {
            role: "\n".join(part.text for who, part in parts if (who, part.type) == (role, "text"))
            for role in ("user", "assistant")
        }
        source = first.metadata.get("source")
        yield Turn(
            turn_id,
            input=texts["user"],
            output=texts["assistant"],
            input_source=source if isinstance(source, str) else None,
            tool_uses=uses,
            thinking="\n".join(part.text for _, part in parts if part.type == "reasoning"),
            timestamp=first.created_at,
        )


def _tool_use(call: Part, result: Part) -> ToolUse:
    return ToolUse(
        call.name or "tool",
        call.arguments if isinstance(call.arguments, dict) else {},
        result.text,
        is_error=result.is_error,
        call_id=call.call_id,
    )


WINDOW_TURNS = 20
_MESSAGES_OF_A_TURN = 4


class WindowProvider:
    """A provider over one memory, with a thread per waking."""

    name = "window"

    def __init__(
        self, memory: Memory, resource_id: str | None = None, turns: int = WINDOW_TURNS
    ) -> None:
        self.memory = memory
        self._resource_id = resource_id or memory.settings.resource
        self._turns = turns
        self._thread_id: str | None = None

    def init(self) -> None:
        """Nothing to open: the memory is."""

    @property
    def thread_id(self) -> str:
        """The thread of this waking; begun on first use."""
        if self._thread_id is None:
            self.on_wake({})
        return str(self._thread_id)

    def on_wake(self, identity: Mapping[str, Any]) -> None:
        thread = self.memory.threads.add(
            resource_id=self._resource_id,
            metadata={"provider": self.name, "identity": dict(identity)},
        )
        self._thread_id = thread.id

    def resume(self, thread_id: str) -> None:
        """Continue in an existing thread."""
        self._thread_id = self.memory.threads.get(thread_id).id

    def on_sleep(self) -> None:
        """The next waking begins a thread of its own."""
        if self._thread_id is not None:
            self.memory.memories.end_session(self._thread_id)
        self._thread_id = None

    def save_turn(self, turn: Turn) -> None:
        batch = as_messages(turn)
        if batch:
            self.memory.messages.append_batch(
                NewThread(self.thread_id, self._resource_id), batch, may_differ=True
            )

    def recall(self, hint: str | None = None, *, shape: Shape = "plain") -> list[ChatMessage]:
        """Return the turns of the window, oldest first, in a vendor's shape."""
        found: list[ChatEntry] = []
        for turn in self.get_recent_turns(self._turns):
            source = f"[{turn.input_source}] " if turn.input and turn.input_source else ""
            found += [
                ChatEntry(each.role, parts_of(each.content), str(each.client_id))
                for each in as_messages(replace(turn, input=f"{source}{turn.input}"))
            ]
        return shaped(found, shape)

    def get_turn_count(self) -> int:
        return sum(
            1
            for thread in self._threads()
            for _ in as_turns(self.memory.messages.stream(thread_id=thread))
        )

    def get_recent_turns(self, limit: int) -> list[Turn]:
        found: list[Turn] = []
        for thread_id in self._threads():  # the newest thread first
            if len(found) >= limit:
                break
            left = limit - len(found)
            newest = self.memory.messages.list(
                thread_id=thread_id, limit=(left + 1) * _MESSAGES_OF_A_TURN
            )
            found = [*list(as_turns(newest))[-left:], *found]
        return found[-limit:] if limit > 0 else []

    def close(self) -> None:
        self.memory.close()

    def _threads(self) -> list[str]:
        found = [
            thread.id
            for thread in self.memory.threads.list(resource_id=self._resource_id)
            if thread.metadata.get("provider") == self.name
        ]
        if self._thread_id is None:
            return found
        return [
            self._thread_id,
            *(thread_id for thread_id in found if thread_id != self._thread_id),
        ]


_HINT_HITS = 5
_BEFORE, _AFTER = 2, 1
_LAST_MESSAGES = 40


class ObservationalProvider(WindowProvider):
    """A provider that observes and finds what no longer fits."""

    name = "observational"

    def __init__(
        self, memory: Memory, resource_id: str | None = None, *, by_meaning: bool = True
    ) -> None:
        """Open the memory with observations for all wakings.

        Without ``by_meaning`` a hint is looked up by its words alone.
        """
        # Each waking is a thread of its own; what was observed in one is for all.
        chosen = {"observe_scope": "resource", "last_messages": _LAST_MESSAGES}
        super().__init__(
            memory.with_settings(**chosen, **({} if by_meaning else {"embedder": "off"})),
            resource_id,
        )

    def save_turn(self, turn: Turn) -> None:
        super().save_turn(turn)
        if as_messages(turn):
            self.memory.observations.look_after(self.thread_id)

    def recall(self, hint: str | None = None, *, shape: Shape = "plain") -> list[ChatMessage]:
        """Return memory, the newest messages, and what fits a hint.

        Where a vendor's shape takes the system text apart, it is the first message here.
        """
        context = self.memory.context.process_input(self.thread_id, resource_id=self._resource_id)
        hits = hint and self.memory.search(
            hint,
            _HINT_HITS,
            resource_id=self._resource_id,
            neighbors=_BEFORE,
            sources=("messages",),
        )
        # Each hit with two messages before it and one after, none of them twice.
        shown = {message.message_id for message in context.messages}
        words: dict[str, str] = {}
        for hit in hits or ():
            around: list[Hit | Neighbor] = [*hit.before[-_BEFORE:], hit, *hit.after[:_AFTER]]
            for each in around:
                if each.id not in shown and each.id not in words:
                    text = spoken(self.memory.messages.get(each.id).parts)
                    words[each.id] = neutralize(f"[{each.role}] {text}")
        if words:
            text = "\n".join(["Said earlier, and perhaps of use now:", *words.values()])
            recalled = Section("recalled", text, counter_for().count(text).tokens)
            context = replace(context, sections=(*context.sections, recalled))
        if shape in ("anthropic", "google") and context.system:
            memory = ContextMessage("user", context.system, source="memory")
            context = replace(context, messages=(memory, *context.messages))
        return context.as_messages(shape)

    def on_sleep(self) -> None:
        """Observe what is pending, so that the next waking finds it."""
        if self._thread_id is not None:
            self.memory.observations.end_session(self._thread_id)
        super().on_sleep()

    def get_working_memory(self) -> str | None:
        page = self.memory.working.find(scope="resource", resource_id=self._resource_id)
        return (
            None
            if page is None
            else self.memory.working.render(scope="resource", resource_id=self._resource_id)
        )
