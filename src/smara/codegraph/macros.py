"""Macros that C and C++ write where the grammar expects none, blanked so that what they decorate is
read.

``class EXPORTED Slice {`` would be read as a function named ``Slice``, and an annotation such as
``GUARDED_BY(x)`` behind a field may swallow the rest of its class. Each is replaced by as many
spaces, so that every offset stays.
"""

from __future__ import annotations

import re

_BEFORE_A_NAME = re.compile(
    rb"\b(?:class|struct"
    rb"|union)\s+([A-Z][A-Z0-9_]{2,})(?:\([^()\n]*\))?(?=\s+[A-Za-z_][\w:]*\s*(?:final\s*)?[:{])"
)
_ANNOTATIONS = re.compile(
    rb"\b(?:[A-Z_]*GUARDED_BY|[A-Z_]*LOCKS?_(?:REQUIRED|EXCLUDED|RETURNED)|(?:SCOPED_)?LOCKABLE"
    rb"|(?:EXCLUSIVE|SHARED)_(?:TRY)?LOCK_FUNCTION|UNLOCK_FUNCTION"
    rb"|NO_THREAD_SAFETY_ANALYSIS)\b(?:\([^()\n]*\))?"
)
_HINTS = (b"GUARDED_BY", b"LOCKS_", b"LOCK_", b"LOCKABLE", b"NO_THREAD_SAFETY")


def without_macros(text: bytes) -> bytes:
    """The text with such macros blanked, of the same length."""
    if b"class" in text or b"struct" in text:
        text = _BEFORE_A_NAME.sub(_blank_the_name, text)
    if any(hint in text for hint in _HINTS):
        text = _ANNOTATIONS.sub(lambda found: b" " * len(found[0]), text)
    return text


def _blank_the_name(found: re.Match[bytes]) -> bytes:
    start = found.start(1) - found.start()
    return found[0][:start] + b" " * (len(found[0]) - start)
