"""``window``: the last twenty turns, tool calls replayed. Nothing is condensed, nothing is
guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smara.memory import Memory
from smara.messages.models import Message, NewThread
from smara.providers.models import ChatMessage, Turn
from smara.providers.turns import as_messages, as_turns

WINDOW_TURNS = 20
_MESSAGES_OF_A_TURN = 4


class WindowProvider:
    """A provider over one memory; each waking is a thread of its own."""

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
        """The thread of this waking; begun when something is kept before anybody has woken."""
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
        """Go on in a thread there is, as if this waking had begun it; its turns are the newest."""
        self._thread_id = self.memory.threads.get(thread_id).id

    def on_sleep(self) -> None:
        """The next waking begins a thread of its own."""
        self._thread_id = None

    def save_turn(self, turn: Turn) -> None:
        batch = as_messages(turn)
        if batch:
            self.memory.messages.append_batch(
                NewThread(self.thread_id, self._resource_id), batch, may_differ=True
            )

    def recall(self, hint: str | None = None) -> list[ChatMessage]:
        """The turns of the window, oldest first, with their tool calls and results."""
        return [
            message for turn in self.get_recent_turns(self._turns) for message in replayed(turn)
        ]

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
            newest = self._newest(
                thread_id, (limit - len(found)) * _MESSAGES_OF_A_TURN + _MESSAGES_OF_A_TURN
            )
            found = [*list(as_turns(newest))[-(limit - len(found)) :], *found]
        return found[-limit:] if limit > 0 else []

    def close(self) -> None:
        self.memory.close()

    def _newest(self, thread_id: str, count: int) -> list[Message]:
        return self.memory.messages.list(thread_id=thread_id, limit=count)

    def _threads(self) -> list[str]:
        mine = self.memory.threads.list(resource_id=self._resource_id)
        found = [thread.id for thread in mine if thread.metadata.get("provider") == self.name]
        if self._thread_id is None:
            return found
        return [
            self._thread_id,
            *(thread_id for thread_id in found if thread_id != self._thread_id),
        ]


def replayed(turn: Turn) -> list[ChatMessage]:
    """A turn as chat messages, tool calls and results told in words that any model takes."""
    found: list[ChatMessage] = []
    if turn.input:
        source = f"[{turn.input_source}] " if turn.input_source else ""
        found.append({"role": "user", "content": f"{source}{turn.input}"})
    for use in turn.tool_uses:
        said = f"[tool:{use.name}] {'failed: ' if use.is_error else ''}{use.result}".rstrip()
        found.append({"role": "assistant", "content": said})
    if turn.output:
        found.append({"role": "assistant", "content": turn.output})
    return found
