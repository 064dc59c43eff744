"""Format hook output for each host, and strip it again.

A host puts a text above its limit into a file and shows the model a few lines, so `emit`
cuts a long text at a line. Gemini CLI wraps a hook's text and adds it to the prompt or
the tool result; `own_words` removes it, so that our text is never stored as the user's.
"""

from __future__ import annotations

import json

from smara.core.host_table import LIMITS_IN_BYTES, MOST_CHARACTERS, OUTPUT
from smara.core.memory_block import without_memory_blocks

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_CUT = "\n[More is known than fits here: ask the memory.]"


def emit(agent: str, event: str, text: str) -> bytes:
    """Return the host's standard output that gives the model a text.

    Standard output is JSON alone: hosts take anything else for trouble, or for text.
    """
    host = agent if agent in OUTPUT else "generic"
    fitting = fit(text, MOST_CHARACTERS[host], in_bytes=host in LIMITS_IN_BYTES)
    shape = _filled(OUTPUT[host], {"$EVENT": event, "$TEXT": fitting})
    # ASCII: what a host's pipe makes of other bytes depends on the machine.
    return json.dumps(shape, ensure_ascii=True).encode()


def _filled(shape: Any, values: Mapping[str, str]) -> Any:
    if isinstance(shape, dict):
        return {key: _filled(each, values) for key, each in shape.items()}
    return values.get(shape, shape)


def fit(text: str, most: int, in_bytes: bool = False) -> str:
    """Cut a text to its first whole lines that fit.

    The last line then says that there is more.
    """
    if _size(text, in_bytes) <= most:
        return text
    lines: list[str] = []
    left = most - _size(_CUT, in_bytes)
    for line in text.splitlines():
        left -= _size(line, in_bytes) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines) + _CUT


def _size(text: str, in_bytes: bool) -> int:
    return len(text.encode("utf-8", "replace")) if in_bytes else len(text)


HOOK_OPENING, HOOK_CLOSING = "<hook_context>", "</hook_context>"


def own_words(text: str) -> str:
    """Return a text without the blocks of hooks around it.

    >>> own_words("<hook_context>We know this.</hook_context>\\n\\nMend it")
    'Mend it'
    >>> own_words("3 passed\\n\\n<hook_context>We know this.</hook_context>")
    '3 passed'
    """
    return _divided(text)[1]


def words_of_hooks(text: str) -> str:
    """Return the text of the blocks that :func:`own_words` takes off.

    What memory itself said in them is left out.

    >>> words_of_hooks("<hook_context>The build is red.</hook_context>\\n\\nMend it")
    'The build is red.'
    >>> words_of_hooks("<hook_context>Mend it first.</hook_context>Mend it")
    'Mend it first.'
    >>> words_of_hooks("<hook_context>&lt;smara-memory&gt;- Known.&lt;/smara-memory&gt;</hook_context>\\n\\nMend it")
    ''
    """  # noqa: E501
    before, _, after = _divided(text)
    inside = f"{before}{after}".replace(HOOK_OPENING, "").replace(HOOK_CLOSING, "")
    return without_memory_blocks(as_said(inside)).strip()


def as_said(text: str) -> str:
    """Return a block's text as the hook wrote it, with its brackets."""
    return text.replace("&lt;", "<").replace("&gt;", ">")


def _divided(text: str) -> tuple[str, str, str]:
    """The blocks before a text, the text itself, the blocks behind it."""
    rest = text
    while rest.startswith(HOOK_OPENING) and HOOK_CLOSING in rest:
        rest = rest.partition(HOOK_CLOSING)[2].lstrip()
    own = rest
    while own.rstrip().endswith(HOOK_CLOSING) and HOOK_OPENING in own:
        own = own[: own.rindex(HOOK_OPENING)].rstrip()
    return text[: len(text) - len(rest)], own, rest[len(own) :]


_NOTHING = "Nothing is known about this repository yet.\n"


def rule_content(head: str, text: str = "") -> str:
    """Return the content of a rule file: its head, then a text."""
    return head + (text.strip() + "\n" if text.strip() else _NOTHING)
