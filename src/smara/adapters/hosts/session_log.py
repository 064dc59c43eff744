"""Record what a session was already given, in one file per session.

The file lies beside the spool, so that a hook can check it without opening the store. Marks
in the same folder say what was done before: a question that was answered, the hourly maintenance
(`leave_mark`).
"""

from __future__ import annotations

import json
import os
import time
from zlib import crc32

from smara.adapters.hosts.spool import append, put
from smara.core.files import make_private
from smara.environment import variable

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MARKS = "told"
LOG = "said-"
NOTICE = ("smara", "told")
"""The agent and event of a spool file that records an injection from the brief."""
FORGETTING = ("compact", "clear")
"""Starts after which nothing of what was said is in the context any more."""
EMPTIED = "emptied"
"""What a session began with whose context was compacted since."""
ROUND, ROUND_SECONDS = "round", 3_600
"""The mark of what a worker would do, and how often it is done by a process that drains."""


def leave_mark(
    folder: str, name: str, good_seconds: float | None = None, *, if_unwritable: bool = True
) -> bool:
    """Leave a mark; return False if it is there already.

    A mark is good for ever, or for so many seconds. A process that cannot leave one gets
    `if_unwritable`: what may be done twice counts as the first time, costly work does not.
    """
    path = _path(folder, name)
    for _ in range(2):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            return True
        except FileExistsError:
            break
        except FileNotFoundError:
            try:
                make_private(os.path.dirname(path))
            except OSError:
                return if_unwritable
        except OSError:
            return if_unwritable
    if good_seconds is None:
        return False
    try:
        if time.time() - os.stat(path).st_mtime <= good_seconds:
            return False
        os.utime(path)
    except OSError:
        return if_unwritable  # it is another user's: it would be the first time at every call
    return True


def remove_mark(folder: str, name: str, kind: str = "") -> None:
    """Remove a mark, or a session's log; a missing one is fine."""
    try:
        os.unlink(_path(folder, name, kind))
    except OSError:
        return


def _path(folder: str, name: str, kind: str = "") -> str:
    raw = name.encode("utf-8", "surrogatepass")
    return os.path.join(folder, MARKS, f"{kind}{crc32(raw):08x}{crc32(raw, 1):08x}")


class SessionLog:
    """The record of what a session was told.

    One line per telling: its point first, then what was cited.
    """

    def __init__(self, folder: str, session_id: str) -> None:
        self.names: set[str] = set()
        self.times = 0
        """How often it was told something about a tool."""
        self.began_with = ""
        """Which brief its start came from; empty when it is not known."""
        self.heard_in = session_id
        """The thread whose words stand in its context; empty once that was compacted."""
        try:
            with open(_path(folder, session_id, LOG), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return
        for line in lines:
            point, *names = line.split("\t")
            if point.startswith("began "):
                self.began_with = point[6:]
            if point in (EMPTIED, f"began {EMPTIED}"):
                self.heard_in = ""
            self.names.update(names)
            self.times += point in ("before_tool", "after_tool", "tool_failure")

    @classmethod
    def add(cls, folder: str, session_id: str, point: str, names: Iterable[str]) -> None:
        """Add a line; if that fails, something may be said twice."""
        clean = (name.replace("\t", " ").replace("\n", " ") for name in names)
        try:
            make_private(os.path.join(folder, MARKS))
            append(_path(folder, session_id, LOG), "\t".join([point, *clean]) + "\n")
        except OSError:
            return


def note(
    folder: str,
    agent: str,
    session_id: str,
    source: str,
    cwd: str,
    injection: Mapping[str, Any],
    is_said: bool = True,
) -> None:
    """Record what is said to a session, for the next drain, too.

    Never raises.
    """
    SessionLog.add(folder, session_id, injection["point"], names=sorted(names_of(injection)))
    notice = {
        "session_id": session_id,
        "source": source,
        "cwd": cwd,
        "agent": agent,
        "told": {**injection, "agent": injection.get("agent") or agent},
        "is_said": is_said,
    }
    try:
        put(
            folder,
            *NOTICE,
            json.dumps(notice).encode(),
            variable("SMARA_PROJECT"),
            cwd,
            is_clean=True,
        )
    except OSError:
        return  # it is said all the same; only its receipt is missing


def remember_start(folder: str, session_id: str, source: Any, made_at: float | str) -> None:
    """Record a session's start; an empty context forgets what was said.

    ``made_at`` names the brief that it starts with, or is `EMPTIED` before a compaction.
    """
    if source in FORGETTING:
        remove_mark(folder, session_id, LOG)
        SessionLog.add(folder, session_id, EMPTIED, names=[])
    SessionLog.add(folder, session_id, f"began {made_at}", names=[])


def name_of(item: Mapping[str, Any]) -> str:
    """Return the name that tells one cited thing from another."""
    return str(item.get("key") or f"{item['kind']}:{item['id']}")


def names_of(injection: Mapping[str, Any]) -> set[str]:
    """Return the names of all that is cited."""
    return {name_of(item) for item in injection["items"]}
