"""Redact secrets from a hook payload and cut it to size.

Loaded only for a payload that looks suspicious or is too long.
"""

from __future__ import annotations

import json
from typing import Any

_CUT = "…[{} characters left out]"


def safe(payload: bytes, most_bytes: int) -> bytes:
    """Return the payload without secrets, cut to fit.

    Long values are cut in their middle.

    A payload that is no JSON is redacted as a text and cut at its end.
    """
    from smara.secrets import redact, redact_value

    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        text = payload[:most_bytes].decode("utf-8", "replace")
        return redact(text).text.encode("utf-8", "replace")
    clean, _ = redact_value(value)
    written = _dump(clean)
    longest = most_bytes // 4
    while len(written) > most_bytes and longest > 100:
        clean = shortened(clean, longest)
        written = _dump(clean)
        longest //= 2
    return written if len(written) <= most_bytes else _dump(_outline(clean))


def shortened(value: Any, longest: int) -> Any:
    """Return the value with every long text cut in its middle."""
    if isinstance(value, str):
        if len(value) <= longest:
            return value
        half = longest // 2
        return value[:half] + _CUT.format(len(value) - 2 * half) + value[-half:]
    if isinstance(value, dict):
        return {name: shortened(each, longest) for name, each in value.items()}
    if isinstance(value, list):
        return [shortened(each, longest) for each in value]
    return value


def _outline(value: Any) -> Any:
    """Of a payload that is long by its many values, those that say which event it was."""
    if not isinstance(value, dict):
        return {}
    return {
        name: each for name, each in value.items() if isinstance(each, str | int | float | bool)
    }


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
