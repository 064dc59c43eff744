"""Work that may take long because a model has to be loaded, done in a thread while the caller waits
as long as it can.

The thread goes on when nobody waits any more, so that the next caller finds the model loaded. A
process that ends meanwhile gives it a moment: a library that is cut off in the middle of loading
may take the process down with it. One that forks waits for it: the child would inherit the locks of
modules that are being imported, and nobody to release them.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from weakref import WeakSet

from smara.core import log
from smara.core.clock import Clock

_AT_EXIT_SECONDS = 1.0
_BEFORE_FORK_SECONDS = 30.0
_loading: WeakSet[threading.Thread] = WeakSet()


def in_time(work: Callable[[], object], clock: Clock, seconds: float) -> bool:
    """Do the work in a thread and wait for it for so long; whether it has ended."""
    is_done = threading.Event()

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the edge of a thread: nobody else would hear of it
            log.warning("embedder.failed", error=type(error).__name__)
        finally:
            is_done.set()

    thread = threading.Thread(target=run, name="smara-embedder", daemon=True)
    _loading.add(thread)
    thread.start()
    return clock.wait_for(is_done, max(0.0, seconds))


def _wait(seconds: float) -> None:
    for thread in list(_loading):
        if thread is not threading.current_thread():
            thread.join(seconds)


atexit.register(_wait, _AT_EXIT_SECONDS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _wait(_BEFORE_FORK_SECONDS))
