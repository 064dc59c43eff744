"""Run named jobs one after the other in a background thread.

A job is safe to lose at any moment, and a process never waits for one that has not begun. The
thread is a daemon, started by the first job; it ends after a while without work. A job that
fails is logged; one that is to run again submits itself.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from weakref import WeakSet

from smara.core import log
from smara.errors import SmaraError

_IDLE_SECONDS = 5.0
_JOIN_SECONDS = 5.0


class Background:
    """A thread that runs named jobs when they are due.

    `is_interruptible` says that its jobs watch `stop`. The end of the process and a fork then wait
    for the job at hand: a child would inherit the locks that the thread holds at this moment, and
    never release them.
    """

    def __init__(self, thread_name: str, is_interruptible: bool = False) -> None:
        self.stop = threading.Event()
        self._name = thread_name
        self._jobs: dict[str, tuple[float, Callable[[], object]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._running: str | None = None
        self._is_closed = False
        self._pid = os.getpid()
        if is_interruptible:
            _interruptible.add(self)

    def submit(self, name: str, job: Callable[[], object], after_seconds: float = 0.0) -> bool:
        """Have a job run soon; return False if it waits already."""
        with self._lock():
            if self._is_closed or name in self._jobs:
                return False
            self._jobs[name] = (time.monotonic() + after_seconds, job)
            self._start()
            self._changed.notify_all()
            return True

    def settled(self, timeout_seconds: float = 30.0) -> bool:
        """Wait until nothing is left to do; ``False`` when that takes longer."""
        with self._lock():
            return self._changed.wait_for(
                lambda: not self._jobs and self._running is None, timeout_seconds
            )

    def close(self, timeout_seconds: float = _JOIN_SECONDS) -> None:
        """Drop what waits, and give what runs a moment to end."""
        with self._lock():
            self._is_closed = True
            self._jobs.clear()
        self.pause(timeout_seconds)

    def pause(self, timeout_seconds: float = _JOIN_SECONDS) -> None:
        """Begin nothing more; give what runs a moment to end."""
        with self._lock():
            self.stop.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)

    def resume(self) -> None:
        """Go on with what was paused."""
        with self._lock():
            if not self._is_closed and self.stop.is_set():
                # An event of its own: a thread that outlives a pause must not go on after it.
                self.stop, self._thread, self._running = threading.Event(), None, None
                self._start()

    def _lock(self) -> threading.Condition:
        """Return the lock, a new one in a forked child: there the thread has not come along."""
        if self._pid != os.getpid():
            self._pid, self.stop = os.getpid(), threading.Event()
            self._changed = threading.Condition()
            self._jobs, self._thread, self._running = {}, None, None
        return self._changed

    def _start(self) -> None:
        if self._jobs and self._thread is None and not self.stop.is_set():
            self._thread = threading.Thread(
                target=self._run, args=(self.stop,), name=self._name, daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter shuts down, or there are too many threads
                self._thread = None

    def _run(self, stop: threading.Event) -> None:
        while True:
            with self._changed:
                name = self._wait(stop)
                if name is None:
                    if self.stop is stop:
                        self._thread = None
                    return
                job = self._jobs.pop(name)[1]
                self._running = name
            try:
                job()
            except SmaraError as error:
                log.warning("background.failed", job=name, error=error.code)
            except Exception as error:  # noqa: BLE001 - the edge of a thread: no caller would hear of it
                log.warning("background.failed", job=name, error=type(error).__name__)
            with self._changed:
                if stop.is_set() and not self._is_closed:
                    self._jobs.setdefault(name, (0.0, job))  # it was cut short by a pause
                if self.stop is stop:
                    self._running = None
                    self._changed.notify_all()

    def _wait(self, stop: threading.Event) -> str | None:
        """Return the next job when it is due; None to end the thread."""
        idle_until = time.monotonic() + _IDLE_SECONDS
        while not stop.is_set():
            name = min(self._jobs, key=lambda each: self._jobs[each][0], default=None)
            due = self._jobs[name][0] if name is not None else idle_until
            if time.monotonic() >= due:
                return name
            self._changed.wait(due - time.monotonic())
        return None


_interruptible: WeakSet[Background] = WeakSet()


def _to_all(action: Callable[[Background], None]) -> None:
    for background in list(_interruptible):
        action(background)


atexit.register(_to_all, Background.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _to_all(Background.pause), after_in_parent=lambda: _to_all(Background.resume)
    )
