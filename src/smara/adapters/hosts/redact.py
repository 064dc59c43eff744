"""Redact secrets from a hook payload and cut it to size.

Loaded only for a payload that looks suspicious or is too long.
"""

from __future__ import annotations

import json
from typing import Any

_CUT = "…[{} characters left out]"
MOST_STEPS = 2_000
"""Source code opens 24 possible secrets in a megabyte; a hostile output as many as it has words."""


def safe(payload: bytes, most_bytes: int) -> bytes:
    """Return the payload without secrets, cut to fit.

    Long values are cut in their middle.

    A payload that is no JSON is redacted as a text and cut at its end.
    """
    from smara.secrets import redact_value

    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        text, _ = redact_value(payload[:most_bytes].decode("utf-8", "replace"), MOST_STEPS)
        return str(text).encode("utf-8", "replace")
    if isinstance(value, dict):
        # The short values say which event it was: they are scanned before the steps are used up.
        value = dict(sorted(value.items(), key=lambda item: len(_dump(item[1]))))
    clean, _ = redact_value(value, MOST_STEPS)
    longest = most_bytes // 4
    while len(written := _dump(clean)) > most_bytes:
        if longest <= 100:
            # It is long by its many values: those remain that say which event it was.
            facts = clean if isinstance(clean, dict) else {}
            short = (str, int, float, bool)
            return _dump({key: each for key, each in facts.items() if isinstance(each, short)})
        clean = shortened(clean, longest)
        longest //= 8
    return written


def shortened(value: Any, longest: int) -> Any:
    """Return the value with every long text cut in its middle."""
    match value:
        case str() if len(value) > longest:
            half = longest // 2
            return value[:half] + _CUT.format(len(value) - 2 * half) + value[-half:]
        case dict():
            return {name: shortened(each, longest) for name, each in value.items()}
        case list():
            return [shortened(each, longest) for each in value]
        case _:
            return value


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
