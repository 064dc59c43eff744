"""Describe Copilot CLI."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.host import (
    START_SECONDS,
    STEP_SECONDS,
    TEXT,
    Here,
    HomeFolder,
    Hooks,
    Host,
    Instructions,
    Reach,
    Setup,
    SetupTarget,
    TranscriptFile,
    Transcripts,
    has_mcp,
    head,
    hook_line,
    walk,
    written_at,
)
from smara.adapters.host_specs.claude import EVENTS
from smara.adapters.lines import mapping_in, text_in

HOME = HomeFolder("COPILOT_HOME", ".copilot")
_REGISTERED = (
    "sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure", "preCompact",
    "agentStop", "subagentStop", "errorOccurred", "sessionEnd",
)  # fmt: skip


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    def call(event: str) -> dict[str, Any]:
        line = hook_line(program, "copilot", event)
        seconds = START_SECONDS if event == "sessionStart" else STEP_SECONDS
        return {"type": "command", "bash": line, "powershell": line, "timeoutSec": seconds}

    hooks = {event: [call(event)] for event in _REGISTERED}
    content = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
    is_project = reach == "project"
    folder = os.path.join(root, ".github") if is_project else HOME.path
    hooks_file = SetupTarget(os.path.join(folder, "hooks", "smara.json"), "own", body=content)
    if not has_mcp():
        return [hooks_file]
    server = {"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}
    place = os.path.join(folder, "mcp.json" if is_project else "mcp-config.json")
    return [hooks_file, SetupTarget(place, "json", {"mcpServers": {"smara": server}})]


def _find(here: Here) -> Iterator[TranscriptFile]:
    for path in walk(Path(HOME.path) / "session-state"):
        if path.name == "events.jsonl":
            data = mapping_in(next(head(path, 1), {}).get("data"))
            yield TranscriptFile(
                str(path),
                "copilot",
                text_in(mapping_in(data.get("context")).get("cwd")),
                at_ms=written_at(path),
                session_id=text_in(data.get("sessionId")) or str(path),
            )


def _locate(session_id: str) -> str:
    if os.path.basename(session_id) != session_id:
        return ""  # a name that would lead elsewhere
    path = os.path.join(HOME.path, "session-state", session_id, "events.jsonl")
    return path if os.path.isfile(path) else ""


def _injection(record: Mapping[str, Any]) -> str:
    if record.get("type") not in ("user.message", "tool.execution_complete"):
        return ""
    data = mapping_in(record.get("data"))
    prompt = text_in(data.get("transformedContent"))
    result = text_in(mapping_in(data.get("result")).get("content"))
    return (
        prompt.partition("<system_reminder>")[2]
        or result.partition('\nTool "')[2].partition(" hooks:\n")[2]
    )


HOST = Host(
    name="copilot",
    title="Copilot CLI",
    hooks=Hooks(
        events={
            **EVENTS,
            "sessionStart": "session_start",
            "userPromptSubmitted": "prompt",
            "preToolUse": "tool_pre",
            "postToolUse": "tool_post",
            "postToolUseFailure": "tool_fail",
            "agentStop": "turn_end",
            "subagentStart": "subagent_start",
            "subagentStop": "subagent_stop",
            "preCompact": "compact_pre",
            "errorOccurred": "turn_fail",
            "sessionEnd": "session_end",
        },
        answerable=(
            "sessionStart",
            "SessionStart",
            "userPromptSubmitted",
            "UserPromptSubmit",
            "postToolUse",
            "PostToolUse",
            "preCompact",
            "PreCompact",
        ),
        transient=("PreToolUse", "preToolUse"),
        drain_events=("sessionStart", "SessionStart"),
        output={"additionalContext": TEXT},
        most_characters=9_500,  # 10 KB
        is_limit_in_bytes=True,
        sources={"new": "startup"},
        helper_kinds={"prompt": "subagent_start", "turn_end": None},
        is_payload=lambda event, payload: "sessionId" in payload and "session_id" not in payload,
        runs_hooks_of=("claude",),
        runner_variable="COPILOT_CLI",
        has_call_ids=False,
    ),
    setup=Setup(targets=_targets, programs=("copilot",), home=HOME, deaf_version=(1, 0, 8)),
    transcripts=Transcripts(
        format="copilot",
        reader="smara.adapters.readers.copilot:read_events",
        find=_find,
        is_record=lambda value: (
            value.get("type") == "session.start" and isinstance(value.get("data"), dict)
        ),
        locate=_locate,
        has_subagent_files=False,
        injection=_injection,
    ),
    instructions=Instructions(
        patterns=(".github/copilot-instructions.md", ".github/instructions/**/*.instructions.md"),
        at_start=(".github/copilot-instructions.md", "AGENTS.md"),
    ),
)
