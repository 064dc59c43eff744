"""Sanitize and shorten a working-memory page for a prompt.

Text of a page can neither open nor close one of our blocks, and code fences that are cut
off are closed.
"""

from __future__ import annotations

from smara.core.escape import neutralize
from smara.errors import InvalidInputError
from smara.working.markdown import Fences, open_fence
from smara.working.models import WorkingMemory

INJECTION_CHARACTERS = 4_000
LEAST_CHARACTERS = 200
"""A smaller limit would leave no room for words beside the note that some are left out."""

_NOTE = "[… {left:,} characters are left out here; `smara working show` gives the whole page]"


def for_injection(memory: WorkingMemory | str, limit: int = INJECTION_CHARACTERS) -> str:
    """Return a page's text for a model, at most ``limit`` long.

    What does not fit is cut at the end of a line, and a note says how much is left out. A
    code block that is open at the end is closed.
    """
    if limit < LEAST_CHARACTERS:
        raise InvalidInputError(
            f"limit must be {LEAST_CHARACTERS} characters or more; got {limit}."
        )
    text = memory.content if isinstance(memory, WorkingMemory) else memory
    return _fitted(neutralize(text).strip("\n"), limit)


def render_block(memory: WorkingMemory, limit: int = INJECTION_CHARACTERS) -> str:
    """Render a page as a block for a model; empty if empty."""
    text = for_injection(memory, limit)
    if not text.strip():
        return ""
    return (
        f'<working-memory scope="{memory.scope}" '
        f'version="{memory.version}">\n{text}\n</working-memory>'
    )


def _fitted(text: str, limit: int) -> str:
    lines = text.split("\n")
    fence = open_fence(lines)
    whole = text if fence is None else f"{text}\n{fence}"
    if len(whole) <= limit:
        return whole
    room = limit - len(_NOTE.format(left=len(text))) - 1
    kept = _lines_within(lines, room) or _start_of(lines[0], room)
    left = len(text) - len(kept)
    fence = open_fence(kept.split("\n"))
    return "\n".join(part for part in (kept, fence, _NOTE.format(left=left)) if part)


def _lines_within(lines: list[str], room: int) -> str:
    """As many lines as fit, with the fence that some of them need at their end."""
    fences = Fences()
    used = fitting = 0
    for number, line in enumerate(lines, 1):
        fences.is_code(line)
        used += len(line) + 1
        if used > room:
            break
        if used + len(fences.open or "") <= room:
            fitting = number
    return "\n".join(lines[:fitting])


def _start_of(line: str, room: int) -> str:
    """The beginning of a line that is too long, up to a space where there is one near the end."""
    start = line[:room]
    space = start.rfind(" ", room * 3 // 4)
    start = start[:space] if space > 0 else start
    # A line of nothing but backticks would need as long a line to be closed.
    return "" if open_fence([start]) else start
