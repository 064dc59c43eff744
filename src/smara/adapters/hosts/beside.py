"""Beside a server that an agent keeps running: what hooks left is taken in while nobody waits for
it.

Some hosts run nothing in their background, but all of them run ``smara mcp`` for as long as
a session lasts. A thread in it does what others do in hooks of their background: it takes in
what waits, makes a worker's round when one is due, and prepares what is said next. It is no
process of its own, so nothing stays behind when the host leaves; being cut short loses nothing.
"""

from __future__ import annotations

import math
import threading
import time

from smara.adapters.hosts.spool import names
from smara.core import log
from smara.errors import SmaraError

FIRST_SECONDS = 3.0
"""A host waits for the server's first answers; until then nothing else is done."""
EVERY_SECONDS = 300.0
_LEAVE_SECONDS = 2.0


class Beside:
    """Takes in what waits in a spool, from time to time, until it is told to stop."""

    def __init__(
        self, folder: str, first: float = FIRST_SECONDS, every: float = EVERY_SECONDS
    ) -> None:
        self._folder = folder
        self._first, self._every = first, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smara-beside", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End with the batch it is at; who cannot end soon is left alone, and loses nothing."""
        self._stop.set()
        self._thread.join(_LEAVE_SECONDS)

    def _run(self) -> None:
        rest = self._first
        while not self._stop.wait(rest):
            rest = self._every
            if names(self._folder):
                self._take_in()

    def _take_in(self) -> None:
        from smara.adapters.hosts.speaking import BACKGROUND_SECONDS, take_in
        from smara.memory import open_memory

        try:
            memory = open_memory(
                busy_timeout_seconds=1.0, check_index=False, embed_in_background=False
            )
            take_in(memory, self._folder, BACKGROUND_SECONDS, clock=self._clock)
        except SmaraError as error:
            log.warning(
                "spool.not_drained", error=error.code
            )  # the files stay, and the next time may do
        except Exception as error:  # noqa: BLE001 - the server beside it must go on
            log.warning("spool.not_drained", error=type(error).__name__)

    def _clock(self) -> float:
        """The time, of which none is left once it was told to stop."""
        return math.inf if self._stop.is_set() else time.monotonic()
