"""How memories stand to the code they name, as JSON and as words of a terminal."""

from __future__ import annotations

from typing import Any

from smara.core.freshness import Freshness

_MOST = 4


def code_json(code: Freshness | None) -> dict[str, Any] | None:
    """The verdict and what it rests on; ``None`` for what names no code that is known here."""
    if code is None:
        return None
    return {
        "verdict": code.verdict,
        "changed": code.changed,
        "told": code.telling,
        "hedge": code.hedge,
        "anchors": [
            {
                "verdict": each.verdict,
                "path": each.path,
                "symbol": each.symbol or None,
                "nowPath": each.now_path,
                "nowSymbol": each.now_symbol or None,
                "firstLine": each.first_line,
                "lastLine": each.last_line,
                "changed": each.changed,
                "commit": each.commit,
                "why": each.why or None,
            }
            for each in code.anchors
        ],
    }


def code_word(code: Freshness | None) -> str:
    """The verdict as a word or two; nothing for what is as it was.

    >>> code_word(Freshness("drifted", changed=0.4)), code_word(Freshness("orphaned")), code_word(Freshness("fresh"))
    ('code drifted 40 %', 'code gone', '')
    """  # noqa: E501
    if code is None or code.verdict == "fresh":
        return ""
    if code.verdict == "drifted":
        return (
            "code drifted"
            if code.changed is None
            else f"code drifted {code.changed:.0%}".replace("%", " %")
        )
    return {"moved": "code moved", "orphaned": "code gone", "unknown": "code being read again"}[
        code.verdict
    ]


def code_line(code: Freshness | None) -> str:
    """What became of all the code a memory names, in one line."""
    if code is None:
        return ""
    shown = "; ".join(code.lines[:_MOST])
    return shown + (f"; and {len(code.lines) - _MOST} more" if len(code.lines) > _MOST else "")
