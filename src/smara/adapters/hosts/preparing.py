"""Writing the brief of a project: what hooks may say from now on, without opening the store.

Done by whoever has the store open anyway: a drain, ``smara init``, a hook that had to ask.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from typing import Any

from smara.adapters.hosts import briefs
from smara.adapters.hosts.learning import Prepared, PreparedTool, Preparing, Told, moments_of
from smara.adapters.hosts.prepared import FAILED
from smara.adapters.hosts.rules import refresh_rule
from smara.core.triggers import file_trigger, program_triggers
from smara.database.glance import glance
from smara.database.migrate import HEAD
from smara.environment import home_of
from smara.errors import SmaraError
from smara.knowledge import standing
from smara.memory import Memory
from smara.tasks import standing as tasks

_MOST_INSTRUCTIONS = 100_000
_INSTRUCTIONS = {
    "claude": ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"), "codex": ("AGENTS.override.md", "AGENTS.md"),
    "gemini": ("GEMINI.md", "AGENTS.md"), "copilot": (".github/copilot-instructions.md", "AGENTS.md"),
    "cursor": (".cursorrules", "AGENTS.md"), "opencode": ("AGENTS.md",), "generic": ("AGENTS.md",),
}  # fmt: skip
_OWN = {
    "claude": (("CLAUDE_CONFIG_DIR", ".claude", "CLAUDE.md"),), "codex": (("CODEX_HOME", ".codex", "AGENTS.md"),),
    "gemini": (("GEMINI_CONFIG_DIR", ".gemini", "GEMINI.md"),),
    "opencode": (("", ".config/opencode", "AGENTS.md"),),
}  # fmt: skip
_MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class Draft:
    """A brief that is ready, but for how the store stands once it is closed."""

    cwd: str
    store: str
    project_no: int
    marks: list[int]
    task_mark: int
    watched: tuple[str, ...]
    asked: tuple[str, ...]
    words: Mapping[str, Mapping[str, Any]]


def draft(memory: Memory, cwd: str, files: Mapping[str, Sequence[str]]) -> Draft | None:
    """Ask the room that speaks what it would say in a folder; ``None`` where that cannot be kept in a file.

    ``files`` has, by agent, the instruction files that it reads by itself.
    """
    moments = moments_of(memory)
    store = os.path.abspath(str(getattr(memory.database, "path", "")))
    look = glance(store, memory.scope.project_no, HEAD) if isinstance(moments, Preparing) else None
    if look is None or not isinstance(moments, Preparing):
        return None
    with look:  # how things stood before the room was asked: what changes meanwhile is then seen
        marks, task_mark = standing.marks(look), tasks.mark(look)
    words: dict[str, Mapping[str, Any]] = {}
    watched: set[str] = set()
    asked: set[str] = set()
    for agent, paths in files.items():
        ready = moments.prepared(agent=agent, cwd=cwd, known_texts=texts_of(paths))
        if ready is None:
            return None
        words[agent] = _words(ready, paths, partial(_cited, memory, briefs.root_of(cwd), {}))
        watched.update(key for tool in ready.tools for key in _triggers(tool))
        asked.update(ready.asked)
    return Draft(
        cwd, store, memory.scope.project_no, marks, task_mark, tuple(watched | asked), tuple(sorted(asked)), words
    )


def finish(folder: str, draft: Draft) -> bool:
    """Write a brief, when the store was closed; whether there is one now."""
    stamp = briefs.stamp_of(draft.store)
    look = glance(draft.store, draft.project_no, HEAD)
    if look is None or not stamp:
        return False
    with look:
        is_changed = standing.has_changed(look, draft.marks) or tasks.has_changed(look, draft.task_mark)
    facts = {
        "store": draft.store, "project_no": draft.project_no, "schema": HEAD, "marks": draft.marks,
        "task_mark": draft.task_mark, "asked": draft.asked,
        "stamp": [0, 0, 0, 0] if is_changed else stamp,  # a stamp that no store has: hooks then look for themselves
    }  # fmt: skip
    if "cursor" in draft.words:
        refresh_rule(briefs.root_of(draft.cwd), (draft.words["cursor"]["start"] or {"text": ""})["text"])
    return briefs.write(folder, draft.cwd, facts, draft.watched, draft.words)


def write_absence(folder: str, cwd: str, store: str) -> None:
    """Note that there is no store, so that hooks need not look for it with every call."""
    if briefs.stamp_of(store) == []:
        briefs.write(folder, cwd, {"store": store, "stamp": [], "asked": []}, (), {})


def prepare(
    memory: Memory, folder: str, cwd: str, agents: Iterable[str], loaded: Mapping[str, Iterable[str]] | None = None
) -> Draft | None:
    """A draft for the agents given and those that the last brief was for; trouble of the room leaves none.

    ``loaded`` has files that agents said they have read, besides those that they are known to.
    """
    head = briefs.head_of(folder, cwd)
    known = head["agents"] if head is not None else []
    files = {}
    for agent in sorted({*agents, *known}):
        read = sorted((loaded or {}).get(agent, ()))
        found = [*instruction_files(agent, cwd), *briefs.files_of(folder, cwd, agent), *read]
        files[agent] = list(dict.fromkeys(found))[:_MOST_FILES]
    before = os.getcwd()
    enter(cwd)  # how memories stand to the code is judged in the folder they are about
    try:
        return draft(memory, cwd, files)
    except SmaraError:
        return None
    finally:
        enter(before)


def keep_up(memory: Memory, folder: str) -> Draft | None:
    """A draft of this folder's brief when a memory was changed since it was made; ``None`` when there is nothing to do.

    So a session that starts after a person taught something need not open the store.
    """
    head = briefs.head_of(folder, os.getcwd())
    if head is None or head["is_same"] or head.get("project_no") != memory.scope.project_no:
        return None
    if head["store"] != os.path.abspath(str(getattr(memory.database, "path", ""))):
        return None
    look = glance(head["store"], head["project_no"], HEAD)
    if look is None:
        return None
    with look:
        is_changed = standing.has_changed(look, head["marks"])
    return prepare(memory, folder, os.getcwd(), ()) if is_changed else None


def enter(cwd: str) -> None:
    """A project is the repository around the current folder, and the host says where it is."""
    try:
        os.chdir(cwd)
    except OSError:
        return


def _words(ready: Prepared, files: Sequence[str], cited: Callable[[Told | None], list[str]]) -> dict[str, Any]:
    return {
        "files": list(files), "cited": cited(ready.start), "start": _facts(ready.start), "most_said": ready.most_said,
        "first_words": list(ready.first_words),
        "firsts": [
            {"words": list(each.words), "stems": list(getattr(each, "stems", ())), "told": _facts(each.told)}
            for each in ready.firsts
        ],
        "tools": [
            {"point": each.point, "tools": list(each.tools), "file": each.file, "command": each.command,
             "pattern": each.pattern, "words": list(each.words), "told": _facts(each.told),
             "cited": cited(each.told)}
            for each in ready.tools
        ],
    }  # fmt: skip


def _cited(memory: Memory, root: str, known: dict[str, list[str]], told: Told | None) -> list[str]:
    """The files of the repository that cited memories are about."""
    found: list[str] = []
    for item in (_facts(told) or {}).get("items", ()):
        if item["kind"] == "memory":
            if item["id"] not in known:
                cited = memory.memories.find(item["id"])
                known[item["id"]] = [os.path.join(root, path) for path in cited.files] if cited is not None else []
            found += known[item["id"]]
    return list(dict.fromkeys(found))[:_MOST_FILES]


def _facts(told: Told | None) -> dict[str, Any] | None:
    if told is None or not is_dataclass(told) or isinstance(told, type):
        return None
    return asdict(told)


def _triggers(tool: PreparedTool) -> Iterable[str]:
    """The coarse triggers under which words can come up at all."""
    if tool.point == "tool_failure":
        yield FAILED
    elif tool.file:
        yield file_trigger(tool.file)
    elif tool.command:
        yield from program_triggers(tool.command)
    elif tool.pattern:
        yield f"word:{tool.pattern}"
    else:
        yield from (f"tool:{name}" for name in tool.tools)


def instructions_of(agent: str, cwd: str) -> list[str]:
    """The instruction files that this agent has read by itself in a folder; what they say need not be said again."""
    return texts_of(instruction_files(agent, cwd))


def texts_of(paths: Iterable[str]) -> list[str]:
    """What stands in files; those that cannot be read are left out."""
    found = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read(_MOST_INSTRUCTIONS))
        except (OSError, ValueError):
            continue
    return found


def instruction_files(agent: str, cwd: str) -> list[str]:
    """Where those files would be: in the repository, and in the agent's own folder."""
    root = briefs.root_of(cwd)
    own = [os.path.join(home_of(variable, place), name) for variable, place, name in _OWN.get(agent, ())]
    return [*(os.path.join(root, name) for name in _INSTRUCTIONS.get(agent, ())), *own]
