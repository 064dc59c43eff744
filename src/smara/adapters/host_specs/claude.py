"""Describe Claude Code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.blocks import words_of
from smara.adapters.host import (
    DRAIN_SECONDS,
    END_SECONDS,
    START_SECONDS,
    STEP_SECONDS,
    Here,
    HomeFolder,
    Hooks,
    Host,
    Instructions,
    NotesFolder,
    Reach,
    Setup,
    SetupTarget,
    TranscriptFile,
    Transcripts,
    head,
    hook_line,
    walk,
    written_at,
)
from smara.adapters.jsonc import read_object
from smara.adapters.lines import mapping_in, text_in
from smara.core.events import Kind
from smara.core.git import find_repository
from smara.core.startup.regex import re

# The names that other hosts use, too.
EVENTS: dict[str, Kind] = {
    "SessionStart": "session_start", "UserPromptSubmit": "prompt", "PreToolUse": "tool_pre",
    "PostToolUse": "tool_post", "PostToolUseFailure": "tool_fail", "PostToolBatch": "tool_batch",
    "SubagentStart": "subagent_start", "SubagentStop": "subagent_stop", "TaskCreated": "task",
    "TaskCompleted": "task", "Stop": "turn_end", "StopFailure": "turn_fail",
    "PreCompact": "compact_pre", "PostCompact": "compact_post", "SessionEnd": "session_end",
    "FileChanged": "file_changed", "InstructionsLoaded": "instructions",
}  # fmt: skip
HOME = HomeFolder("CLAUDE_CONFIG_DIR", ".claude")
_LONGEST_SLUG = 200
_EDITS = "Bash|Edit|Write|MultiEdit|NotebookEdit"
_RECORD_KEYS = {
    "parentUuid", "isSidechain", "leafUuid", "isSnapshotUpdate", "toolUseID", "customTitle",
    "aiTitle",
}  # fmt: skip


def registrations(program: str) -> dict[str, Any]:
    """Return the hooks that settings and plug-in register.

    One line each, and no list of arguments: Copilot CLI reads this file too, ignores such a list,
    and takes the complaint of a program that was called without them for a refusal of every tool.
    """

    def call(event: str, seconds: int, **more: Any) -> dict[str, Any]:
        line = hook_line(program, "claude", event)
        return {"type": "command", "command": line, "timeout": seconds, **more}

    def one(event: str, seconds: int = STEP_SECONDS) -> list[dict[str, Any]]:
        return [{"hooks": [call(event, seconds)]}]

    drain = call("drain", DRAIN_SECONDS, **{"async": True})
    return {
        "SessionStart": [{"hooks": [call("SessionStart", START_SECONDS), drain]}],
        "InstructionsLoaded": one("InstructionsLoaded"),
        "UserPromptSubmit": one("UserPromptSubmit"),
        "PreToolUse": [{"matcher": _EDITS, "hooks": [call("PreToolUse", STEP_SECONDS)]}],
        "PostToolUse": one("PostToolUse"),
        "PostToolUseFailure": one("PostToolUseFailure"),
        "SubagentStop": one("SubagentStop"),
        "PreCompact": one("PreCompact"),
        "PostCompact": one("PostCompact"),
        "Stop": [{"hooks": [call("Stop", STEP_SECONDS), drain]}],
        "StopFailure": one("StopFailure"),
        "SessionEnd": one("SessionEnd", END_SECONDS),
    }


def plugin_folder() -> str:
    """Return the folder of the plug-in, which is its own marketplace."""
    from importlib import resources  # hooks wait for what is imported above

    return str(resources.files("smara.adapters.hosts") / "claude_plugin")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    hooks = {"hooks": registrations(program)}
    if reach == "global":
        return [SetupTarget(os.path.join(HOME.path, "settings.json"), "json", hooks)]
    folder = os.path.join(root, ".claude")
    return [
        SetupTarget(os.path.join(folder, "settings.local.json"), "json", hooks),
        # Files that teams commit, which an older version wrote.
        SetupTarget(os.path.join(folder, "settings.json"), "json", is_former=True),
        SetupTarget(os.path.join(root, ".mcp.json"), "json", is_former=True),
    ]


def _has_plugin(home: str, root: str) -> bool:
    """Return True if the plug-in is enabled for all repositories or for this one."""
    here = os.path.join(root, ".claude")
    places = [(home, "settings.json"), (here, "settings.json"), (here, "settings.local.json")]
    plugins = [read_object(os.path.join(*place)).get("enabledPlugins") for place in places]
    return any(
        name.split("@")[0] == "smara" and is_on
        for each in plugins
        if isinstance(each, dict)
        for name, is_on in each.items()
    )


def _find(here: Here) -> Iterator[TranscriptFile]:
    for path in walk(Path(HOME.path) / "projects"):
        if not path.name.endswith((".jsonl", ".jsonl.gz")):
            continue
        cwd = session = ""
        is_agent = False
        for value in head(path):
            cwd = cwd or text_in(value.get("cwd"))
            session = session or text_in(value.get("sessionId"))
            is_agent = is_agent or (value.get("isSidechain") is True and "agentId" in value)
            if cwd and session:
                break
        yield TranscriptFile(
            str(path),
            "claude-code",
            cwd,
            at_ms=written_at(path),
            session_id=session or path.stem,
            is_subagent=is_agent,
        )


def _is_record(value: Mapping[str, Any]) -> bool:
    if not isinstance(value.get("type"), str) or value.get("type") == "thread":
        return False
    return not _RECORD_KEYS.isdisjoint(value) or ("sessionId" in value and "role" not in value)


def _injection(record: Mapping[str, Any]) -> str:
    attachment = mapping_in(record.get("attachment"))
    if record.get("type") == "attachment" and attachment.get("type") == "hook_additional_context":
        return words_of(attachment.get("content"))
    return ""


def slug(root: str) -> str:
    """Return the name that Claude gives to the folder of a project.

    >>> slug("/home/me/my_app.v2")
    '-home-me-my-app-v2'
    """
    return re.sub(r"[^A-Za-z0-9]", "-", root)[:_LONGEST_SLUG]


def _find_notes(here: Here) -> Iterator[NotesFolder]:
    home = Path(HOME.path)
    # The folders that settings name instead, if they do.
    named = (
        text_in(read_object(os.path.join(settings, name)).get("autoMemoryDirectory"))
        for settings in (os.path.join(here.root, ".claude"), home)
        for name in ("settings.local.json", "settings.json")
    )
    folders = [Path(os.path.expanduser(place)) for place in named if place.startswith(("/", "~/"))]
    roots = [here.root]
    repository = find_repository(here.root)
    if repository is not None and os.path.basename(repository.common_dir) == ".git":
        # Claude keeps the notes of all worktrees under the first working folder.
        roots.append(os.path.dirname(repository.common_dir))
    folders += [home / "projects" / slug(root) / "memory" for root in roots]
    yield from (NotesFolder.of(folder, "head") for folder in dict.fromkeys(folders))


HOST = Host(
    name="claude",
    title="Claude Code",
    hooks=Hooks(
        events=EVENTS,
        answerable=(
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "SubagentStart",
        ),
        transient=("PreToolUse",),
        has_background=True,
        most_characters=9_500,  # 10,000 per text, counted as the host counts
    ),
    setup=Setup(
        targets=_targets,
        programs=("claude",),
        home=HOME,
        advice={
            "project": "For the tools as well:  claude mcp add smara -- smara mcp",
            "global": "For the tools as well:  claude mcp add --scope user smara -- smara mcp",
        },
        alternative=lambda: (
            "# Or all of it as a plug-in, with skills, instead:",
            f"claude plugin marketplace add {plugin_folder()}",
            "claude plugin install smara@smara",
        ),
        has_plugin=_has_plugin,
    ),
    transcripts=Transcripts(
        format="claude-code",
        reader="smara.adapters.readers.claude_code:read_transcript",
        find=_find,
        is_record=_is_record,
        is_loose=True,
        injection=_injection,
    ),
    instructions=Instructions(
        patterns=("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/**/*.md"),
        at_start=("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
        at_home=("CLAUDE.md",),
        folder=".claude",
    ),
    notes=_find_notes,
)
