"""Tell agents what is known around their work, and learn from it.

Adapters share this: the moments of a session, and its events. Each call reads or writes the store,
so adapters make it in a worker thread. No call raises: an agent goes on without its memory, and
the log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from smara.core import log
from smara.core.events import HostEvent, Kind
from smara.core.startup.record import dataclass, field
from smara.core.tool_names import tool_arguments, tool_name
from smara.errors import SmaraError
from smara.memory import Memory
from smara.messages.models import plain

T = TypeVar("T")
_LONGEST_OUTPUT = 200_000
"""So many characters of a tool's output are looked at."""


def fail_open(what: str, call: Callable[[], T], default: T) -> T:
    """Return a call's value, or log its trouble and return the default."""
    try:
        return call()
    except SmaraError as error:
        log.warning("adapter.failed", at=what, error=error.code, message=error.message)
    except Exception as error:  # noqa: BLE001 - an agent must not die of its memory
        log.warning("adapter.failed", at=what, error=type(error).__name__, message=error)
    return default


async def fail_open_async(what: str, call: Callable[[], T], default: T) -> T:
    """Make a call in a worker thread; no event loop waits."""
    return await asyncio.to_thread(fail_open, what, call, default)


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A tool call of an agent, as its framework names it."""

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentSession:
    """A session of an agent that a framework runs."""

    memory: Memory
    agent: str
    """The framework's name, for receipts and events."""
    session_id: str
    cwd: str = ""

    def pack(self) -> str:
        """Return the pack of the session, always the same text.

        Instructions are sent with every request, so what was given once is given again.
        """

        def find() -> str:
            moments = self.memory.moments
            injection = moments.start(self.session_id, agent=self.agent, cwd=self.cwd)
            if injection is not None:
                moments.mark_delivered(injection.receipt_id)
                return injection.text
            given = moments.receipts(self.session_id, limit=1_000)
            return next((each.text for each in given if each.point == "start" and each.is_said), "")

        return fail_open("start", find, "")

    def prompt(self, text: str, *, is_first: bool, key: str = "") -> str:
        """Take in a person's message; return what is known of its subject."""

        def take() -> str:
            self._observe("prompt", prompt=text, tool_use_id=key)
            moments = self.memory.moments
            return self._delivered(moments.first_message(self.session_id, text, is_first=is_first))

        return fail_open("prompt", take, "")

    def before_tool(self, call: AgentCall) -> str:
        """Return what is known about a call before it is made."""

        def find() -> str:
            moments = self.memory.moments
            return self._delivered(moments.before_tool(self.session_id, call.tool, call.arguments))

        return fail_open("before_tool", find, "")

    def after_tool(self, call: AgentCall, output: Any = "", error: str | None = None) -> str:
        """Take in a call's result; return what is known about it."""

        def take() -> str:
            text = plain(output)[:_LONGEST_OUTPUT]
            name = tool_name(call.tool)
            self._observe(
                "tool_post" if error is None else "tool_fail",
                tool=name,
                tool_input=tool_arguments(name, call.arguments),
                tool_output=text,
                error=error,
                tool_use_id=call.id,
            )
            moments = self.memory.moments
            return self._delivered(
                moments.after_tool(
                    self.session_id, call.tool, call.arguments, output=text, error=error
                )
            )

        return fail_open("after_tool", take, "")

    def end_turn(self, text: str, *, error: str | None = None, key: str = "") -> None:
        """Take in the end of a turn and store its events."""
        kind: Kind = "turn_end" if error is None else "turn_fail"
        fail_open(kind, lambda: self._observe(kind, text=text, error=error, tool_use_id=key), None)

    def _observe(self, kind: Kind, **facts: Any) -> None:
        now = self.memory.internals.project.clock.now_ms()
        event = HostEvent(self.agent, kind, self.session_id, now, cwd=self.cwd, **facts)
        self.memory.behavior.observe(event)
        self.memory.moments.heed([event])

    def _delivered(self, injection: Any) -> str:
        if injection is None:
            return ""
        self.memory.moments.mark_delivered(injection.receipt_id)
        return str(injection.text)
