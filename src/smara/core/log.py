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
    """Set the redactor that every log line passes through.

    Set once, by the room that knows secrets.
    """
    global _redact
    _redact = redact


def redact_text(text: str) -> str:
    """Redact a text for a log or screen; withhold it without redactor."""
    return _redact(text) if _redact is not None else "(details withheld)"


def event(name: str, level: int = logging.INFO, **facts: Any) -> None:
    """Write one event, such as ``event("message.added", thread="t1", count=3)``."""
    if not _logger.isEnabledFor(level):
        return
    line = " ".join([name, *(f"{key}={value!s}" for key, value in facts.items())])
    _logger.log(level, "%s", _redact(line) if _redact else name)


def warning(name: str, **facts: Any) -> None:
    """Log an event that a person should read."""
    event(name, logging.WARNING, **facts)
