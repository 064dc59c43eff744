"""Time as people speak of it: how long ago, and the gaps in a conversation."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
GAP_MS = 3 * _HOUR
"""A longer silence between two messages is told."""


def ago(milliseconds: int) -> str:
    """How long something is past, or lies ahead.

    >>> ago(30_000), ago(5 * 60_000), ago(26 * 3_600_000), ago(9 * 86_400_000), ago(-3 * 86_400_000)
    ('just now', '5 minutes ago', '1 day ago', '1 week ago', 'in 3 days')
    """
    length = duration(abs(milliseconds))
    if abs(milliseconds) < _MINUTE:
        return "just now"
    return f"{length} ago" if milliseconds >= 0 else f"in {length}"


def duration(milliseconds: int) -> str:
    """A length of time in its largest unit.

    >>> duration(90 * 60_000), duration(45 * 86_400_000), duration(800 * 86_400_000)
    ('1 hour', '1 month', '2 years')
    """
    for size, name in (
        (365 * _DAY, "year"),
        (30 * _DAY, "month"),
        (7 * _DAY, "week"),
        (_DAY, "day"),
        (_HOUR, "hour"),
    ):
        if milliseconds >= size:
            return _counted(milliseconds // size, name)
    return _counted(max(1, milliseconds // _MINUTE), "minute")


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
