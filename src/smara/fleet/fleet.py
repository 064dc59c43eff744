"""Run the processes of a fleet on one machine; replace ended ones."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from smara.config import Settings
from smara.core import log
from smara.fleet.member import Member
from smara.fleet.queue import JobQueue, require_fleet
from smara.memory import open_memory
from smara.telemetry.logs import write_logs

if TYPE_CHECKING:
    from smara.memory import Memory
    from smara.observations.models import WorkerRound

_LOOK_SECONDS = 0.2
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LONG_ENOUGH_SECONDS = 60.0
"""A process that lived so long is replaced at once."""


def run_fleet(
    memory: Memory,
    processes: int,
    stop: threading.Event,
    is_once: bool = False,
    tell: Callable[[WorkerRound], None] | None = None,
) -> int:
    """Serve every project of a store on PostgreSQL through its queue.

    Args:
        memory: The store.
        processes: How many processes; one runs within this one.
        stop: Ends them, after the jobs that they run.
        is_once: True to run what is due, in this process, and to end.
        tell: Hears what was done, if it is done within this process.

    Returns:
        The number of jobs of this process, or of processes started.

    Raises:
        InvalidInputError: If the store is a SQLite file.
        MissingExtraError: If procrastinate is not installed.
        ConfigError: If the URL leads to a pooler.
    """
    require_fleet(memory)
    if processes == 1 or is_once:
        return Member(memory).run(stop, is_once, tell)
    JobQueue(memory).install()  # what is wrong is said once, here
    given = {each.name: getattr(memory.settings, each.name) for each in fields(Settings)}
    return _Supervisor(given, processes).run(stop)


class _Supervisor:
    """The processes of a fleet on this machine."""

    def __init__(self, settings: dict[str, Any], size: int) -> None:
        self._settings = settings
        self._start_at = [0.0] * size
        self._pauses = [_FIRST_PAUSE_SECONDS] * size
        self._members: list[Any] = [None] * size

    def run(self, stop: threading.Event) -> int:
        started = 0
        try:
            while not stop.is_set():
                for place, member in enumerate(self._members):
                    started += self._see_to(place, member)
                alive = [each.sentinel for each in self._members if each is not None]
                wait(alive, _LOOK_SECONDS) if alive else stop.wait(_LOOK_SECONDS)
        finally:
            for member in filter(None, self._members):
                member.terminate()
            for member in filter(None, self._members):
                member.join()
        return started

    def _see_to(self, place: int, member: Any) -> bool:
        """Start a process whose time has come; return True if one was started."""
        now = time.monotonic()
        if member is not None and not member.is_alive():
            log.warning("fleet.member_ended", exit_code=member.exitcode)
            lived = now - self._start_at[place]
            pause = self._pauses[place] if lived < _LONG_ENOUGH_SECONDS else 0.0
            self._pauses[place] = min(
                max(pause, _FIRST_PAUSE_SECONDS / 2) * 2, _LONGEST_PAUSE_SECONDS
            )
            self._start_at[place], self._members[place] = now + pause, None
        if self._members[place] is not None or now < self._start_at[place]:
            return False
        self._members[place] = multiprocessing.get_context("spawn").Process(
            target=_serve,
            args=(self._settings, logging.root.hasHandlers()),
            name=f"smara-fleet-{place + 1}",
        )
        self._members[place].start()
        self._start_at[place] = now
        return True


def _serve(settings: dict[str, Any], has_logs: bool) -> None:
    """Be one process of a fleet, until told to stop or left alone."""
    if has_logs:
        write_logs(settings["log_format"])
    stop = threading.Event()
    # The event is set by a thread: a signal may interrupt one that holds the event's own lock.
    inbox, outbox = multiprocessing.Pipe(duplex=False)
    signal.signal(signal.SIGTERM, lambda *_: outbox.send(True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the parent too
    parent: Any = multiprocessing.parent_process()

    def watch() -> None:
        wait([inbox, parent.sentinel])
        stop.set()

    threading.Thread(target=watch, name="smara-fleet-watch", daemon=True).start()
    named = {name: value for name, value in settings.items() if value is not None}
    with open_memory(named.pop("db"), **named | {"embed_in_background": False}) as memory:
        Member(memory).run(stop)
