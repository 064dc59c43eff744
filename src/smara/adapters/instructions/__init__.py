"""Instruction files of agent hosts (CLAUDE.md, AGENTS.md, .cursorrules and friends) as typed
memories.

The files stay as they are. Each statement becomes a memory that knows its file and lines;
importing again changes only what has changed. What a file says is taken as imported, not
as taught by the user: it waits for a person's word before it is told unasked.
"""

from smara.adapters.instructions.collect import find_instructions
from smara.adapters.instructions.importer import (
    InstructionReport,
    StatementChange,
    import_instructions,
)
from smara.adapters.instructions.markdown import InstructionFile, InstructionStatement
from smara.adapters.instructions.parse import parse_instructions
from smara.knowledge.guess import Guess, type_of

__all__ = [
    "Guess",
    "InstructionFile",
    "InstructionReport",
    "InstructionStatement",
    "StatementChange",
    "find_instructions",
    "import_instructions",
    "parse_instructions",
    "type_of",
]
