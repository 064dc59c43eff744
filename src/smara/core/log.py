"""Write log events named `noun.verb`, redacted before they are written.

The secrets room sets the redactor. Until then only the name of an event is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

_logger = logging.getLogger("smara")
_logger.addHandler(logging.NullHandler())

_redact: Callable[[str], str] | None = None


def set_redactor(redact: Callable[[str], str]) -> None:
    """Every line passes through ``redact``; set once, by the room that knows secrets."""
    global _redact
    _redact = redact


def redact_text(text: str) -> str:
    """A text that may go into a log or onto a screen; withheld while nobody can redact."""
    return _redact(text) if _redact is not None else "(details withheld)"


def event(name: str, level: int = logging.INFO, **facts: Any) -> None:
    """Write one event, such as ``event("message.added", thread="t1", count=3)``."""
    if not _logger.isEnabledFor(level):
        return
    line = " ".join([name, *(f"{key}={value!s}" for key, value in facts.items())])
    _logger.log(level, "%s", _redact(line) if _redact else name)


def warning(name: str, **facts: Any) -> None:
    """An event that somebody should read."""
    event(name, logging.WARNING, **facts)
