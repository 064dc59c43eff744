"""Calls to the tools, in few words."""

from __future__ import annotations

from typing import Any

from smara.tools import Toolbox, ToolContext, ToolResult


class Asking:
    """Calls a toolbox; ``query``, ``mutate`` and ``search`` expect an answer, ``refused`` a
    refusal.
    """

    def __init__(self, box: Toolbox, context: ToolContext | None = None) -> None:
        self._box = box
        self._context = context

    def as_session(self, session_id: str) -> Asking:
        """The same tools in another agent's hands."""
        return Asking(self._box, ToolContext(session_id=session_id))

    def call(self, tool: str, action: str, **arguments: Any) -> ToolResult:
        return self._box.call(tool, {"action": action, **arguments}, self._context)

    def query(self, action: str, **arguments: Any) -> Any:
        return self._answer("task-query", action, arguments)

    def mutate(self, action: str, **arguments: Any) -> Any:
        return self._answer("task-mutate", action, arguments)

    def search(self, action: str, **arguments: Any) -> Any:
        return self._answer("memory-search", action, arguments)

    def new(self, title: str, **arguments: Any) -> str:
        """The short id of a new task."""
        return str(self.mutate("create", title=title, **arguments)["task"]["id"])

    def refused(self, tool: str, action: str, **arguments: Any) -> Any:
        outcome = self.call(tool, action, **arguments)
        assert outcome.is_error, outcome.text
        assert outcome.structured["success"] is False
        assert outcome.structured["error"] in outcome.text
        return outcome.structured

    def _answer(self, tool: str, action: str, arguments: dict[str, Any]) -> Any:
        outcome = self.call(tool, action, **arguments)
        assert not outcome.is_error, outcome.text
        assert (outcome.structured["action"], outcome.structured["success"]) == (action, True)
        return outcome.structured
