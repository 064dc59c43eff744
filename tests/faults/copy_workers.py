"""Processes that copy, merge or import a store and die at a statement of their own."""

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
from smara.privacy import load as loading
from smara.privacy import merge as merging


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


def merge(pipe: Connection, source: str, target: str, kill_at: int) -> None:
    """Merge a store into another in small batches; killed as above."""
    done = kill_before(kill_at)
    merging.PART = 7
    report = smara.copy_store(source, target)
    assert report.is_merge
    pipe.send(done())


def load(pipe: Connection, archive: str, target: str, kill_at: int) -> None:
    """Import an archive in small batches; killed as above."""
    loading.PART = 7
    with smara.open(target, project="shop", embedder="off", token_model="estimate") as memory:
        done = kill_before(kill_at)
        memory.privacy.import_archive(archive)
        pipe.send(done())
