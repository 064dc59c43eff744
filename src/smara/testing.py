"""Fakes for tests, ours and yours: a clock that stands still, ids that count, a store that vanishes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smara.memory import Memory, open_memory


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ms += int(seconds * 1000)
        self._monotonic += seconds

    def set(self, now_ms: int) -> None:
        """Set the time of day, also backwards, as a user or a time server may."""
        self._now_ms = now_ms


class CountingIds:
    """Ids that are easy to read in a test: ``id-000001``, ``id-000002`` …"""

    def __init__(self, prefix: str = "id") -> None:
        self._prefix = prefix
        self._last = 0

    def __call__(self) -> str:
        self._last += 1
        return f"{self._prefix}-{self._last:06d}"


@contextmanager
def open_temporary(**settings: Any) -> Iterator[Memory]:
    """A memory in a temporary folder, removed with everything in it at the end."""
    folder = tempfile.mkdtemp(prefix="smara-")
    try:
        with open_memory(Path(folder) / "smara.db", **settings) as memory:
            yield memory
    finally:
        shutil.rmtree(folder, ignore_errors=True)
