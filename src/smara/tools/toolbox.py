"""Run tool calls as models make them and answer each one.

A call never raises: errors become results that say what to do next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smara.core import log
from smara.errors import DatabaseError, SmaraError
from smara.memory import Memory
from smara.shapes import encodable, filled
from smara.tools import code, memories, tasks
from smara.tools.catalogue import Json, Profile, ToolContext, ToolResult, tools_of
from smara.tools.render import render
from smara.tools.schemas import action_of, read_call, unknown_tool

Perform = Callable[[Memory, Json, ToolContext], Json]

_PERFORM: dict[str, dict[str, Perform]] = {
    "task-query": {
        "ready": tasks.ready, "show": tasks.show, "list": tasks.list_tasks,
        "search": tasks.search,
    },
    "task-mutate": {
        "create": tasks.create, "claim": tasks.claim, "close": tasks.close,
        "release": tasks.release,
        "reopen": tasks.reopen, "update": tasks.update, "dep": tasks.dep,
        "link": tasks.link,
        "update_context": tasks.update_context,
    },
    "memory-search": {"search": memories.search, "read": memories.read},
    "memory-record": {"record": memories.record, "used": memories.mark_used,
    "context": memories.context},
    "code-query": {
        "impact": code.walk, "deps": code.walk, "map": code.map_code,
        "symbol": code.symbol,
    },
}  # fmt: skip
_LONGEST_TEXT = 800
_WITHOUT_MEMORY = "Go on without memory, and tell the user."


class Toolbox:
    """The tools over one memory. Safe to use from several threads.

    ``profile`` says which tools there are; without it, the setting ``tool_profile`` does.
    """

    def __init__(
        self, memory: Memory, context: ToolContext | None = None, profile: Profile | None = None
    ) -> None:
        self._memory = memory
        self._context = context or ToolContext()
        self._tools = tools_of(profile or memory.settings.tool_profile)

    def call(self, name: str, arguments: object, context: ToolContext | None = None) -> ToolResult:
        """Answer one call.

        ``arguments`` is an object, or the text of one; ``context`` wins over the toolbox's own.

        Never raises for anything a model may have written, nor for anything the store may do.
        """
        action = action_of(arguments)
        try:
            tool = self._tools.get(str(name).replace("_", "-"))
            if tool is None:
                raise unknown_tool(name, self._tools)
            called, complete = read_call(tool, arguments, self._tools)
            action = called.name
            named = ToolContext(complete.get("sessionId"), complete.get("threadId"))
            caller = named.over(context or ToolContext()).over(self._context)
            caller = replace(caller, session_id=caller.session_id or self._memory.settings.session)
            if caller.session_id is not None:
                # A sign of life, so that claims do not expire; no reason to fail a call.
                try:
                    self._memory.tasks.seen(caller.session_id)
                except DatabaseError as error:
                    log.warning("session.unseen", error=error.code)
            arguments = {**complete, "action": action}
            answer = _PERFORM[tool.name][action](self._memory, arguments, caller)
        except SmaraError as error:
            return refusal(action, error)
        except Exception as error:  # noqa: BLE001 - the edge of the tools: an agent must be able to go on
            log.warning(
                "tool.failed", tool=name, action=action, kind=type(error).__name__, error=error
            )
            return refusal(action, error)
        clean: Json = encodable({"action": action, "success": True, **answer})
        return ToolResult(False, clean, render(clean))


def task_query(memory: Memory, **arguments: Any) -> Json:
    """Look at tasks: ``task_query(memory, action="ready", limit=5)``."""
    return Toolbox(memory).call("task-query", arguments).structured


def task_mutate(memory: Memory, **arguments: Any) -> Json:
    """Change tasks and working memory: ``task_mutate(memory, action="claim", id="t-k3f9")``."""
    return Toolbox(memory).call("task-mutate", arguments).structured


def memory_search(memory: Memory, **arguments: Any) -> Json:
    """Search past conversations: ``memory_search(memory, action="search",
    query="LoginSchema")``.
    """
    return Toolbox(memory).call("memory-search", arguments).structured


def memory_record(memory: Memory, **arguments: Any) -> Json:
    """Record what was learned: ``memory_record(memory, action="record", type="gotcha",
    content="…")``.
    """
    return Toolbox(memory, profile="coding").call("memory-record", arguments).structured


def code_query(memory: Memory, **arguments: Any) -> Json:
    """Ask about the code: ``code_query(memory, action="impact",
    target="src/auth.py:Session.login")``.
    """
    return Toolbox(memory, profile="coding").call("code-query", arguments).structured


def refusal(action: str, error: Exception) -> ToolResult:
    """Return the answer to a call that failed."""
    if isinstance(error, SmaraError):
        code, brief = error.code, error.facts.get("brief") or error.message
        hint = error.facts.get("hint")
        if isinstance(error, DatabaseError):
            hint = f"{hint} {_WITHOUT_MEMORY}" if hint else _WITHOUT_MEMORY
    else:
        code, brief = "bug", f"Memory has a problem of its own ({type(error).__name__})."
        hint = f"{_WITHOUT_MEMORY} What was asked may not have been done."
    may_succeed = isinstance(error, SmaraError) and error.is_retryable
    clean: Json = encodable(
        {
            "action": action,
            "success": False,
            "error": _clipped(brief),
            "code": code,
            **filled(hint=hint and _clipped(hint), retryable=may_succeed),
        }
    )
    return ToolResult(True, clean, render(clean))


def _clipped(text: str) -> str:
    """A text of bounded length; of one that repeats something huge, the beginning and the advice at
    its end.
    """
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[: _LONGEST_TEXT // 2]} … {text[-_LONGEST_TEXT // 2 :]}"
