"""``kill -9`` while the code is indexed: the next run mends what was left, and no worker stays
behind.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import smara
from tests.contract.code_edits import Project
from tests.contract.code_place import picture
from tests.faults.code_workers import index_for_ever, index_once
from tests.faults.sizes import count
from tests.faults.workers import READY


@pytest.fixture
def project(tmp_path, rng) -> Project:
    root = Path(os.path.realpath(tmp_path)) / "tree"
    root.mkdir()
    project = Project(rng, root)
    for _ in range(30):
        project.edit()
    return project


def opened(store: str):
    return smara.open(store, durability="normal", token_model="estimate", embedder="off")


def assert_mended(store: str, root: Path) -> None:
    with opened(store) as memory:
        assert memory.code.index(root, wait_seconds=60).is_complete
        fresh = memory.in_project(f"fresh{random.random()}")
        fresh.code.index(root, workers=0)
        assert picture(memory, root) == picture(fresh, root)
        assert memory.internals.index.problems(deep=True) == []
        fresh.code.forget(root)


def test_killed_at_any_moment_the_next_run_mends_the_index(start, store, project, rng):
    for _ in range(count(4, 150)):
        worker = start(index_for_ever, store, str(project.root), 0)
        assert worker.first(1) == [READY]
        worker.pipe.poll(rng.uniform(0, 0.6))  # at any moment of its work, or right after a run
        worker.kill()
        project.edit()
        assert_mended(store, project.root)


def test_workers_of_a_killed_process_leave_with_it(start, store, project):
    worker = start(index_for_ever, store, str(project.root), 2)
    assert worker.first(1) == [READY]
    children = children_of(worker.process.pid, 2)
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.rest()
    until(lambda: not any(is_alive(child) for child in children))
    assert_mended(store, project.root)


def test_processes_that_index_at_once_take_turns(start, store, project):
    opened(store).close()
    workers = [start(index_once, store, str(project.root)) for _ in range(count(3, 8))]
    assert [worker.rest() for worker in workers] == [[READY, True]] * len(workers)
    assert_mended(store, project.root)


def children_of(pid: int | None, how_many: int) -> list[int]:
    """The processes that a process has started, once there are some."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [
            int(each) for each in os.listdir("/proc") if each.isdigit() and parent_of(each) == pid
        ]
        return len(found) >= how_many

    if not os.path.isdir("/proc"):
        pytest.skip("there is no /proc to look into")
    until(look)
    return found


def parent_of(pid: str) -> int | None:
    try:
        return int(Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def until(is_so) -> None:
    """Wait until something is so; a minute is long enough for anything."""
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
