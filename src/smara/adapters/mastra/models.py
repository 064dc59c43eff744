"""What an import of a Mastra store did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class MastraReport:
    """What became of a store; with ``is_dry_run`` what would become of it.

    ``messages`` equals stored + repeated + refused + what is in ``left_out``; ``grown`` counts
    pieces that were added to messages that had been stored before.
    """

    source: str
    is_dry_run: bool = False
    threads: int = 0
    messages: int = 0
    stored: int = 0
    repeated: int = 0
    grown: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a message's or page's name there and why it was not taken."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many messages did not become one here, by the reason."""
    pages: int = 0
    """Working memories that were put here now."""
    pages_same: int = 0
    pages_kept: int = 0
    """Working memories that were changed here since, and left so."""
    observations: int = 0
    """Texts of observations and reflections that were stored now."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, in sentences."""

    @property
    def is_nothing_new(self) -> bool:
        return not (self.stored or self.grown or self.pages or self.observations)
