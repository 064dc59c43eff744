"""Find and replace secrets before anything durable is written.

`redact(text)` for texts, `redact_value(value)` for JSON-like data. RE2 and
the table of rules are loaded by the first use, not by importing this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smara.secrets.redact import Redaction, SecretFinding, redact, redact_value, scan

if TYPE_CHECKING:
    from smara.secrets.rule import Rule
    from smara.secrets.rules import RULES

__all__ = ["RULES", "Redaction", "Rule", "SecretFinding", "redact", "redact_value", "scan"]


def __getattr__(name: str) -> object:
    if name in ("RULES", "Rule"):
        from smara.secrets import rules

        return getattr(rules, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
