"""Names of people, sessions and actors, which are stored too."""

from __future__ import annotations

import hashlib

from smara.core.checks import invalid
from smara.core.scope import require_id
from smara.secrets.redact import redact


def clean_name(value: object, what: str) -> str:
    """The name of a person, a session or an actor."""
    if not isinstance(value, str):
        raise invalid(
            f"{what} must be a text, not {type(value).__name__}", "Give a name or an id.", what
        )
    shown = redact(require_id(value, what)).text
    if shown == value:
        return value
    # Two names that both look like secrets must not become one holder.
    return f"{shown}#{hashlib.sha256(value.encode()).hexdigest()[:8]}"
