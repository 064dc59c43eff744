"""What the fault tests share: random numbers with a known seed, and processes that start warm."""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.sizes import SEED


class Worker(NamedTuple):
    """A process of its own, and the pipe it reports through."""

    process: BaseProcess
    pipe: Connection

    def kill(self) -> list[Any]:
        """SIGKILL; everything it had reported and nobody had read yet."""
        self.process.kill()
        return self.rest()

    def first(self, how_many: int) -> list[Any]:
        """Its first reports, fewer when it ends before."""
        told = []
        try:
            for _ in range(how_many):
                told.append(self.pipe.recv())
        except EOFError:
            pass
        return told

    def rest(self) -> list[Any]:
        """What it reports until it ends."""
        told = []
        try:
            while True:
                told.append(self.pipe.recv())
        except EOFError:
            self.process.join()
            return told


Start = Callable[..., Worker]


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of this test alone; the seed is shown with a failure."""
    sys.stdout.write(f"SMARA_SEED={SEED}\n")
    return random.Random(f"{SEED}:{request.node.name}")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts ``function(pipe, *arguments)`` in a process forked from a warm one; ended with the
    test.
    """
    context = multiprocessing.get_context("forkserver")
    started: list[Worker] = []

    def begin(function: Callable[..., None], *arguments: Any) -> Worker:
        mine, theirs = context.Pipe()
        process = context.Process(target=function, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        started.append(Worker(process, mine))
        return started[-1]

    yield begin
    for worker in started:
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The path of a store that does not exist yet."""
    return str(tmp_path / "store.db")
