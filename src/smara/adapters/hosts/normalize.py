"""Normalize a host's hook payload into events.

Tables hold each host's event names and payload fields; the first field present counts. No
payload raises: an unreadable one yields no event, and a field of the wrong type counts as
absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from zlib import crc32

from smara.adapters.hook_output import own_words
from smara.adapters.hosts.reply import SOURCES
from smara.adapters.lines import milliseconds
from smara.adapters.tool_output import failure_of, text_of
from smara.core.events import AGENTS, Agent, HostEvent, Kind, event_key
from smara.core.tool_names import tool_arguments, tool_name

_CLAUDE: dict[str, Kind] = {
    "SessionStart": "session_start", "UserPromptSubmit": "prompt", "PreToolUse": "tool_pre",
    "PostToolUse": "tool_post", "PostToolUseFailure": "tool_fail", "PostToolBatch": "tool_batch",
    "SubagentStart": "subagent_start", "SubagentStop": "subagent_stop", "TaskCreated": "task",
    "TaskCompleted": "task", "Stop": "turn_end", "StopFailure": "turn_fail",
    "PreCompact": "compact_pre",
    "PostCompact": "compact_post", "SessionEnd": "session_end", "FileChanged": "file_changed",
    "InstructionsLoaded": "instructions",
}  # fmt: skip
_GEMINI: dict[str, Kind] = {
    "SessionStart": "session_start", "BeforeAgent": "prompt", "BeforeTool": "tool_pre",
    "AfterTool": "tool_post",
    "AfterAgent": "turn_end", "PreCompress": "compact_pre", "SessionEnd": "session_end",
}  # fmt: skip
_COPILOT: dict[str, Kind] = {
    "sessionStart": "session_start", "userPromptSubmitted": "prompt", "preToolUse": "tool_pre",
    "postToolUse": "tool_post", "postToolUseFailure": "tool_fail", "agentStop": "turn_end",
    "subagentStart": "subagent_start", "subagentStop": "subagent_stop", "preCompact": "compact_pre",
    "errorOccurred": "turn_fail", "sessionEnd": "session_end",
}  # fmt: skip
_CURSOR: dict[str, Kind] = {
    "sessionStart": "session_start", "beforeSubmitPrompt": "prompt", "preToolUse": "tool_pre",
    "postToolUse": "tool_post", "postToolUseFailure": "tool_fail",
    "beforeShellExecution": "tool_pre",
    "afterShellExecution": "tool_post", "beforeMCPExecution": "tool_pre",
    "afterMCPExecution": "tool_post",
    "beforeReadFile": "tool_pre", "afterFileEdit": "tool_post", "afterAgentResponse": "step",
    "afterAgentThought": "reasoning", "subagentStart": "subagent_start",
    "subagentStop": "subagent_stop",
    "preCompact": "compact_pre", "stop": "turn_end", "sessionEnd": "session_end",
}  # fmt: skip
_OPENCODE: dict[str, Kind] = {
    "session.start": "session_start", "chat.message": "prompt", "tool.execute.before": "tool_pre",
    "tool.execute.after": "tool_post", "session.idle": "turn_end", "session.error": "turn_fail",
    "session.compacting": "compact_pre", "session.compacted": "compact_post",
    "session.deleted": "session_end",
    "file.edited": "file_changed", "todo.updated": "task",
}  # fmt: skip
_KINDS: Mapping[Agent, Mapping[str, Kind]] = MappingProxyType({
    "claude": _CLAUDE, "codex": _CLAUDE, "gemini": _GEMINI, "copilot": {**_CLAUDE, **_COPILOT},
    "cursor": _CURSOR,
    "opencode": _OPENCODE, "generic": _CLAUDE,
})  # fmt: skip

# The tools that an event of Cursor is about without naming them.
CURSOR_TOOLS = {
    "beforeShellExecution": "Bash", "afterShellExecution": "Bash", "afterFileEdit": "Edit",
    "beforeReadFile": "Read",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fields:
    """Under which names a fact may stand in a payload."""

    session_id: tuple[str, ...] = (
        "session_id",
        "sessionId",
        "conversation_id",
        "sessionID",
        "thread-id",
    )
    transcript_path: tuple[str, ...] = (
        "agent_transcript_path",
        "transcript_path",
        "transcriptPath",
    )
    cwd: tuple[str, ...] = ("cwd", "directory")
    source: tuple[str, ...] = (
        "source",
        "trigger",
        "reason",
        "load_reason",
        "event",
        "status",
        "stopReason",
        "stop_reason",
    )
    prompt: tuple[str, ...] = ("prompt", "initialPrompt", "initial_prompt")
    tool: tuple[str, ...] = ("tool_name", "toolName", "tool")
    tool_input: tuple[str, ...] = ("tool_input", "toolArgs", "tool_args", "args")
    tool_output: tuple[str, ...] = (
        "tool_response",
        "toolResult",
        "tool_result",
        "result_json",
        "output",
        "tool_output",
    )
    tool_use_id: tuple[str, ...] = ("tool_use_id", "toolUseId", "toolCallId", "callID")
    parent_id: tuple[str, ...] = ("parentAgentId", "parent_agent_id")
    """Of a helper that goes by a session of its own: the one that it helps."""
    error: tuple[str, ...] = ("error", "error_message", "error_details")
    subagent_id: tuple[str, ...] = ("agent_id", "agentId", "subagent_id")
    text: tuple[str, ...] = (
        "last_assistant_message",
        "prompt_response",
        "compact_summary",
        "text",
        "lastAssistantMessage",
        "response",
    )
    model: tuple[str, ...] = ("model",)
    file_path: tuple[str, ...] = ("file_path", "filePath")
    once: tuple[str, ...] = ("prompt_id", "generation_id", "messageID", "turn_id")
    """What tells two tellings of one event from two events with the same words."""


FIELDS = Fields()


def kind_of(agent: Agent, event: str) -> Kind | None:
    """What kind of event a host's name stands for; ``None`` for those that we have no use for."""
    return _KINDS[agent].get(event)


_OUTPUT_CHARACTERS = 200_000
_ID_CHARACTERS = 200
_TOOL_KINDS = ("tool_pre", "tool_post", "tool_fail")
# What a helper is asked was not said by a person. That it begins or ends is told in other ways, and
# by one event each.
_HELPERS: Mapping[str, Mapping[Kind, Kind | None]] = {
    "copilot": {"prompt": "subagent_start", "turn_end": None},
    "opencode": {"prompt": None, "session_start": "subagent_start", "turn_end": "subagent_stop"},
}


def events_of(agent: str, event: str, raw: bytes, at_ms: int, cwd: str = "") -> list[HostEvent]:
    """The events that a payload tells; usually one, none when we have no use for it."""
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    if not isinstance(payload, dict):
        return []
    who = agent_of(agent, event, payload)
    kind = kind_of(who, event)
    if kind is None:
        return []
    if _text(payload, FIELDS.parent_id):
        kind = _HELPERS[who].get(kind, kind) if who in _HELPERS else kind
        if kind is None:
            return []
    if kind == "tool_batch":
        return _of_batch(who, payload, at_ms, cwd=cwd)
    if kind == "subagent_stop" and payload.get("agent_type") == "":
        # no helper of the agent: the host itself, which had a model write the summary of a
        # compaction
        return []
    return [_event(who, kind, event, payload=payload, at_ms=at_ms, cwd=cwd)]


def agent_of(named: str, event: str, payload: Mapping[str, Any]) -> Agent:
    """Who is telling: a mark that one host alone leaves in its payloads, then the name in the
    command.

    Hosts load each other's hooks, so the name in a command says who was set up, not who runs it.
    """
    if "cursor_version" in payload:
        return "cursor"
    if named in AGENTS and named != "generic":
        if named == "claude" and "sessionId" in payload and "session_id" not in payload:
            return "copilot"
        return named
    if "turn_id" in payload:
        return "codex"
    if "timestamp" in payload and event.startswith(("Before", "After")):
        return "gemini"
    return "copilot" if "sessionId" in payload else "generic"


def _event(
    agent: Agent, kind: Kind, event: str, payload: Mapping[str, Any], at_ms: int, cwd: str
) -> HostEvent:
    cwd = _cwd(payload) or cwd
    named = _text(payload, FIELDS.parent_id) or _text(payload, FIELDS.session_id)
    session_id = _session(named) or unnamed_session(agent, cwd, at_ms)
    made = HostEvent(
        agent,
        kind,
        session_id,
        at_ms=at_ms,
        cwd=cwd,
        source=_source(kind, payload) if kind not in _TOOL_KINDS else "",
        prompt=own_words(_text(payload, FIELDS.prompt))
        if kind in ("prompt", "session_start")
        else "",
        subagent_id=_text(payload, FIELDS.subagent_id),
        transcript_path=_text(payload, FIELDS.transcript_path),
        text=_spoken(kind, payload),
        error=_error(kind, payload),
        model=_model(payload),
        tool_input=_about(kind, payload),
    )
    if kind in _TOOL_KINDS:
        made = _with_tool(made, event, payload)
    return made if made.tool_use_id else replace(made, key=_key(made, payload))


def _session(named: str) -> str:
    """A session's id, fit to be a key: itself, or what stands for one that is overlong or
    unprintable.
    """
    if len(named) <= _ID_CHARACTERS and named.isprintable():
        return named
    return f"id-{event_key('', '', named.encode('utf-8', 'surrogatepass')).lstrip(':')}"


def unnamed_session(agent: str, cwd: str, at_ms: int) -> str:
    """The session of a host that names none: one per agent, folder and day."""
    return f"{agent}-{crc32(cwd.encode('utf-8', 'replace')):08x}-{at_ms // 86_400_000}"


def _with_tool(made: HostEvent, event: str, payload: Mapping[str, Any]) -> HostEvent:
    name = CURSOR_TOOLS.get(event) or _text(payload, FIELDS.tool)
    if event in ("beforeMCPExecution", "afterMCPExecution") and not name.startswith("mcp"):
        name = f"mcp__{_text(payload, ('server_name', 'server')) or 'cursor'}__{name}"
    tool = tool_name(name)
    given = _mapping(_first(payload, FIELDS.tool_input))
    if event in CURSOR_TOOLS:
        given = {
            key: payload[key] for key in ("command", "file_path", "edits", "cwd") if key in payload
        }
    response = _first(payload, FIELDS.tool_output)
    output = text_of(response)[:_OUTPUT_CHARACTERS]
    error = made.error
    if made.kind == "tool_post" and error is None:
        error = failure_of(payload, response)
    kind: Kind = "tool_fail" if made.kind == "tool_post" and error is not None else made.kind
    use_id = _text(payload, FIELDS.tool_use_id)
    return replace(
        made,
        kind=kind,
        tool=tool,
        tool_input=tool_arguments(tool, given),
        tool_output=output,
        error=error,
        tool_use_id=use_id,
        key=event_key(made.session_id, _once(kind), use_id) if use_id else made.key,
    )


def _once(kind: Kind) -> Kind:
    """A call ends once: whether it was told as a result or as a failure, it is the same event."""
    return "tool_post" if kind == "tool_fail" else kind


def _of_batch(agent: Agent, payload: Mapping[str, Any], at_ms: int, cwd: str) -> list[HostEvent]:
    """A batch is told call by call; the calls that were told before have the same keys."""
    calls = payload.get("tool_calls")
    common = {name: value for name, value in payload.items() if name != "tool_calls"}
    return [
        _event(agent, "tool_post", "PostToolUse", payload={**common, **call}, at_ms=at_ms, cwd=cwd)
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]


def _key(made: HostEvent, payload: Mapping[str, Any]) -> str:
    """Known by what it says; with nothing in it that tells repeats apart, marked by a tilde and its
    time.

    Hosts that read each other's settings tell one event in two dialects, so the words count and not
    their wrapping. The same words may be said twice in a session, and then they are two events. So
    two tellings of such an event count as one only when they came at nearly the same time, which
    whoever takes them in decides (:func:`smara.core.events.is_duplicate_key`).
    """
    if (
        made.kind in _TOOL_KINDS
    ):  # one that has no id of its own; the same call may be made again at once
        at = milliseconds(payload.get("timestamp"))
        told: Any = [made.tool, made.tool_input, made.tool_output, made.subagent_id, at]
    else:
        told = [made.source, made.prompt, made.text, made.error, made.subagent_id, made.tool_input]
    once = [payload[name] for name in FIELDS.once if payload.get(name)]
    content = json.dumps([told, once], sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    key = event_key(made.session_id, _once(made.kind), content)
    return key if once else f"{key}~{made.at_ms}"


def _source(kind: Kind, payload: Mapping[str, Any]) -> str:
    named = _text(payload, FIELDS.source)
    return SOURCES.get(named, named) if kind == "session_start" else named


def _spoken(kind: Kind, payload: Mapping[str, Any]) -> str:
    if kind in ("tool_pre", "tool_post", "tool_fail"):
        return ""
    if kind == "task":
        return "\n".join(
            filter(None, (_text(payload, ("task_subject",)), _text(payload, ("task_description",))))
        )
    return _text(payload, FIELDS.text)


def _error(kind: Kind, payload: Mapping[str, Any]) -> str | None:
    found = _first(payload, FIELDS.error)
    if found in (None, "", {}):
        return "" if kind in ("tool_fail", "turn_fail") else None
    return found if isinstance(found, str) else text_of(found)


def _about(kind: Kind, payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an event that is no tool call is about: a file, a task."""
    if kind in ("file_changed", "instructions"):
        return {"file_path": _text(payload, FIELDS.file_path)}
    if kind == "task":
        return {
            name: payload[name] for name in ("task_id", "todos", "teammate_name") if name in payload
        }
    return {}


def _model(payload: Mapping[str, Any]) -> str:
    found = _first(payload, FIELDS.model)
    if isinstance(found, Mapping):
        return _text(found, ("id", "modelID", "display_name"))
    return found if isinstance(found, str) else ""


def _cwd(payload: Mapping[str, Any]) -> str:
    roots = payload.get("workspace_roots")
    return _text(payload, FIELDS.cwd) or (
        str(roots[0]) if isinstance(roots, list) and roots else ""
    )


def _mapping(value: Any) -> dict[str, Any]:
    """Arguments as a mapping; some hosts give them as JSON inside a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"text": value}
    return value if isinstance(value, dict) else {} if value is None else {"value": value}


def _first(payload: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((payload[name] for name in names if payload.get(name) not in (None, "")), None)


def _text(payload: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next(
        (value for name in names if isinstance(value := payload.get(name), str) and value), ""
    )
