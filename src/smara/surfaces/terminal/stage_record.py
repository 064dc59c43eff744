"""Record how far the reading of a project is.

The record lies beside the spool. Its writer renews it every few seconds, so that a record which is
not renewed is of a run that was stopped: by a person, by the machine, or by its end.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from typing import Any
from zlib import crc32

from smara.core.files import make_private
from smara.environment import spool_folder

SILENT_SECONDS = 15.0


class StageRecord:
    """The progress of a run, in a file that others may read."""

    def __init__(self, project: str) -> None:
        name = f"{crc32(project.encode('utf-8', 'replace')):08x}.json"
        self.path = os.path.join(spool_folder(), "reading", name)

    def find(self) -> dict[str, Any] | None:
        """Return how far the last run came.

        ``None`` if it ended well, or there was none.
        """
        try:
            with open(self.path, encoding="utf-8") as file:
                found = json.load(file)
            seconds = time.time() - found["updatedAt"] / 1000
            return {**found, "isRunning": not found["error"] and seconds < SILENT_SECONDS}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, facts: dict[str, Any]) -> None:
        """Write the progress; a full disk must not end the run."""
        with suppress(OSError):
            make_private(os.path.dirname(self.path))
            content = json.dumps({**facts, "updatedAt": int(time.time() * 1000)})
            hidden = f"{self.path}.{os.getpid()}.{threading.get_ident()}"
            with open(hidden, "w", encoding="utf-8") as file:
                file.write(content)
            os.replace(hidden, self.path)

    def remove(self) -> None:
        """Forget the run: it has ended well."""
        with suppress(OSError):
            os.unlink(self.path)


def share_of(done: int, total: int) -> int:
    """Return the share of a stage that is done, in percent.

    Its end is more than its last step.

    >>> share_of(1, 4), share_of(4, 4)
    (25, 99)
    """
    return min(99, 100 * done // total)


def stage_line(found: dict[str, Any]) -> str:
    """Return how far a run is, for people.

    >>> stage_line({"stage": "code", "done": 1, "total": 4, "left": ["vectors"],
    ...               "isRunning": True, "error": ""})
    'code, 25 %, then vectors'
    """
    share = f", {share_of(found['done'], found['total'])} %" if found["total"] else ""
    if not found["isRunning"]:
        why = f" ({found['error']})" if found["error"] else ""
        return f"stopped at {found['stage']}{share}{why}; `smara init` goes on"
    left = f", then {', '.join(found['left'])}" if found["left"] else ""
    return f"{found['stage']}{share}{left}"
