"""Joining files: from the names a file uses to the definitions they mean, as far as syntax tells.

Every language has its own rules for finding a module and a name in it (``python``, ``script`` for
JavaScript and TypeScript, ``rust``, ``go``, ``java``, ``c`` for C and C++); what they share is in
``rules``. A name that cannot be followed stays without an edge: a wrong edge costs more than a
missing one.
"""

from smara.codegraph.resolve.project import ProjectFiles
from smara.codegraph.resolve.resolver import Resolver
from smara.codegraph.resolve.symbols import (
    FileOutline,
    MemoryTable,
    Symbol,
    SymbolTable,
    outline_of,
    pack_outline,
    unpack_outline,
)

__all__ = [
    "FileOutline",
    "MemoryTable",
    "ProjectFiles",
    "Resolver",
    "Symbol",
    "SymbolTable",
    "outline_of",
    "pack_outline",
    "unpack_outline",
]
