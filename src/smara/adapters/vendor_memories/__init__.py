"""What agents have noted by themselves (Claude's auto memory, Codex's memories, Gemini's, Goose's)
as typed memories.

Their files are read as instruction files are, line by line and without touching them, and only what
is about this repository: a note about another project stays where it is. Everything waits for a
person.
"""

from __future__ import annotations

from smara.adapters.vendor_memories.finding import VENDORS, Vendor
from smara.adapters.vendor_memories.importing import import_vendor_memories

__all__ = ["VENDORS", "Vendor", "import_vendor_memories"]
