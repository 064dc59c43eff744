"""List the files and blocks that setup writes for each host.

Hosts differ in names and units alone: Gemini CLI counts timeouts in milliseconds, the others
in seconds. Commands never change between releases, because Codex asks its user again for
every hook whose text has changed. A block in TOML or Markdown stands between two marks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from importlib.util import find_spec
from typing import Any, Literal

from smara.adapters.hosts.brief import PLACE, rule_of
from smara.core.events import Agent
from smara.core.git import find_repository
from smara.environment import home_of
from smara.errors import InvalidInputError

Form = Literal["toml", "markdown"]
_MARKS: dict[Form, tuple[str, str]] = {
    "toml": ("# smara:begin v1 (managed by `smara setup`)", "# smara:end"),
    "markdown": ("<!-- smara:begin v1 (managed by `smara setup`) -->", "<!-- smara:end -->"),
}
_ANY: dict[Form, re.Pattern[str]] = {
    "toml": re.compile(r"(?:\r?\n)?^# smara:begin[^\n]*\n.*?^# smara:end[^\n]*\n?", re.S | re.M),
    "markdown": re.compile(
        r"(?:\r?\n)?^<!-- smara:begin[^\n]*\n.*?^<!-- smara:end -->[^\n]*\n?", re.S | re.M
    ),
}


def put_block(text: str, form: Form, body: str) -> str:
    """The text with the block at its end; one that was there is replaced."""
    text = cut_block(text, form)
    newline = "\r\n" if "\r\n" in text else "\n"
    begin, end = _MARKS[form]
    lines = [begin, *body.strip("\n").split("\n"), end]
    gap = "" if not text or text == "\ufeff" else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def cut_block(text: str, form: Form) -> str:
    """The text without the block."""
    return _ANY[form].sub("", text)


def has_block(text: str, form: Form) -> bool:
    """Whether there is a block of ours."""
    return _ANY[form].search(text) is not None


Reach = Literal["project", "global"]
START_SECONDS, STEP_SECONDS, DRAIN_SECONDS, END_SECONDS = 10, 5, 60, 1
_EDITS = "Bash|Edit|Write|MultiEdit|NotebookEdit"
_NOTE = """\
## Memory

This repository has a memory (Smara). Its tools find what was said, decided and learned in earlier sessions, also in
other agents: `memory-search` answers questions about the past, `task-query` lists the open work.
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class SetupTarget:
    """One file of a host, and what of it is ours."""

    path: str
    form: Literal["json", "own"] | Form
    additions: dict[str, Any] = field(default_factory=dict)
    """Of a JSON file: what is added to it."""
    body: str = ""
    """Of a TOML or Markdown file: the block. Of a file of our own: its content."""
    changes_itself: bool = False
    """Whether hooks write a file of our own anew, so that what is there counts as it is."""

    def is_ours(self, path: tuple[str, ...], value: Any) -> bool:
        """Whether an entry of a JSON file is one that ``smara setup`` writes."""
        if len(path) == 2 and path[0] in ("mcpServers", "mcp") and path[1] == "smara":
            return True
        return len(path) == 3 and path[0] == "hooks" and path[2] == "[]" and is_hook_of_ours(value)


def is_hook_of_ours(entry: Any) -> bool:
    """Whether a registration of a hook calls us, and nobody else."""
    if not isinstance(entry, dict):
        return False
    inner = entry.get("hooks")
    if isinstance(inner, list) and inner:
        return all(map(is_hook_of_ours, inner))
    words = [entry.get(name) for name in ("command", "bash")]
    arguments = entry.get("args") if isinstance(entry.get("args"), list) else []
    line = " ".join(str(word) for word in [words[0] or words[1] or "", *(arguments or [])])
    return "smara" in line.split(" hook ")[0] and " hook " in line


def targets_of(agent: Agent, reach: Reach, root: str, program: str = "smara") -> list[SetupTarget]:
    """The files of a host that make it tell and hear us, in a repository or for all of a user's."""
    return _TARGETS[agent](reach, root, program)


def _claude(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    if reach == "global":
        folder = home_of("CLAUDE_CONFIG_DIR", ".claude")
        return [
            SetupTarget(
                os.path.join(folder, "settings.json"), "json", {"hooks": claude_hooks(program)}
            )
        ]
    hooks = SetupTarget(
        os.path.join(root, ".claude", "settings.json"), "json", {"hooks": claude_hooks(program)}
    )
    return [hooks, *_mcp(os.path.join(root, ".mcp.json"), program)]


def plugin_folder() -> str:
    """Where the plug-in of Claude Code lies, which is its own marketplace."""
    return str(resources.files("smara.adapters.hosts") / "claude_plugin")


def claude_hooks(program: str) -> dict[str, Any]:
    """The registrations of Claude Code.

    One line each, and no list of arguments: Copilot CLI reads this file too, ignores such a list,
    and takes the complaint of a program that was called without them for a refusal of every tool.
    """

    def call(event: str, seconds: int, **more: Any) -> dict[str, Any]:
        return {
            "type": "command",
            "command": _line(program, "claude", event),
            "timeout": seconds,
            **more,
        }

    def one(event: str, seconds: int) -> list[dict[str, Any]]:
        return [{"hooks": [call(event, seconds)]}]

    drain = call("drain", DRAIN_SECONDS, **{"async": True})
    return {
        "SessionStart": [{"hooks": [call("SessionStart", START_SECONDS), drain]}],
        "InstructionsLoaded": one("InstructionsLoaded", STEP_SECONDS),
        "UserPromptSubmit": one("UserPromptSubmit", STEP_SECONDS),
        "PreToolUse": [{"matcher": _EDITS, "hooks": [call("PreToolUse", STEP_SECONDS)]}],
        "PostToolUse": one("PostToolUse", STEP_SECONDS),
        "PostToolUseFailure": one("PostToolUseFailure", STEP_SECONDS),
        "SubagentStop": one("SubagentStop", STEP_SECONDS),
        "PreCompact": one("PreCompact", STEP_SECONDS),
        "PostCompact": one("PostCompact", STEP_SECONDS),
        "Stop": [{"hooks": [call("Stop", STEP_SECONDS), drain]}],
        "StopFailure": one("StopFailure", STEP_SECONDS),
        "SessionEnd": one("SessionEnd", END_SECONDS),
    }


def _codex(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = home_of("CODEX_HOME", ".codex") if reach == "global" else os.path.join(root, ".codex")

    def call(event: str, seconds: int, **more: Any) -> dict[str, Any]:
        return {
            "type": "command",
            "command": _line(program, "codex", event),
            "timeout": seconds,
            **more,
        }

    drain = call("drain", DRAIN_SECONDS, **{"async": True})
    plain = {
        "UserPromptSubmit": STEP_SECONDS,
        "PostToolUse": STEP_SECONDS,
        "SubagentStop": STEP_SECONDS,
        "PreCompact": STEP_SECONDS,
        "PostCompact": STEP_SECONDS,
        "SessionEnd": END_SECONDS,
    }
    hooks = {event: [{"hooks": [call(event, seconds)]}] for event, seconds in plain.items()}
    hooks["SessionStart"] = [{"hooks": [call("SessionStart", START_SECONDS), drain]}]
    hooks["PreToolUse"] = [{"hooks": [call("PreToolUse", STEP_SECONDS)]}]
    hooks["Stop"] = [{"hooks": [call("Stop", STEP_SECONDS), drain]}]
    found = [
        SetupTarget(
            os.path.join(folder, "hooks.json"), "json", {"hooks": dict(sorted(hooks.items()))}
        )
    ]
    if _has_mcp():
        # Codex hands a server hardly any of its environment: without these it would open another
        # store than the hooks.
        handed = json.dumps(
            ["SMARA_DB", "SMARA_HOME", "SMARA_PROJECT", "SMARA_CONFIG", "XDG_DATA_HOME"]
        )
        body = (
            f'[mcp_servers.smara]\ncommand = {json.dumps(program)}\nargs = ["mcp"]\nenv_vars = '
            f"{handed}\n"
        )
        found.append(SetupTarget(os.path.join(folder, "config.toml"), "toml", body=body))
    return found


def _gemini(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = (
        home_of("GEMINI_CONFIG_DIR", ".gemini")
        if reach == "global"
        else os.path.join(root, ".gemini")
    )
    seconds = {
        "SessionStart": START_SECONDS,
        "BeforeAgent": STEP_SECONDS,
        "AfterTool": STEP_SECONDS,
        "AfterAgent": STEP_SECONDS,
        "PreCompress": STEP_SECONDS,
        "SessionEnd": END_SECONDS,
    }
    hooks = {
        event: [
            {
                # An automatic one is asked about before every call of the model, whether or not
                # anything is compressed.
                "matcher": "manual" if event == "PreCompress" else "*",
                "hooks": [
                    {
                        "type": "command",
                        "name": "smara",
                        "command": _line(program, "gemini", event),
                        "timeout": each * 1000,
                    }
                ],
            }
        ]
        for event, each in seconds.items()
    }
    return [
        SetupTarget(
            os.path.join(folder, "settings.json"), "json", {"hooks": hooks, **_mcp_entry(program)}
        )
    ]


def _copilot(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    seconds = {
        "sessionStart": START_SECONDS,
        "userPromptSubmitted": STEP_SECONDS,
        "postToolUse": STEP_SECONDS,
        "postToolUseFailure": STEP_SECONDS,
        "preCompact": STEP_SECONDS,
        "agentStop": STEP_SECONDS,
        "subagentStop": STEP_SECONDS,
        "errorOccurred": STEP_SECONDS,
        "sessionEnd": STEP_SECONDS,
    }
    lines = {event: _line(program, "copilot", event) for event in seconds}
    hooks = {
        event: [
            {
                "type": "command",
                "bash": lines[event],
                "powershell": lines[event],
                "timeoutSec": each,
            }
        ]
        for event, each in seconds.items()
    }
    content = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
    is_project = reach == "project"
    folder = os.path.join(root, ".github") if is_project else home_of("COPILOT_HOME", ".copilot")
    hooks_file = SetupTarget(os.path.join(folder, "hooks", "smara.json"), "own", body=content)
    server = {"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}
    place = os.path.join(folder, "mcp.json" if is_project else "mcp-config.json")
    tools = SetupTarget(place, "json", {"mcpServers": {"smara": server}})
    return [hooks_file, tools] if _has_mcp() else [hooks_file]


def _cursor(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = (
        home_of("CURSOR_CONFIG_DIR", ".cursor")
        if reach == "global"
        else os.path.join(root, ".cursor")
    )
    seconds = {
        "sessionStart": START_SECONDS,
        "beforeSubmitPrompt": STEP_SECONDS,
        "afterShellExecution": STEP_SECONDS,
        "afterMCPExecution": STEP_SECONDS,
        "afterFileEdit": STEP_SECONDS,
        "afterAgentResponse": STEP_SECONDS,
        "preCompact": STEP_SECONDS,
        "stop": STEP_SECONDS,
        "sessionEnd": STEP_SECONDS,
    }
    hooks = {
        event: [{"command": _line(program, "cursor", event), "timeout": each}]
        for event, each in seconds.items()
    }
    found = [
        SetupTarget(os.path.join(folder, "hooks.json"), "json", {"version": 1, "hooks": hooks})
    ]
    if reach == "project":
        found.append(
            SetupTarget(os.path.join(root, PLACE), "own", body=rule_of(), changes_itself=True)
        )
        if excluded := _exclude_file(root):  # what is known here is nobody else's to commit
            found.append(SetupTarget(excluded, "toml", body=PLACE.replace(os.sep, "/")))
    return [*found, *_mcp(os.path.join(folder, "mcp.json"), program)]


def _exclude_file(root: str) -> str | None:
    """Where git is told what to leave alone, for a repository and all its worktrees; ``None``
    outside of one.
    """
    here = find_repository(root)
    folder = here.common_dir if here is not None else os.path.join(root, ".git")
    return os.path.join(folder, "info", "exclude") if os.path.isdir(folder) else None


def _opencode(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = os.path.join(home_of("XDG_CONFIG_HOME", ".config"), "opencode")
    plugins = os.path.join(
        folder if reach == "global" else os.path.join(root, ".opencode"), "plugins"
    )
    source = resources.files("smara.adapters.hosts") / "opencode" / "smara.ts"
    content = source.read_text(encoding="utf-8").replace('"smara"', json.dumps(program), 1)
    found = [SetupTarget(os.path.join(plugins, "smara.ts"), "own", body=content)]
    if _has_mcp():
        place = os.path.join(folder if reach == "global" else root, "opencode.json")
        server = {"type": "local", "command": [program, "mcp"], "enabled": True}
        found.append(SetupTarget(place, "json", {"mcp": {"smara": server}}))
    return found


def _generic(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    if reach == "global":
        raise InvalidInputError(
            "An agent of another kind is set up in a repository: leave --global out."
        )
    return [SetupTarget(os.path.join(root, "AGENTS.md"), "markdown", body=_NOTE)]


def _line(program: str, agent: Agent, event: str) -> str:
    """What a shell is given to run: a program whose path has blanks in it is still one word."""
    word = f'"{program}"' if " " in program else program
    return f"{word} hook {agent} {event}"


def _mcp(path: str, program: str) -> list[SetupTarget]:
    return [SetupTarget(path, "json", _mcp_entry(program))] if _has_mcp() else []


def _mcp_entry(program: str) -> dict[str, Any]:
    return {"mcpServers": {"smara": {"command": program, "args": ["mcp"]}}} if _has_mcp() else {}


def _has_mcp() -> bool:
    """Whether ``smara mcp`` would start; an entry for a server that does not is worse than none."""
    return find_spec("mcp") is not None


_TARGETS: dict[Agent, Callable[[Reach, str, str], list[SetupTarget]]] = {
    "claude": _claude, "codex": _codex, "gemini": _gemini, "copilot": _copilot, "cursor": _cursor,
    "opencode": _opencode, "generic": _generic,
}  # fmt: skip
