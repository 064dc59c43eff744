"""Precompute the brief of a project from its open store.

Called by a process that has the store open anyway: a drain, ``smara init``, or a hook that
had to open it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from smara.adapters.host_specs import host_named
from smara.adapters.hosts import brief
from smara.adapters.hosts.brief import FAILED, refresh_rule
from smara.config import config_path, load_settings, store_exists
from smara.context.models import Injection, PrecomputedInjections, ToolTrigger
from smara.context.moments import experiment
from smara.core.files import read_regular
from smara.core.host_table import RULE_FILES
from smara.core.startup.record import asdict, dataclass
from smara.core.tool_triggers import file_trigger, note_triggers, program_triggers
from smara.database.migrate import HEAD, schema_version
from smara.database.probe import MEMORIES, TASKS, Probe, has_changed, last_rows, open_probe
from smara.environment import spool_folder
from smara.errors import SmaraError
from smara.memory import Memory, open_memory
from smara.secrets.redact import clean_id

if TYPE_CHECKING:
    from smara.knowledge.models import TypedMemory

_MOST_INSTRUCTIONS = 100_000
_MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class BriefDraft:
    """A brief that is ready but for the store's final state."""

    cwd: str
    head: Mapping[str, Any]
    """The store's file (empty without one), the project, and how its tables stood."""
    watched: tuple[str, ...]
    words: Mapping[str, Mapping[str, Any]]


def _draft(memory: Memory, cwd: str, files: Mapping[str, Sequence[str]]) -> BriefDraft:
    """Ask the room that speaks what it would say in a folder.

    ``files`` has, by agent, the instruction files that it reads by itself.
    """
    # How things stood before the room was asked: what changes then is seen.
    with memory.internals.probe() as look:
        head = {
            "store": store_of(memory),
            "project_no": look.project_no,
            "marks": last_rows(look, MEMORIES),
            "task_mark": last_rows(look, TASKS)[0],
            "arms": "",
            "arms_mark": experiment.mark(look),
            # As it is stored with a memory: a brief is a file, too.
            "actor": clean_id(memory.internals.project.actor),
            "answers_messages": memory.settings.moments == "full",
        }
    with (database := memory.internals.database).read() as session:
        head |= {
            "apart": memory.internals.knowledge_store.apart(session),
            # Not the newest that this code knows: a newer release may have added something.
            "schema": schema_version(database, session) if head["store"] else HEAD,
        }
    words: dict[str, dict[str, Any]] = {}
    watched: set[str] = set()
    # A branch that is checked out later has other commits.
    branch = _branch(cwd)
    head["branch"] = {branch: brief.file_stamp(branch)}
    head["place"], noted = memory.commits.noted_files()
    notes = [
        trigger
        for path, is_undone in noted.items()
        for is_edit in ((True, False) if is_undone else (True,))
        for trigger in note_triggers([file_trigger(path)], is_edit)
    ]
    # A store that is no file cannot be probed: what is near to nothing is then known without it.
    subjects = memory.decisions.subjects() if not head["store"] else []
    root, find = brief.root_of(cwd), cache(memory.memories.find)
    for agent, paths in files.items():
        ready = memory.moments.prepared(agent=agent, cwd=root, known_texts=texts_of(paths))
        if ready.has_arms:
            head["arms"] = memory.project
        if ready.most_said:
            watched.update(notes)
        words[agent] = _words(ready, paths, partial(_cited, find, root))
        words[agent]["subjects"] = subjects
        watched.update(key for tool in ready.tools for key in _triggers(tool))
    return BriefDraft(cwd, head, tuple(watched), words)


def finish(folder: str, draft: BriefDraft) -> bool:
    """Write a brief after the store was closed; return True on success."""
    stamp, head = None, draft.head
    if head["store"]:
        stamp = brief.stamp_of(head["store"])
        look = open_probe(head["store"], head["project_no"], head["schema"])
        if look is None or not stamp:
            return False
        with look:
            if _has_changed(look, head):
                stamp = [0, 0, 0, 0]  # a stamp that no store has: hooks then look for themselves
    for agent in draft.words.keys() & RULE_FILES.keys():
        start = draft.words[agent]["start"]
        refresh_rule(brief.root_of(draft.cwd), agent, start["text"] if start else "")
    return brief.write(
        folder,
        draft.cwd,
        {**head, "stamp": stamp},
        triggers=draft.watched,
        words=draft.words,
        settings=[str(config_path()), _marker(draft.cwd)],
    )


def _marker(cwd: str) -> str:
    """Return the file by which a folder's repository is known to be the same."""
    git = os.path.join(brief.root_of(cwd), ".git")
    return os.path.join(git, "config") if os.path.isdir(git) else git


def _branch(cwd: str) -> str:
    """Return the file that names the branch which is checked out."""
    root = brief.root_of(cwd)
    git = os.path.join(root, ".git")
    for pointer in texts_of([git] if os.path.isfile(git) else ()):  # of a worktree
        git = os.path.join(root, pointer.partition("gitdir:")[2].strip())
    return os.path.join(git, "HEAD")


def _has_changed(look: Probe, head: Mapping[str, Any]) -> bool:
    return (
        has_changed(look, MEMORIES, head["marks"])
        or has_changed(look, TASKS, [head["task_mark"]])
        or experiment.has_changed(look, head["arms_mark"])
    )


def store_of(memory: Memory) -> str:
    """Return the file of a store; empty if it has none."""
    return os.path.abspath(memory.path) if memory.path else ""


def write_absence(folder: str, cwd: str, store: str) -> None:
    """Note that a folder has no store or no project.

    Hooks need not look as long as the store is as it is now.
    """
    stamp = brief.stamp_of(store)
    if stamp is not None:
        brief.write(
            folder,
            cwd,
            {"store": store, "stamp": stamp, "arms": "", "apart": [], "is_absent": True},
            triggers=(),
            words={},
            settings=[str(config_path()), _marker(cwd)],
        )


def prepare(
    memory: Memory,
    folder: str,
    cwd: str,
    agents: Iterable[str],
    loaded: Mapping[str, Iterable[str]] | None = None,
    history_seconds: float = 0.0,
) -> BriefDraft | None:
    """Draft a brief for these agents and those of the last one.

    Returns ``None`` if the room that speaks fails.

    ``loaded`` has files that agents said they have read, besides those that they are known to. With
    ``history_seconds``, what is new in the history of git is read first.
    """
    head = brief.head_of(folder, cwd) or {"agents": ()}
    files = {
        agent: _read_files(folder, agent, cwd, loaded=sorted((loaded or {}).get(agent, ())))
        for agent in sorted({*agents, *head["agents"]})
    }
    before = os.getcwd()
    if not enter(cwd):  # how memories stand to the code is judged in the folder they are about
        return None
    try:
        if history_seconds > 0:
            with suppress(SmaraError):  # the next one may do
                memory.commits.keep_up(history_seconds)
                memory.code.catch_up()  # little changes alone; only what was indexed before
        return _draft(memory, cwd, files)
    except SmaraError:
        return None
    finally:
        enter(before)


def prepare_ahead(cwd: str, agents: Sequence[str]) -> bool:
    """Write a brief before the first session; return True on success.

    Never raises: without a store, or with one in trouble, the first session asks.
    """
    if not agents or not store_exists(load_settings()):
        return False
    folder = spool_folder()
    try:
        with open_memory(check_index=False, embed_in_background=False) as memory:
            found = prepare(memory, folder, cwd, agents=agents)
    except SmaraError:
        return False
    return found is not None and finish(folder, found)


def keep_up(memory: Memory, folder: str) -> BriefDraft | None:
    """Draft this folder's brief if its content has changed, else ``None``.

    So a session that starts after a person taught something need not open the store.
    """
    return (
        prepare(memory, folder, os.getcwd(), agents=())
        if has_aged(memory, brief.head_of(folder, os.getcwd()))
        else None
    )


def bring_up_to_date(memory: Memory, folder: str) -> bool:
    """Rewrite this folder's brief if something changed; return True if so.

    What the open store does later changes its files: hooks then look for themselves if it
    still holds.
    """
    changed = keep_up(memory, folder)
    return changed is not None and finish(folder, changed)


def is_current(memory: Memory, folder: str, cwd: str, agent: str) -> bool:
    """Return True if an agent's brief is there and up to date."""
    head = brief.head_of(folder, cwd)
    words = brief.words_of(folder, head, agent) if head is not None else None
    return words is not None and words["is_same"] and not has_aged(memory, head)


def has_aged(memory: Memory, head: Mapping[str, Any] | None) -> bool:
    """Return True if a brief of this project is out of date."""
    if head is None or head["is_same"] or head["store"] != store_of(memory):
        return False
    with memory.internals.probe() as look:
        return head.get("project_no") == look.project_no and _has_changed(look, head)


def enter(cwd: str) -> bool:
    """Enter the folder of a host; return False if it is missing.

    A project is the repository around the current folder.
    """
    try:
        os.chdir(cwd or ".")
    except (OSError, ValueError):
        return False
    return True


def _words(
    ready: PrecomputedInjections,
    files: Sequence[str],
    cited: Callable[[Injection | None], list[str]],
) -> dict[str, Any]:
    return {
        "files": list(files),
        "cited": cited(ready.start),
        "start": None if ready.start is None else asdict(ready.start),
        "most_said": ready.most_said,
        "firsts": [
            {"words": each.words, "stems": each.stems, "told": asdict(each.injection)}
            for each in ready.firsts
        ],
        "tools": [
            {
                "point": each.point,
                "tools": each.tools,
                "file": each.file,
                "command": each.command,
                "pattern": each.pattern,
                "words": each.words,
                "needs": each.needs,
                "whole": each.is_whole,
                "told": asdict(each.injection),
                "cited": cited(each.injection),
            }
            for each in ready.tools
        ],
    }


def _cited(
    find: Callable[[str], TypedMemory | None], root: str, injection: Injection | None
) -> list[str]:
    """Return the files of the repository that cited memories are about."""
    items = injection.items if injection is not None else ()
    memories = filter(None, (find(item.id) for item in items if item.kind == "memory"))
    paths = (os.path.join(root, path) for memory in memories for path in memory.files)
    return list(dict.fromkeys(paths))[:_MOST_FILES]


def _triggers(tool: ToolTrigger) -> Iterable[str]:
    """Return the coarse triggers under which words can come up at all."""
    if tool.point == "tool_failure":
        return [FAILED]
    if tool.file:
        return [file_trigger(tool.file)]
    if tool.command:
        return program_triggers(tool.command)
    if tool.needs:
        return [f"program:{tool.needs[0]}"]
    return [f"word:{tool.pattern}"] if tool.pattern else [f"tool:{name}" for name in tool.tools]


def instructions_of(agent: str, cwd: str, folder: str) -> list[str]:
    """Return the texts that an agent itself reads in a folder.

    What they say need not be said again.
    """
    return texts_of(_read_files(folder, agent, cwd))


def _read_files(folder: str, agent: str, cwd: str, loaded: Iterable[str] = ()) -> list[str]:
    """Return the files that an agent is known to read, and those that it said it has."""
    root, host = brief.root_of(cwd), host_named(agent)
    paths = [os.path.join(root, name) for name in host.instructions.at_start]
    if host.setup is not None and host.setup.home is not None:
        paths += [os.path.join(host.setup.home.path, name) for name in host.instructions.at_home]
    paths += [*brief.files_of(folder, cwd, agent), *loaded]
    return list(dict.fromkeys(paths))[:_MOST_FILES]


def texts_of(paths: Iterable[str]) -> list[str]:
    """Return the content of files; those that cannot be read are skipped."""
    texts = []
    for path in paths:
        with suppress(OSError, ValueError):
            texts.append(read_regular(path, _MOST_INSTRUCTIONS).decode("utf-8", "replace"))
    return texts
