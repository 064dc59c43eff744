"""Describe any other agent, and hosts with instruction files alone."""

from __future__ import annotations

import os

from smara.adapters.host import Hooks, Host, Instructions, Reach, Setup, SetupTarget
from smara.adapters.host_specs.claude import EVENTS
from smara.errors import InvalidInputError

_NOTE = """\
## Memory

This repository has a memory (Smara). Its tools find what was said, decided and learned in earlier sessions, also in
other agents: `memory-search` answers questions about the past, `task-query` lists the open work.
"""  # noqa: E501


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    if reach == "global":
        raise InvalidInputError(
            "An agent of another kind is set up in a repository: leave --global out."
        )
    return [SetupTarget(os.path.join(root, "AGENTS.md"), "markdown", body=_NOTE)]


GENERIC = Host(
    name="generic",
    title="another agent",
    hooks=Hooks(
        events=EVENTS,
        answerable=(
            "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
        ),
        transient=("PreToolUse", "preToolUse", "BeforeTool", "tool.execute.before"),
    ),
    setup=Setup(targets=_targets),
    instructions=Instructions(at_start=("AGENTS.md",)),
)  # fmt: skip

_PATTERNS = {
    "qwen": ("QWEN.md",),
    "warp": ("WARP.md",),
    "continue": (".continuerules", ".continue/rules/**/*.md"),
    "junie": (".junie/guidelines.md", ".junie/AGENTS.md"),
    "amazonq": (".amazonq/rules/**/*.md",),
    "kiro": (".kiro/steering/**/*.md",),
    "augment": (".augment-guidelines", ".augment/rules/**/*.md"),
    "trae": (".trae/rules/**/*.md",),
    "firebase": (".idx/airules.md",),
}
# The files that many hosts read; others often link to them, so they come first.
SHARED = Host(
    name="agents",
    instructions=Instructions(patterns=("AGENTS.md", "AGENT.md", "AGENTS.override.md")),
)
INSTRUCTION_HOSTS = tuple(
    Host(name=name, instructions=Instructions(patterns=patterns))
    for name, patterns in _PATTERNS.items()
)
