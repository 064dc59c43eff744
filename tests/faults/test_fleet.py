"""The processes of a fleet: replaced when killed, gone when told to stop or left alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import smara
from tests.contract.observing import fill
from tests.postgres import fresh_store
from tests.surfaces.shell import command, environment

pytestmark = pytest.mark.postgres
SETTINGS = {"SMARA_OBSERVE_AFTER_TOKENS": "1000", "SMARA_EMBEDDER": "off"}
_DEADLINE_SECONDS = 300


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_store() as address:
        yield address


@contextmanager
def fleet(url: str, processes: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command, killed at the end if it still runs."""
    process = subprocess.Popen(
        command("worker", "--fleet", str(processes), "--db", url),
        env=environment(**SETTINGS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def eventually(is_so: Callable[[], Any]) -> Any:
    """Wait for another process; what never comes is a failure."""
    import time

    until = time.monotonic() + _DEADLINE_SECONDS
    while not (answer := is_so()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer


def members(process: subprocess.Popen[bytes]) -> set[int]:
    """The processes that work for it."""
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    numbers = {int(each) for path in children for each in path.read_text().split()}
    return {each for each in numbers if b"spawn_main" in _words(each)}


def _words(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
def test_killed_process_is_replaced_and_none_is_left_when_the_fleet_stops(url: str) -> None:
    """1. A thread is due and is observed. 2. One process is killed, and another takes its place.
    3. What is written then is observed. 4. The fleet is told to stop, and all are gone.
    """
    with smara.open(url, observe_after_tokens=1000, embedder="off") as memory:
        fill(memory, 6, "a")
        with fleet(url, 2) as process:
            eventually(lambda: memory.observations.list(thread_id="a"))
            first = eventually(lambda: members(process))
            os.kill(min(first), signal.SIGKILL)
            eventually(lambda: len(members(process) - first | members(process)) >= 2)
            fill(memory, 6, "b")
            eventually(lambda: memory.observations.list(thread_id="b"))
            left = members(process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(_DEADLINE_SECONDS) == 0
            assert not [each for each in left if _words(each)]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
def test_processes_of_a_fleet_end_with_the_command_that_started_them(url: str) -> None:
    with fleet(url, 2) as process:
        left = eventually(lambda: len(found := members(process)) == 2 and found)
        process.kill()
        process.wait()
        eventually(lambda: not [each for each in left if _words(each)])
