"""Waiting for something, but not longer than a turn can bear."""

from __future__ import annotations

import threading
from collections.abc import Callable

from smara.core import log
from smara.core.clock import Clock
from smara.errors import SmaraError


def run_within(clock: Clock, seconds: float, action: Callable[[threading.Event], object]) -> bool:
    """Run an action for at most so long, by the clock; whether it ended in time.

    It goes on in its thread when it takes longer, and is told by its event that nobody waits
    any more. What it raises is logged: whoever waits wants to go on in any case.
    """
    done, is_over = threading.Event(), threading.Event()

    def run() -> None:
        try:
            action(is_over)
        except SmaraError as error:
            log.warning("observations.failed", error=error.code)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: nobody else would hear of it
            log.warning("observations.failed", error=type(error).__name__)
        finally:
            done.set()

    threading.Thread(target=run, name="smara-observe", daemon=True).start()
    try:
        return clock.wait_for(done, seconds)
    finally:
        is_over.set()  # also for a KeyboardInterrupt: nobody waits any more
