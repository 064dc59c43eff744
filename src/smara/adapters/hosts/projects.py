"""Behind which wall an event belongs: the project its hook was told, or the repository it happened
in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from smara.adapters.hosts.waiting import Waiting
from smara.config import AUTO_PROJECT
from smara.core.repository import find_repository
from smara.core.scope import DEFAULT_PROJECT, is_id
from smara.memory import Memory


class Walls:
    """The projects of one store that events belong to; each is opened once."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._opened: dict[str, Memory] = {memory.project: memory}
        self._found: dict[tuple[str, str], str] = {}
        self._agents: dict[str, set[str]] = {}
        self.loaded: dict[str, dict[str, set[str]]] = {}
        """The instruction files that agents said they have read, by folder and agent."""

    def projects(self) -> list[Memory]:
        """Those that were met, the memory's own first."""
        return list(self._opened.values())

    def folders(self) -> dict[str, tuple[str, set[str]]]:
        """The project of each folder that was met, and the agents that were met there."""
        return {
            cwd: (project, self._agents.get(cwd, set()))
            for (_, cwd), project in self._found.items()
            if cwd
        }

    def divide(self, files: Sequence[Waiting]) -> list[tuple[Memory, list[Waiting]]]:
        """The files by the project they belong to, in their order."""
        found: dict[str, list[Waiting]] = {}
        for each in files:
            cwd = next((event.cwd for event in each.events if event.cwd), each.cwd)
            found.setdefault(self._project(each.project, cwd), []).append(each)
            self._agents.setdefault(cwd, set()).update(event.agent for event in each.events)
            for event in each.events:
                if event.kind == "instructions" and event.tool_input.get("file_path"):
                    read = self.loaded.setdefault(cwd, {}).setdefault(event.agent, set())
                    read.add(os.path.join(event.cwd, str(event.tool_input["file_path"])))
        return [(self._open(name), some) for name, some in found.items()]

    def _open(self, project: str) -> Memory:
        if project not in self._opened:
            self._opened[project] = self.memory.in_project(project)
        return self._opened[project]

    def _project(self, named: str, cwd: str) -> str:
        if (named, cwd) not in self._found:
            self._found[named, cwd] = project_of(self.memory, named, cwd)
        return self._found[named, cwd]


def project_of(memory: Memory, named: str, cwd: str) -> str:
    """The project of an event, by the same rule as for a memory that is opened in its folder."""
    settings = memory.settings
    name = named or settings.project or (AUTO_PROJECT if settings.db is None else DEFAULT_PROJECT)
    if name != AUTO_PROJECT:
        return name if is_id(name) else DEFAULT_PROJECT
    repository = find_repository(cwd) if cwd else None
    return memory.projects.of_repository(repository).project_id if repository else DEFAULT_PROJECT
