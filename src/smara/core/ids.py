"""Make UUID version 7 ids and the short ids derived from them.

Ids of one process strictly increase, even when the clock stands still or steps back.
A short id is the beginning of a hash of the UUID. Its length follows the number of ids,
so that the chance of any collision stays below one in two hundred.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable

from smara.core.clock import Clock, SystemClock
from smara.core.startup.regex import regex

IdMaker = Callable[[], str]


class Uuid7:
    """A maker of increasing UUID v7 strings, safe for threads."""

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
            # One call to the kernel serves 64 ids. A forked child must not reuse the
            # parent's pool: both would draw the same tails.
            if self._at >= len(self._pool) or self._pid != os.getpid():
                self._pool = self._random_bytes(512)
                self._at = 0
                self._pid = os.getpid()
            value = int.from_bytes(self._pool[self._at : self._at + 8], "big")
            self._at += 8
            tail = value & 0x3FFF_FFFF_FFFF_FFFF
        return format_uuid7(stamp >> 12, stamp & 0xFFF, tail)


def format_uuid7(milliseconds: int, counter: int, tail: int) -> str:
    """The canonical text of a UUID v7.

    >>> format_uuid7(0x0190_0000_0000, 0xABC, 1)
    '01900000-0000-7abc-8000-000000000001'
    """
    text = f"{milliseconds & 0xFFFF_FFFF_FFFF:012x}7{counter:03x}{(0b10 << 62) | tail:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_UUID = regex(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def beginning_of(name: str) -> str:
    """Return the beginning of a UUID that tells it from others.

    Any other id stays as it is. A UUID of version 7 begins with its time: the
    milliseconds tell two sessions apart.

    >>> beginning_of("3f0c1a7e-77aa-4c1e-9b1e-0c2d5e6f7a8b/agent-9b2c")
    '3f0c1a7e/agent-9b2c'
    """
    found = _UUID.match(name)
    return name[: 13 if found[1] == "7" else 8] + name[36:] if found else name


ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u, which are misread
SHORTEST = 4
SHORTEST_PREFIX = 3
"""Fewer characters of an id are not looked up."""


def length_for(count: int) -> int:
    """Return the id length for a collision chance under 0.5 %.

    By the birthday bound, count² / (2 · 32ⁿ) ≤ 0.005.

    >>> [length_for(n) for n in (1, 100, 500, 3_000, 20_000, 100_000)]
    [4, 4, 5, 6, 8, 8]
    """
    length = SHORTEST
    while count * count > 0.01 * 32**length:
        length += 1
    return length


def code_of(uuid: str, length: int) -> str:
    """The first characters of the hash of a UUID."""
    number = int.from_bytes(hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).digest(), "big")
    return "".join(ALPHABET[(number >> 5 * place) & 31] for place in range(length))


def key_of(short_id: str) -> str:
    """A short id as it is looked up: however it is written."""
    return short_id.casefold()


def bare_key_of(short_id: str) -> str:
    """A short id without what stands before its last hyphen.

    >>> bare_key_of("t-K3F9"), bare_key_of("my-app-i2n"), bare_key_of("plain")
    ('k3f9', 'i2n', 'plain')
    """
    return key_of(short_id).rpartition("-")[2]
