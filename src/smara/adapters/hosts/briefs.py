"""A brief: what a hook may know of a project without opening the store, in one small file beside the spool.

Opening a store costs several times as much as starting Python, and most tool calls are
about nothing that is known. The brief lists what something is known about (coarse
triggers, :mod:`smara.core.triggers`). It counts only while the store's files are as they
were when it was written; after any change the store itself is asked, and the brief made
anew. Where the room that speaks can prepare a start (:class:`.learning.Preparing`), it
holds the words a session of each agent begins with, too; those also count only while the
agent's own instruction files are as they were, and for half a day.
"""

from __future__ import annotations

import json
import os
import time
from zlib import crc32

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FOLDER = "briefs"
_FORMAT = 2
_START_SECONDS = 12 * 3_600
_MOST_TRIGGERS = 20_000


def root_of(cwd: str) -> str:
    """The folder whose project a folder belongs to: the nearest with a ``.git``, or itself."""
    here = os.path.abspath(cwd or ".")
    while True:
        if os.path.exists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return os.path.abspath(cwd or ".")
        here = above


def watched(folder: str, cwd: str) -> frozenset[str] | None:
    """What something is known about in the project of a folder; ``None`` when only the store can tell."""
    brief = _read(folder, cwd)
    return None if brief is None else frozenset(brief["watched"])


def start_of(folder: str, cwd: str, agent: str) -> dict[str, Any] | None:
    """What a session of this agent begins with, as it was prepared; ``None`` when only the store can tell."""
    brief = _read(folder, cwd)
    start = None if brief is None else brief["starts"].get(agent)
    if start is None or brief is None or not 0 <= time.time() - brief["made_at"] < _START_SECONDS:
        return None
    is_same = all(_file_stamp(path) == stamp for path, stamp in start["files"].items())
    return dict(start) if is_same and isinstance(start["text"], str) else None


def _read(folder: str, cwd: str) -> dict[str, Any] | None:
    """The brief of a folder's project, while it counts."""
    try:
        with open(path_of(folder, root_of(cwd)), "rb") as file:
            brief: dict[str, Any] = json.loads(file.read())
        if brief["format"] != _FORMAT or brief["stamp"] != stamp_of(brief["store"]):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return brief


def write(
    folder: str, cwd: str, store: str, triggers: Iterable[str], starts: Mapping[str, Mapping[str, Any]] | None = None
) -> bool:
    """Write the brief of a folder's project; whether there is one now. Call it when the store was closed.

    ``starts`` has, by agent, the ``text`` that is said, what was ``told`` for its receipt, and the paths of the
    ``files`` that it was prepared against.
    """
    found = sorted(set(triggers))
    stamp = stamp_of(store)
    path = path_of(folder, root_of(cwd))
    if stamp is None or len(found) > _MOST_TRIGGERS:
        return False
    prepared = {
        agent: {**start, "files": {each: _file_stamp(each) for each in start["files"]}}
        for agent, start in (starts or {}).items()
    }
    brief = {"format": _FORMAT, "store": store, "stamp": stamp, "watched": found, "starts": prepared}
    content = json.dumps({**brief, "made_at": time.time()}).encode()
    hidden = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(file, content)
        finally:
            os.close(file)
        os.replace(hidden, path)
    except OSError:
        return False
    return True


def path_of(folder: str, root: str) -> str:
    """Where the brief of a root is kept."""
    return os.path.join(folder, FOLDER, f"{crc32(root.encode('utf-8', 'surrogateescape')):08x}.json")


def stamp_of(store: str) -> list[int] | None:
    """How the files of a SQLite store stand; ``None`` for what is no such file."""
    try:
        main = os.stat(store)
    except (OSError, ValueError):
        return None
    try:
        log = os.stat(store + "-wal")
    except OSError:
        return [main.st_mtime_ns, main.st_size, 0, 0]
    # An empty log says only that somebody has the store open.
    return [main.st_mtime_ns, main.st_size, log.st_mtime_ns if log.st_size else 0, log.st_size]


def _file_stamp(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return []
    return [found.st_mtime_ns, found.st_size]
