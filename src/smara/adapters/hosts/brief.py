"""Read and write the brief: precomputed context for hooks, in small files.

Opening a store costs several times as much as starting Python, and most tool calls need
nothing from it. A brief has a head per project (which store, its state, coarse triggers of
everything in it; :mod:`smara.core.tool_triggers`) and a file per agent with the texts. Hosts
whose hooks cannot pass text on read a rule file with the same content.
"""

from __future__ import annotations

import json
import os
import time
from zlib import crc32

from smara.adapters.hook_output import rule_content
from smara.core.files import make_private, read_regular
from smara.core.host_table import RULE_FILES
from smara.environment import moment_variables

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FOLDER = "briefs"
FORMAT = 10
FAILED = "failed:"
"""The trigger of every call that failed."""
GOOD_SECONDS = 72 * 3_600
_MOST_TRIGGERS = 20_000


def root_of(cwd: str) -> str:
    """Return the nearest folder with a ``.git``, or the folder itself."""
    here = os.path.abspath(cwd or ".")
    while True:
        if os.path.exists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return os.path.abspath(cwd or ".")
        here = above


def head_of(folder: str, cwd: str) -> dict[str, Any] | None:
    """Return the head of a folder's brief; ``None`` without a readable one.

    Its ``is_same`` says whether the store is as it was.
    """
    return _head(path_of(folder, root_of(cwd)))


def heads(folder: str) -> dict[str, dict[str, Any]]:
    """Return the heads of all briefs, by the root of their repository."""
    try:
        entries = list(os.scandir(os.path.join(folder, FOLDER)))
    except OSError:
        return {}
    briefs = (_head(each.path) for each in entries if "-" not in each.name)
    return {head["root"]: head for head in briefs if head is not None}


def _head(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            head: dict[str, Any] = json.loads(file.read())
        if (
            head["format"] != FORMAT
            or not are_same(head["settings"])
            or head["environment"] != moment_variables()
        ):
            return None  # by other settings, something else may be to be said, or nothing
        head["is_same"] = bool(head["store"]) and head["stamp"] == stamp_of(head["store"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return head


def words_of(folder: str, head: Mapping[str, Any], agent: str) -> dict[str, Any] | None:
    """Return what may be said to an agent.

    ``None`` if nothing was prepared for it, or it has aged.

    Its ``is_same`` says whether the instruction files are as they were.
    """
    try:
        with open(path_of(folder, head["root"], agent), "rb") as file:
            words: dict[str, Any] = json.loads(file.read())
        if (
            words["made_at"] != head["made_at"]
            or not 0 <= time.time() - words["made_at"] < GOOD_SECONDS
        ):
            return None
        words["is_same"] = are_same(words["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return words


def are_same(stamps: Mapping[str, Any]) -> bool:
    """Return True if files have not changed since their stamps were taken."""
    return all(file_stamp(path) == stamp for path, stamp in stamps.items())


def _stamps(paths: Iterable[str]) -> dict[str, list[int]]:
    return {path: file_stamp(path) for path in paths}


def files_of(folder: str, cwd: str, agent: str) -> list[str]:
    """Return the instruction files of the last brief for an agent."""
    try:
        with open(path_of(folder, root_of(cwd), agent), "rb") as file:
            return [path for path in json.loads(file.read())["files"] if isinstance(path, str)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def write(
    folder: str,
    cwd: str,
    facts: Mapping[str, Any],
    triggers: Iterable[str],
    words: Mapping[str, Mapping[str, Any]],
    settings: Iterable[str] = (),
) -> bool:
    """Write the brief of a folder's project; whether there is one now.

    ``facts`` has the ``store`` (empty for one that is no file), its ``stamp`` from before the words
    were asked for, and what else the head shall tell; ``words`` by agent what may be said, with the
    paths of the ``files`` that it was prepared against, and of those of the repository that are
    ``cited`` by its start and by each of its ``tools``. ``settings`` are the files of settings that
    count here; with a change of one the brief counts no longer.
    """
    found = sorted(set(triggers))
    root = root_of(cwd)
    if (facts["store"] and facts["stamp"] is None) or len(found) > _MOST_TRIGGERS:
        return False
    made_at = time.time()
    head = {
        **facts,
        "format": FORMAT,
        "root": root,
        "made_at": made_at,
        "watched": found,
        "agents": sorted(words),
        "settings": _stamps(settings),
        "environment": moment_variables(),
    }
    try:
        make_private(os.path.join(folder, FOLDER))
        for agent, brief in words.items():
            stamped = {
                "files": _stamps(brief["files"]),
                "cited": _stamps(brief["cited"]),
                "tools": [{**each, "cited": _stamps(each["cited"])} for each in brief["tools"]],
            }
            texts = {**brief, **stamped, "made_at": made_at}
            _put(path_of(folder, root, agent), json.dumps(texts, separators=(",", ":")))
        _put(path_of(folder, root), json.dumps(head, separators=(",", ":")))
    except OSError:
        return False
    return True


def _put(path: str, content: str) -> None:
    hidden = f"{path}.{os.getpid()}"
    file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(content)
    os.replace(hidden, path)


def path_of(folder: str, root: str, agent: str = "") -> str:
    """Return the path of a root's brief, or of one agent's part."""
    name = f"{crc32(root.encode('utf-8', 'surrogateescape')):08x}"
    return os.path.join(folder, FOLDER, f"{name}-{agent}.json" if agent else f"{name}.json")


def stamp_of(store: str) -> list[int] | None:
    """Return the state of a SQLite store's files.

    Empty without files; ``None`` for something that can be no such file.
    """
    if not store or "://" in store:
        return None
    try:
        main = os.stat(store)
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return None
    try:
        log = os.stat(store + "-wal")
    except OSError:
        return [main.st_mtime_ns, main.st_size, 0, 0]
    # An empty log says only that a process has the store open.
    return [main.st_mtime_ns, main.st_size, log.st_mtime_ns if log.st_size else 0, log.st_size]


def file_stamp(path: str) -> list[int]:
    """Return the state of a file; empty if it is missing."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return []
    return [found.st_mtime_ns, found.st_size]


def has_rule(root: str, agent: str) -> bool:
    """Return True if a repository has our rule file of a host."""
    if agent not in RULE_FILES:
        return False
    path, head = RULE_FILES[agent]
    try:
        start = read_regular(os.path.join(root, *path.split("/")), 4 * len(head))
        return start.decode("utf-8", "replace").startswith(head)
    except OSError:
        return False


def refresh_rule(root: str, agent: str, text: str) -> bool:
    """Rewrite a host's rule file; return True if it changed.

    Never raises.
    """
    place, head = RULE_FILES[agent]
    path = os.path.join(root, *place.split("/"))
    content = rule_content(head, text)
    try:
        before = read_regular(path).decode()
        if not before.startswith(head) or before == content:
            return False
        hidden = f"{path}.{os.getpid()}"
        # Its first lines are compared byte by byte, on Windows too.
        with open(hidden, "w", encoding="utf-8", newline="\n") as file:
            file.write(content)
        os.replace(hidden, path)
    except (OSError, ValueError):
        return False
    return True
