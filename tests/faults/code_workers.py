"""What indexes code in processes of its own."""

from __future__ import annotations

from multiprocessing.connection import Connection

import smara
from tests.faults.workers import READY


def index_for_ever(pipe: Connection, path: str, root: str, workers: int) -> None:
    """Index a tree from nothing, again and again, until killed; says so after each time."""
    with smara.open(path, durability="normal", token_model="estimate", embedder="off") as memory:
        pipe.send(READY)
        while True:
            memory.code.index(root, full=True, workers=workers)
            pipe.send(memory.code.status(root).files)


def index_once(pipe: Connection, path: str, root: str) -> None:
    """Index a tree as it is found, some at once."""
    with smara.open(path, durability="normal", token_model="estimate", embedder="off") as memory:
        pipe.send(READY)
        report = memory.code.index(root)
        pipe.send(report.is_complete)
