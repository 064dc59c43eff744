"""Read the time from a clock that callers pass in.

Tests pass a clock that stands still, so no room calls `time.time()` itself.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from smara.errors import InvalidInputError

if TYPE_CHECKING:
    from datetime import datetime

_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999


class Clock(Protocol):
    """Tells the time of day, measures durations, and lets time pass."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes backwards."""

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        """Let time pass; less of it when ``until`` is set meanwhile."""

    def wait_for(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event, for at most so long; whether it came."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        (until or threading.Event()).wait(seconds)

    def wait_for(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


def check_time(milliseconds: int | None, what: str = "created_at") -> int | None:
    """A time given by a caller, checked to be one."""
    if milliseconds is None:
        return None
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool):
        raise InvalidInputError(
            f"{what} must be milliseconds since 1970, a whole number; got {milliseconds!r}."
        )
    if not _EARLIEST_MS <= milliseconds <= _LATEST_MS:
        raise InvalidInputError(
            f"{what} {milliseconds} is not within the years 1 to 9999. Give milliseconds."
        )
    return milliseconds


def to_ms(value: int | str | datetime | None, what: str) -> int | None:
    """Return a time given by a caller in milliseconds; ``None`` stays ``None``.

    Raises:
        InvalidInputError: If it is no time.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    from datetime import UTC, datetime  # hooks read the clock, and no dates

    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # a bool raises
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise InvalidInputError(
            f"{what} must be milliseconds, an ISO 8601 time such as 2026-03-01, or a datetime; "
            f"got {value!r}."
        ) from None
