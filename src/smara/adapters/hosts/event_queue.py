"""Read the events queued in the spool and route them to projects.

A spool file is facts and a payload; an invalid one is quarantined. `ProjectRouter` assigns
each file to the project its hook named, or to the repository it happened in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from smara.adapters.hosts.brief import FOLDER
from smara.adapters.hosts.normalize import events_of
from smara.adapters.hosts.redact import safe
from smara.adapters.hosts.session_log import MARKS
from smara.adapters.hosts.spool import FORMAT, MOST_BYTES, names
from smara.config import AUTO_PROJECT
from smara.core.events import HostEvent
from smara.core.git import find_repository
from smara.core.scope import DEFAULT_PROJECT, is_id
from smara.memory import Memory

ASIDE = "unreadable"
_MOST_ASIDE = 200


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """One file of the spool, and the events that it tells."""

    path: str
    agent: str
    event: str
    at_ms: int
    project: str
    cwd: str
    events: tuple[HostEvent, ...]
    payload: bytes
    """What the host told, without secrets."""


def read(folder: str, limit: int, already: set[str]) -> tuple[list[SpoolFile], int]:
    """Read the oldest waiting files; count those put aside as unreadable.

    Files in ``already`` are left out.
    """
    found: list[SpoolFile] = []
    unreadable = 0
    for name in [each for each in names(folder) if each not in already][:limit]:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue  # another process has taken it in meanwhile, or it is not ours to read
        waiting = parse(path, content)
        if waiting is None:
            quarantine(path)
            unreadable += 1
        else:
            found.append(waiting)
    return found, unreadable


def parse(path: str, content: bytes) -> SpoolFile | None:
    """Parse a spool file; ``None`` if it is not one of ours.

    A payload that is no JSON object is refused as well.
    """
    head, newline, payload = content.partition(b"\n")
    facts = [fact.decode("utf-8", "surrogateescape") for fact in head.split(b"\t")]
    if not newline or len(facts) != 6 or facts[0].encode() != FORMAT or not facts[3].isdigit():
        return None
    if not payload.lstrip().startswith(b"{"):
        return None
    _, agent, event, at, project, cwd = facts
    if not _is_object(payload):
        return None
    # What was written had no mark of a secret in it, or was redacted; here everything is looked at
    # properly.
    payload = safe(payload, MOST_BYTES)
    events = events_of(agent, event, payload, at_ms=int(at), cwd=cwd)
    return SpoolFile(
        path,
        agent,
        event,
        at_ms=int(at),
        project=project,
        cwd=cwd,
        events=tuple(events),
        payload=payload,
    )


def _is_object(payload: bytes) -> bool:
    import json

    try:
        return isinstance(json.loads(payload), dict)
    except (ValueError, RecursionError):
        return False


def quarantine(path: str) -> None:
    """Put aside a file that cannot be taken in; drop the oldest."""
    folder = os.path.join(os.path.dirname(path), ASIDE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.replace(path, os.path.join(folder, os.path.basename(path)))
        for name in sorted(os.listdir(folder))[:-_MOST_ASIDE]:
            os.unlink(os.path.join(folder, name))
    except OSError:
        return  # it stays where it is, and is tried again


def remove(path: str) -> None:
    """Delete a file that was taken in; a missing one is fine."""
    try:
        os.unlink(path)
    except OSError:
        return


def sweep(folder: str, now_seconds: float) -> int:
    """Remove leftovers from the spool; return the number of files.

    Halves of killed hooks go after an hour, marks of sessions and briefs that were not renewed
    after a week.
    """
    gone = 0
    for place, seconds in (
        (folder, 3_600),
        (os.path.join(folder, MARKS), 7 * 86_400),
        (os.path.join(folder, FOLDER), 7 * 86_400),
    ):
        try:
            found = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for entry in found:
            is_ours = entry.name.startswith(".") if place == folder else True
            try:
                if is_ours and now_seconds - entry.stat().st_mtime > seconds:
                    os.unlink(entry.path)
                    gone += 1
            except OSError:
                continue
    return gone


class ProjectRouter:
    """The projects of one store that events belong to, opened once each."""

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
        """Return each folder's project, and the agents seen in it."""
        return {
            cwd: (project, self._agents.get(cwd, set()))
            for (_, cwd), project in self._found.items()
            if cwd
        }

    def divide(self, files: Sequence[SpoolFile]) -> list[tuple[Memory, list[SpoolFile]]]:
        """The files by the project they belong to, in their order."""
        found: dict[str, list[SpoolFile]] = {}
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
    """Return the project of an event, by the rule for opening memories."""
    settings = memory.settings
    name = named or settings.project or (AUTO_PROJECT if settings.db is None else DEFAULT_PROJECT)
    if name != AUTO_PROJECT:
        return name if is_id(name) else DEFAULT_PROJECT
    repository = find_repository(cwd) if cwd else None
    return memory.projects.of_repository(repository).project_id if repository else DEFAULT_PROJECT
