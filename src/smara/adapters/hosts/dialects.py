"""What each host calls its events, and where its payloads keep what we look for.

A host is a row here, not a class: most of them speak Claude Code's dialect with other
names. Fields are looked for in the order given; the first that is there counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from smara.core.events import Agent, Kind

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
