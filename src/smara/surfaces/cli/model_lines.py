"""How models and their calls look in the terminal."""

from __future__ import annotations

from typing import Any


def models_line(status: dict[str, Any]) -> str:
    """What thinks and what it has used, on one line."""
    names = ", ".join(status["models"]) or "offline"
    if not status["enabled"]:
        return f"{names}; turned off by models_enabled"
    if status["paused"]:
        return f"{names}; paused by {status['paused']['actor']}: {status['paused']['reason']}"
    if not status["models"] and not status["day"]["calls"]:
        return names
    return f"{names}; {_used(status['hour'])} this hour, {_used(status['day'])} this day"


def embedder_line(embedder: dict[str, Any]) -> str:
    """What turns text into vectors, and why it is this one."""
    if embedder["modelId"] is None:
        return f"{'off' if 'error' not in embedder else 'none'}: {embedder['why']}"
    place = "on this machine" if embedder["isLocal"] else "on a server"
    return f"{embedder['modelId']}, {embedder['dims']:,} dimensions, {place}: {embedder['why']}"


def limit_rows(status: dict[str, Any]) -> list[tuple[str, str]]:
    """What is left of each limit."""
    rows = []
    for name in ("hour", "day"):
        window = status[name]
        tokens, dollars = (
            max(0, window[f"{unit}Limit"] - window[unit]) for unit in ("tokens", "dollars")
        )
        reading = max(0, window["embeddingTokensLimit"] - window["embeddingTokens"])
        embedding = (
            ""
            if status.get("embedder", {}).get("isLocal", True)
            else f", {reading:,} embedding tokens"
        )
        rows.append((f"left this {name}", f"{tokens:,} tokens, ${dollars:,.2f}{embedding}"))
    return rows


def _used(window: dict[str, Any]) -> str:
    text = (
        f"{window['tokens']:,} of {window['tokensLimit']:,} tokens and ${window['dollars']:,.2f} of"
        f" ${window['dollarsLimit']:,.2f}"
    )
    return text + (
        f" ({window['unpricedCalls']:,} calls at unknown prices)" if window["unpricedCalls"] else ""
    )
