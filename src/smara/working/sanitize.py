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
    text = neutralize(text).strip("\n")
    lines = text.split("\n")
    fence = open_fence(lines)
    closed = text if fence is None else f"{text}\n{fence}"
    if len(closed) <= limit:
        return closed
    room = limit - len(_NOTE.format(left=len(text))) - 1
    shown = _lines_within(lines, room)
    if not shown:  # the first line is too long: up to a space where there is one near the end
        shown = lines[0][:room]
        space = shown.rfind(" ", room * 3 // 4)
        shown = shown[:space] if space > 0 else shown
        # A line of nothing but backticks would need as long a line to be closed.
        shown = "" if open_fence([shown]) else shown
    note = _NOTE.format(left=len(text) - len(shown))
    return "\n".join(filter(None, (shown, open_fence(shown.split("\n")), note)))


def render_block(
    memory: WorkingMemory, limit: int = INJECTION_CHARACTERS, written_by: str = ""
) -> str:
    """Render a page as a block for a model; empty if empty."""
    text = for_injection(memory, limit)
    if not text.strip():
        return ""
    author = f' written-by="{written_by}"' if written_by else ""
    return (
        f'<working-memory scope="{memory.scope}" '
        f'version="{memory.version}"{author}>\n{text}\n</working-memory>'
    )


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
