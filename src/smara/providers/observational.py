"""``observational``: dated observations of all that was, the newest messages as they are, and a page held in mind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smara.core.delimiters import neutralized
from smara.memory import Memory
from smara.messages.models import NewThread
from smara.providers.models import ChatMessage, Turn
from smara.providers.turns import as_messages
from smara.providers.window import WindowProvider

_HINT_HITS = 5


class ObservationalProvider(WindowProvider):
    """A provider that never loses the thread: what no longer fits is observed, and found again."""

    name = "observational"

    def __init__(self, memory: Memory, resource_id: str | None = None) -> None:
        # Each waking is a thread of its own; what was observed in one is for all.
        super().__init__(memory.with_settings(observe_scope="resource"), resource_id)

    def save_turn(self, turn: Turn) -> None:
        batch = as_messages(turn)
        if batch:
            self.memory.messages.append_batch(NewThread(self.thread_id, self._resource_id), batch, may_differ=True)
            self.memory.observations.look_after(self.thread_id)

    def recall(self, hint: str | None = None) -> list[ChatMessage]:
        """What is remembered, the newest messages, and with a hint what was said about it before."""
        context = self.memory.context.process_input(self.thread_id)
        found: list[ChatMessage] = context.as_messages()
        if hint:
            hits = self.memory.search(hint, _HINT_HITS, resource_id=self._resource_id, neighbors=1)
            shown = {message.message_id for message in context.messages}
            told = [neutralized(f"[{hit.role}] {hit.content}") for hit in hits if hit.id not in shown]
            if told:
                words = "\n".join(["Said earlier, and perhaps of use now:", *told])
                found.insert(1 if found and found[0]["role"] == "system" else 0, {"role": "system", "content": words})
        return found

    def on_wake(self, identity: Mapping[str, Any]) -> None:
        super().on_wake(identity)

    def on_sleep(self) -> None:
        """Observe what is pending, so that the next waking finds it."""
        if self._thread_id is not None:
            self.memory.observations.end_session(self._thread_id)
        super().on_sleep()

    def get_working_memory(self) -> str | None:
        page = self.memory.working.find(scope="resource", resource_id=self._resource_id)
        return None if page is None else self.memory.working.render(scope="resource", resource_id=self._resource_id)
