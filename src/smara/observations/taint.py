"""Taint: what observations come from besides people's own words.

It is computed from the messages themselves, never by an observer, and a summary has the
taint of everything it stands for: a web page cannot become the user's opinion by being
summarized.
"""

from __future__ import annotations

from collections.abc import Iterable

from smara.messages.models import Message

_WEB = ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "browser", "curl", "http")


def taint_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """The kinds of outside input in some messages, in order: ``imported``, ``mcp``, ``tool``,
    ``web``.
    """
    found: set[str] = set()
    for message in messages:
        given = message.metadata.get("taint")
        if isinstance(given, str):
            found.add(given)
        elif isinstance(given, list | tuple):
            found.update(str(each) for each in given)
        for part in message.parts:
            if part.type in ("tool_call", "tool_result") and part.name:
                found.add(_kind(part.name))
            elif part.type == "tool_result" or message.role == "tool":
                found.add("tool")
            elif part.type in ("file", "image"):
                found.add("file")
    return tuple(sorted(word for each in found for word in each.split()))


def _kind(tool: str) -> str:
    name = tool.lower()
    if name.startswith("mcp"):
        return "mcp"
    return "web" if any(name == each or name.startswith(f"{each}_") for each in _WEB) else "tool"
