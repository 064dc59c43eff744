"""List the formats of other memory tools, and recognize them."""

from __future__ import annotations

import os

from smara.core.validate import one_of
from smara.errors import InvalidInputError, NotFoundError
from smara.privacy.foreign.basic_memory import BASIC_MEMORY
from smara.privacy.foreign.claude_mem import CLAUDE_MEM
from smara.privacy.foreign.hindsight import HINDSIGHT
from smara.privacy.foreign.mcp_memory import MCP_MEMORY
from smara.privacy.foreign.mem0 import MEM0
from smara.privacy.foreign.records import Candidate, ForeignFormat
from smara.privacy.foreign.zep import ZEP

FOREIGN: dict[str, ForeignFormat] = {
    each.name: each for each in (MEM0, MCP_MEMORY, BASIC_MEMORY, CLAUDE_MEM, HINDSIGHT, ZEP)
}
"""Every format that is read, in the order they are tried."""


def recognize(path: str) -> ForeignFormat | None:
    """Return the format of a path; ``None`` if no tool fits."""
    candidate = Candidate(path)
    return next((each for each in FOREIGN.values() if each.recognizes(candidate)), None)


def format_of(path: str, name: str | None) -> ForeignFormat:
    """Return the format that is named, or recognized.

    Raises:
        NotFoundError: If there is no such file.
        InvalidInputError: If it is none that is known.
    """
    if not os.path.exists(path):
        raise NotFoundError(f"File not found: {path}.")
    if name is not None:
        return FOREIGN[one_of(name, tuple(FOREIGN), "format")]
    found = recognize(path)
    if found is None:
        raise InvalidInputError(
            f"{path} is not recognized as a file of another memory tool. Name the tool with --from"
            f" {'|'.join(FOREIGN)}."
        )
    return found
