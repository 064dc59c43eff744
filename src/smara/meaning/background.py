"""Embed new records in a background thread, woken by writes.

The thread waits until writing has paused for a moment, so a short-lived process never starts it. It
is a daemon and may be stopped at any time.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from smara.core import log
from smara.errors import SmaraError

if TYPE_CHECKING:
    from smara.meaning.models import EmbeddingProgress


QUIET_SECONDS = 1.0
_IDLE_SECONDS = 10.0
_AGAIN_SECONDS = {"busy": 5.0, "unavailable": 60.0, "lease_lost": 5.0, "failed": 60.0}
_JOIN_SECONDS = 5.0


class BackgroundEmbedding:
    """The thread that makes vectors whenever something was written."""

    def __init__(
        self,
        work: Callable[[threading.Event], EmbeddingProgress],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._work = work
        self._quiet_seconds = quiet_seconds
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._pid = os.getpid()
        _alive.add(self)

    def wake(self) -> None:
        """Note that something was written; never waits or raises."""
        if self._woken.is_set() and self._pid == os.getpid():
            return
        with self._lock:
            if self._pid != os.getpid():  # the thread stayed with the parent
                self._pid, self._thread = os.getpid(), None
                self._woken, self._stop = threading.Event(), threading.Event()
            if self._is_closed or self._stop.is_set() or threading.current_thread() is self._thread:
                return
            self._woken.set()
            if self._thread is None:
                # Events of its own: a thread that outlives a pause must not go on after it.
                ends = (self._stop, self._woken)
                self._thread = threading.Thread(
                    target=self._run, args=ends, name="smara-vectors", daemon=True
                )
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter shuts down, or there are too many threads
                    self._thread = None

    def close(self) -> None:
        """Stop after the batch at hand, and wait for that."""
        self._is_closed = True
        self.pause()

    def pause(self) -> None:
        """Stop after the current batch and wait; ``resume`` goes on."""
        self._stop.set()
        self._woken.set()
        thread = self._thread if self._pid == os.getpid() else None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def resume(self) -> None:
        """Go on with what was paused."""
        if self._is_closed or not self._stop.is_set():
            return
        was_running, self._thread = self._thread is not None, None
        self._stop, self._woken = threading.Event(), threading.Event()
        if was_running:
            self.wake()

    def _run(self, stop: threading.Event, woken: threading.Event) -> None:
        while not stop.wait(self._quiet_seconds):
            woken.clear()
            # What did not end by itself is left alone for a while.
            rest = _AGAIN_SECONDS.get(self._worked(stop), 0.0)
            if rest:
                stop.wait(rest)
                woken.set()
                continue
            if woken.wait(_IDLE_SECONDS):
                continue
            with self._lock:
                if not woken.is_set():
                    self._thread = None
                    return

    def _worked(self, stop: threading.Event) -> str:
        try:
            return self._work(stop).stopped
        except SmaraError as error:
            log.warning("vectors.failed", error=error.code)
        except Exception as error:  # noqa: BLE001 - the edge of a thread
            log.warning("vectors.failed", error=type(error).__name__)
        return "failed"


_alive: WeakSet[BackgroundEmbedding] = WeakSet()


def _to_all(action: Callable[[BackgroundEmbedding], None]) -> None:
    for background in list(_alive):
        action(background)


atexit.register(_to_all, BackgroundEmbedding.close)
if hasattr(os, "register_at_fork"):
    # A child would inherit the locks that the thread holds at this moment, and never release them.
    os.register_at_fork(
        before=lambda: _to_all(BackgroundEmbedding.pause),
        after_in_parent=lambda: _to_all(BackgroundEmbedding.resume),
    )
