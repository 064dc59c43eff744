"""About how much reading it spares to be told something, each estimate with the method it was made
by.

Nobody can know what an agent would have read. These say what it would most likely have had to: the
files that a memory names, or one failed call with its answer. They count only for what was used.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from smara.knowledge.models import TypedMemory

FAILED_CALL_TOKENS = 400
"""A command that fails, and its output: the middle of the 31 failed commands in the transcripts of
evaluation.
"""
_CHARACTERS_PER_TOKEN = 4
_MOST_FILES = 3
_MOST_TOKENS = 8_000


class Saving(NamedTuple):
    """Tokens that need not be read, and how that was estimated."""

    tokens: int = 0
    how: str = ""


NOTHING = Saving(0, "none: nothing it names can be measured")


def of_memory(memory: TypedMemory, root: str | None) -> Saving:
    """The files that a memory names: whoever does not know what it says would have to read them."""
    if root is None or not memory.files:
        return NOTHING
    sizes = [_size(os.path.join(root, path)) for path in memory.files[:_MOST_FILES]]
    tokens = sum(sizes) // _CHARACTERS_PER_TOKEN
    if not tokens:
        return NOTHING
    measured = sum(size > 0 for size in sizes)
    named = "the file" if measured == 1 else f"{measured} files"
    return Saving(min(tokens, _MOST_TOKENS), f"the size of {named} it names")


def of_failure() -> Saving:
    """One failed call."""
    return Saving(FAILED_CALL_TOKENS, "one failed call and its output")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size if os.path.isfile(path) else 0
    except (OSError, ValueError):
        return 0
