"""A process that copies a store and dies at a statement of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import smara
from smara.database.servers import PostgresSession
from smara.database.sqlite import SqliteSession
from smara.privacy import copy as copying


def kill_before(kill_at: int) -> Callable[[], int]:
    """Kill this process before its ``kill_at``-th statement; return what counts them."""
    done = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            nonlocal done
            done += 1
            if done == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*given)

        return run

    for session in (SqliteSession, PostgresSession):
        for name in ("run", "run_many"):
            setattr(session, name, counted(getattr(session, name)))
    return lambda: done


def copy(pipe: Connection, source: str, target: str, kill_at: int) -> None:
    """Copy a store in small batches; killed before a statement that would change something."""
    done = kill_before(kill_at)
    copying._MOST_ROWS = 7
    report = smara.copy_store(source, target)
    pipe.send((done(), report.is_resumed, report.sha256))
