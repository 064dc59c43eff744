"""What is said, in the shape and within the limits of each host.

A host that is given more than it takes puts it into a file and shows the model a few
lines of it, so a text that is too long is cut at a line, and says so.
"""

from __future__ import annotations

import json

MOST_CHARACTERS = {
    "claude": 9_500,    # 10,000 per text, counted as the host counts
    "codex": 9_500,     # about 2,500 tokens
    "gemini": 9_500,    # none is stated
    "copilot": 9_500,   # 10 KB, in bytes
    "cursor": 9_500,    # none is stated
    "opencode": 9_500,
    "generic": 9_500,
}  # fmt: skip
_CUT = "\n[More is known than fits here: ask the memory.]"


def emit(agent: str, event: str, text: str) -> bytes:
    """The host's standard output that gives the model a text.

    Standard output is JSON alone: hosts take anything else for trouble, or for text.
    """
    fitting = fit(text, MOST_CHARACTERS.get(agent, 9_500), in_bytes=agent == "copilot")
    if agent == "cursor":
        shape: dict[str, object] = {"additional_context": fitting}
    elif agent == "copilot":
        shape = {"additionalContext": fitting}
    elif agent == "opencode":
        shape = {"context": fitting}
    else:
        shape = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": fitting}}
    # ASCII: what a host's pipe makes of other bytes depends on the machine.
    return json.dumps(shape, ensure_ascii=True).encode()


def fit(text: str, most: int, in_bytes: bool = False) -> str:
    """The text, or its first whole lines that leave room for saying that there is more."""
    if _size(text, in_bytes) <= most:
        return text
    kept: list[str] = []
    left = most - _size(_CUT, in_bytes)
    for line in text.splitlines():
        left -= _size(line, in_bytes) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(kept) + _CUT


def _size(text: str, in_bytes: bool) -> int:
    return len(text.encode("utf-8", "replace")) if in_bytes else len(text)
