"""Find the agents on this machine and whether they are set up."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from smara.adapters import jsonc
from smara.adapters.hosts.setup.plan import Journal, state_of
from smara.adapters.hosts.setup.targets import Reach, targets_of
from smara.core.events import Agent
from smara.environment import home_of
from smara.errors import SmaraError

NAMES: dict[Agent, str] = {
    "claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "copilot": "Copilot CLI",
    "cursor": "Cursor",
    "opencode": "OpenCode", "generic": "another agent",
}  # fmt: skip
_PROGRAMS: dict[Agent, tuple[str, ...]] = {
    "claude": ("claude",), "codex": ("codex",), "gemini": ("gemini",), "copilot": ("copilot",),
    "cursor": ("cursor-agent", "cursor"), "opencode": ("opencode",),
}  # fmt: skip
_FOLDERS: dict[Agent, tuple[str, str]] = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"), "codex": ("CODEX_HOME", ".codex"),
    "gemini": ("GEMINI_CONFIG_DIR", ".gemini"), "copilot": ("COPILOT_HOME", ".copilot"),
    "cursor": ("CURSOR_CONFIG_DIR", ".cursor"), "opencode": ("", ".config/opencode"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundHost:
    """An agent on this machine."""

    agent: Agent
    name: str
    program: str | None
    """Where its program is; ``None`` when only its folder was found."""
    folder: str
    set_up: tuple[Reach, ...]
    """Where it is set up already."""
    has_plugin: bool = False
    """Whether it has our plug-in switched on, which does the same."""

    @property
    def is_set_up(self) -> bool:
        """Whether it tells and hears us, by its settings or by the plug-in."""
        return bool(self.set_up) or self.has_plugin


def find_hosts(root: str, journal: Journal) -> list[FoundHost]:
    """The agents of this machine, known by a program on the path or a folder in the user's home."""
    found = []
    for agent, programs in _PROGRAMS.items():
        program = next(filter(None, map(shutil.which, programs)), None)
        folder = home_of(*_FOLDERS[agent])
        if program or os.path.isdir(folder):
            has_plugin = agent == "claude" and _has_plugin(folder, root)
            found.append(
                FoundHost(
                    agent,
                    NAMES[agent],
                    program,
                    folder=folder,
                    set_up=reaches(agent, root, journal),
                    has_plugin=has_plugin,
                )
            )
    return found


def reaches(agent: Agent, root: str, journal: Journal) -> tuple[Reach, ...]:
    """Where an agent is set up: in this repository, for all of them, or both."""
    both: Sequence[Reach] = ("project", "global")
    return tuple(reach for reach in both if _is_set_up(agent, reach, root, journal=journal))


def _is_set_up(agent: Agent, reach: Reach, root: str, journal: Journal) -> bool:
    try:
        first = targets_of(agent, reach, root, program=program())[0]
        return state_of(first, journal) != "absent"
    except (SmaraError, OSError):
        return False  # a file that cannot be read is for `smara setup --check` to speak of


def _has_plugin(folder: str, root: str) -> bool:
    """Whether Claude Code has our plug-in switched on, for all repositories or for this one."""
    here = os.path.join(root, ".claude")
    places = [(folder, "settings.json"), (here, "settings.json"), (here, "settings.local.json")]
    return any(_switches_on(os.path.join(*place)) for place in places)


def _switches_on(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            plugins = jsonc.parse(file.read()).get("enabledPlugins", {})
    except (OSError, ValueError, AttributeError, SmaraError):
        return False
    return isinstance(plugins, dict) and any(
        name.split("@")[0] == "smara" and is_on for name, is_on in plugins.items()
    )


def program() -> str:
    """What hosts are told to call: our name where a shell finds it, otherwise the whole path.

    A name outlives an upgrade that moves the program, and a path outlives a shell without our
    folder.
    """
    if shutil.which("smara"):
        return "smara"
    beside = os.path.join(
        os.path.dirname(sys.executable), "smara.exe" if sys.platform == "win32" else "smara"
    )
    return beside if os.path.exists(beside) else "smara"
