"""Record what a session was already given, in one file per session.

The file lies beside the spool, so that a hook can check it without opening the store.
`claim_round` claims the hourly maintenance in the same folder.
"""

from __future__ import annotations

import os
import time
from zlib import crc32

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKS = "told"
EMPTIED = "emptied"
"""What a session began with whose context was compacted since."""
ROUND_SECONDS = 3_600
"""How often what a worker would do is done by whoever drains."""


def claim_round(folder: str) -> bool:
    """Claim this hour's maintenance; return False if it was done lately."""
    path = os.path.join(folder, MARKS, "round")
    try:
        if time.time() - os.stat(path).st_mtime < ROUND_SECONDS:
            return False
    except OSError:
        pass
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(path)
    except OSError:
        return False
    return True


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
        try:
            with open(self.path(folder, session_id), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return
        for line in lines:
            point, *names = line.split("\t")
            if point.startswith("began "):
                self.began_with = point[6:]
            self.names.update(names)
            self.times += point in ("before_tool", "after_tool", "tool_failure")

    @staticmethod
    def path(folder: str, session_id: str) -> str:
        """Return the path of a session's log."""
        name = session_id.encode("utf-8", "surrogatepass")
        return os.path.join(folder, MARKS, f"said-{crc32(name):08x}{crc32(name, 1):08x}")

    @classmethod
    def add(cls, folder: str, session_id: str, point: str, names: Iterable[str]) -> None:
        """Add a line; if that fails, something may be said twice."""
        line = (
            "\t".join([point, *(name.replace("\t", " ").replace("\n", " ") for name in names)])
            + "\n"
        )
        try:
            os.makedirs(os.path.join(folder, MARKS), mode=0o700, exist_ok=True)
            file = os.open(
                cls.path(folder, session_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
            )
            try:
                os.write(file, line.encode("utf-8", "replace"))
            finally:
                os.close(file)
        except OSError:
            return

    @classmethod
    def forget(cls, folder: str, session_id: str) -> None:
        """Forget what a session was told."""
        try:
            os.unlink(cls.path(folder, session_id))
        except OSError:
            return

    @classmethod
    def empty(cls, folder: str, session_id: str) -> None:
        """Forget what a session was told before its context is compacted."""
        cls.forget(folder, session_id)
        cls.add(folder, session_id, f"began {EMPTIED}", [])
