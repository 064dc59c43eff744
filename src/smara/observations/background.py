"""Run named jobs in one background thread per process.

A job is safe to lose at any moment: a killed observation moves no cursor.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from smara.core import log
from smara.errors import SmaraError

_IDLE_SECONDS = 5.0


class Background:
    """Runs named jobs one after the other, out of the caller's way."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Callable[[], object]] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._running: str | None = None
        self._is_closed = False
        self._pid = os.getpid()

    def submit(self, name: str, job: Callable[[], object]) -> bool:
        """Have a job run soon; return False if it waits already."""
        with self._changed:
            self._after_fork()
            if self._is_closed or name in self._jobs:
                return False
            self._jobs[name] = job
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="smara-background", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            return True

    def settled(self, timeout_seconds: float = 30.0) -> bool:
        """Wait until nothing is left to do; ``False`` when that takes longer."""
        with self._changed:
            self._after_fork()
            return self._changed.wait_for(
                lambda: not self._jobs and self._running is None, timeout_seconds
            )

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Drop what waits, and give what runs a moment to end."""
        with self._changed:
            self._after_fork()
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._running is None, timeout_seconds)

    def _after_fork(self) -> None:
        if (
            self._pid != os.getpid()
        ):  # the thread stayed with the parent, and with it what it was doing
            self._pid = os.getpid()
            self._jobs.clear()
            self._thread, self._running = None, None

    def _run(self) -> None:
        while True:
            with self._changed:
                if (
                    not self._changed.wait_for(lambda: self._jobs or self._is_closed, _IDLE_SECONDS)
                    or self._is_closed
                ):
                    self._thread = None
                    return
                name, job = self._jobs.popitem(last=False)
                self._running = name
            try:
                job()
            except SmaraError as error:
                log.warning("background.failed", job=name, error=error.code)
            except Exception as error:  # noqa: BLE001 - the edge of a thread: nobody else would hear of it
                log.warning("background.failed", job=name, error=type(error).__name__)
            finally:
                with self._changed:
                    self._running = None
                    self._changed.notify_all()
