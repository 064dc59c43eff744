"""Describe Cursor."""

from __future__ import annotations

import os
from typing import Any

from smara.adapters.hook_output import rule_content
from smara.adapters.host import (
    START_SECONDS,
    STEP_SECONDS,
    TEXT,
    HomeFolder,
    Hooks,
    Host,
    Instructions,
    Reach,
    RuleFile,
    Setup,
    SetupTarget,
    has_mcp,
    hook_line,
    mcp_entry,
)
from smara.core.git import find_repository

HOME = HomeFolder("CURSOR_CONFIG_DIR", ".cursor")
RULE = RuleFile(
    ".cursor/rules/smara.mdc",
    """\
---
description: What Smara knows about this repository
globs:
alwaysApply: true
---
<!-- Written by `smara setup cursor` and its hooks; `smara setup cursor --remove` takes it away. -->
""",
)
_REGISTERED = (
    "sessionStart", "beforeSubmitPrompt", "afterShellExecution", "afterMCPExecution",
    "afterFileEdit", "afterAgentResponse", "preCompact", "stop", "sessionEnd",
)  # fmt: skip


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = HOME.path if reach == "global" else os.path.join(root, ".cursor")

    def call(event: str) -> dict[str, Any]:
        seconds = START_SECONDS if event == "sessionStart" else STEP_SECONDS
        return {"command": hook_line(program, "cursor", event), "timeout": seconds}

    hooks = {"version": 1, "hooks": {event: [call(event)] for event in _REGISTERED}}
    targets = [SetupTarget(os.path.join(folder, "hooks.json"), "json", hooks)]
    if reach == "project":
        path = os.path.join(root, *RULE.path.split("/"))
        targets.append(SetupTarget(path, "own", body=rule_content(RULE.head), changes_itself=True))
        here = find_repository(root)
        if here is not None:  # an older version wrote it
            exclude = os.path.join(here.common_dir, "info", "exclude")
            targets.append(SetupTarget(exclude, "toml", is_former=True))
    if has_mcp():
        targets.append(SetupTarget(os.path.join(folder, "mcp.json"), "json", mcp_entry(program)))
    return targets


HOST = Host(
    name="cursor",
    title="Cursor",
    hooks=Hooks(
        events={
            "sessionStart": "session_start",
            "beforeSubmitPrompt": "prompt",
            "preToolUse": "tool_pre",
            "postToolUse": "tool_post",
            "postToolUseFailure": "tool_fail",
            "beforeShellExecution": "tool_pre",
            "afterShellExecution": "tool_post",
            "beforeMCPExecution": "tool_pre",
            "afterMCPExecution": "tool_post",
            "beforeReadFile": "tool_pre",
            "afterFileEdit": "tool_post",
            "afterAgentResponse": "step",
            "afterAgentThought": "reasoning",
            "subagentStart": "subagent_start",
            "subagentStop": "subagent_stop",
            "preCompact": "compact_pre",
            "stop": "turn_end",
            "sessionEnd": "session_end",
        },
        answerable=("sessionStart", "postToolUse"),
        transient=("preToolUse",),
        drain_events=("sessionStart",),
        output={"additional_context": TEXT},
        event_tools={
            "beforeShellExecution": "Bash",
            "afterShellExecution": "Bash",
            "afterFileEdit": "Edit",
            "beforeReadFile": "Read",
        },
        event_arguments=("command", "file_path", "edits", "cwd"),
        mcp_events=("beforeMCPExecution", "afterMCPExecution"),
        mark="cursor_version",
        has_call_ids=False,
        rule_file=RULE,
    ),
    setup=Setup(
        targets=_targets,
        programs=("cursor-agent", "cursor"),
        home=HOME,
        advice={"project": "Cursor runs hooks of a project in trusted workspaces alone."},
    ),
    instructions=Instructions(
        patterns=(".cursorrules", ".cursor/rules/**/*.mdc", ".cursor/rules/**/*.md"),
        at_start=(".cursorrules", "AGENTS.md"),
    ),
)
