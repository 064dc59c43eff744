"""Write log events named `noun.verb`, redacted before they are written.

The secrets room sets the redactor. Until then only the name of an event is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_INFO, _WARNING = 20, 30
_redact: Callable[[str], str] | None = None


def set_redactor(redact: Callable[[str], str]) -> None:
    """Set the redactor that every log line passes through.

    Set once, by the room that knows secrets.
    """
    global _redact
    _redact = redact


def redact_text(text: object) -> str:
    """Redact a text for a log or screen; withhold it without redactor."""
    return _redact(str(text)) if _redact is not None else "(details withheld)"


def event(name: str, level: int = _INFO, **facts: Any) -> None:
    """Write one event, such as ``event("message.added", thread="t1", count=3)``."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return  # it takes a while to load, and a program that wants lines has set it up
    logger = logging.getLogger("smara")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if logger.isEnabledFor(level):
        line = " ".join([name, *(f"{key}={value!s}" for key, value in facts.items())])
        shown = _redact(line) if _redact else name
        logger.log(level, "%s", shown, extra={"smara": (name, facts)})


def warning(name: str, **facts: Any) -> None:
    """Log an event that a person should read."""
    event(name, _WARNING, **facts)
