"""Identifiers: UUID version 7, which sort by time of creation.

Ids made by one process are strictly increasing, even when the clock stands still or
steps back: 12 bits behind the milliseconds count upwards, and spill over into the
milliseconds when they are used up.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from smara.core.clock import Clock, SystemClock

IdMaker = Callable[[], str]


class Uuid7:
    """Makes UUID v7 strings, increasing within this process; safe to call from any thread."""

    def __init__(
        self, clock: Clock | None = None, random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._clock = clock or SystemClock()
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._last = 0  # milliseconds << 12 | counter
        self._pool = b""
        self._at = 0
        self._pid = os.getpid()

    def __call__(self) -> str:
        with self._lock:
            stamp = max(self._clock.now_ms() << 12, self._last + 1)
            self._last = stamp
            tail = self._random_62_bits()
        return format_uuid7(stamp >> 12, stamp & 0xFFF, tail)

    def _random_62_bits(self) -> int:
        # One call to the kernel serves 64 ids. A forked child must not reuse the
        # parent's pool: both would draw the same tails.
        if self._at >= len(self._pool) or self._pid != os.getpid():
            self._pool = self._random_bytes(512)
            self._at = 0
            self._pid = os.getpid()
        value = int.from_bytes(self._pool[self._at : self._at + 8], "big")
        self._at += 8
        return value & 0x3FFF_FFFF_FFFF_FFFF


def format_uuid7(milliseconds: int, counter: int, tail: int) -> str:
    """The canonical text of a UUID v7.

    >>> format_uuid7(0x0190_0000_0000, 0xABC, 1)
    '01900000-0000-7abc-8000-000000000001'
    """
    text = f"{milliseconds & 0xFFFF_FFFF_FFFF:012x}7{counter:03x}{(0b10 << 62) | tail:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
