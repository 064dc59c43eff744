"""``observational``: dated observations of all that was, the newest messages as they are, and a
page held in mind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smara.core.delimiters import neutralized
from smara.memory import Memory
from smara.messages.models import NewThread
from smara.providers.models import ChatMessage, Turn
from smara.providers.turns import as_messages
from smara.providers.window import WindowProvider
from smara.search.models import Hit, Neighbor

_HINT_HITS = 5
_BEFORE, _AFTER = 2, 1
_LAST_MESSAGES = 40


class ObservationalProvider(WindowProvider):
    """A provider that never loses the thread: what no longer fits is observed, and found again."""

    name = "observational"

    def __init__(
        self, memory: Memory, resource_id: str | None = None, *, by_meaning: bool = True
    ) -> None:
        """Without ``by_meaning`` a hint is looked up by its words alone, and no embedder is
        loaded.
        """
        # Each waking is a thread of its own; what was observed in one is for all.
        chosen = {"observe_scope": "resource", "last_messages": _LAST_MESSAGES}
        super().__init__(
            memory.with_settings(**chosen, **({} if by_meaning else {"embedder": "off"})),
            resource_id,
        )

    def save_turn(self, turn: Turn) -> None:
        batch = as_messages(turn)
        if batch:
            self.memory.messages.append_batch(
                NewThread(self.thread_id, self._resource_id), batch, may_differ=True
            )
            self.memory.observations.look_after(self.thread_id)

    def recall(self, hint: str | None = None) -> list[ChatMessage]:
        """What is remembered, the newest messages, and with a hint what was said about it
        before.
        """
        context = self.memory.context.process_input(self.thread_id)
        found: list[ChatMessage] = context.as_messages()
        if hint and (
            told := self._said_about(hint, {message.message_id for message in context.messages})
        ):
            words = "\n".join(["Said earlier, and perhaps of use now:", *told])
            found.insert(
                1 if found and found[0]["role"] == "system" else 0,
                {"role": "system", "content": words},
            )
        return found

    def _said_about(self, hint: str, shown: set[str | None]) -> list[str]:
        """The best of what was said before, each with two messages before it and one after, none of
        them twice.
        """
        hits = self.memory.search(
            hint,
            _HINT_HITS,
            resource_id=self._resource_id,
            neighbors=_BEFORE,
            sources=("messages",),
        )
        told: list[str] = []
        for hit in hits:
            around: list[Hit | Neighbor] = [*hit.before[-_BEFORE:], hit, *hit.after[:_AFTER]]
            for each in around:
                if each.id not in shown:
                    shown.add(each.id)
                    told.append(neutralized(f"[{each.role}] {each.content}"))
        return told

    def on_wake(self, identity: Mapping[str, Any]) -> None:
        super().on_wake(identity)

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
