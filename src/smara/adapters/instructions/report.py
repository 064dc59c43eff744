"""What an import of instruction files did, or would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from smara.adapters.instructions.gathering import NotFollowed
from smara.adapters.instructions.models import LeftOut

Outcome = Literal[
    "added",
    "changed",
    "moved",
    "unchanged",
    "verified",
    "returned",
    "put aside",
    "removed",
    "stale",
    "known",
    "refused",
]
"""What became of a statement or of its memory.

*moved*: the same words at other lines; *verified*: now vouched for; *put aside*: a person
rejected or forgot it; *removed* and *stale*: no file says it any more, and nobody or a person
had confirmed it; *known*: another memory says it already.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One statement, and what became of it."""

    outcome: Outcome
    type: str
    text: str
    places: tuple[str, ...]
    """Where it stands, as ``path:first-last``."""
    memory_id: str | None = None
    """The short id of its memory; ``None`` when it has none, or not yet."""
    replaces: str | None = None
    """The short id of the memory whose place it took."""
    why: tuple[str, ...] = ()
    """What made it this type, or why it was refused."""


@dataclass(slots=True)
class FileReport:
    """One file."""

    path: str
    host: str
    statements: int
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True)
class InstructionReport:
    """Everything an import did, or with ``is_dry_run`` would do."""

    root: str
    is_dry_run: bool = False
    files: list[FileReport] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    not_followed: list[NotFollowed] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """How many statements had each outcome."""
        return Counter(change.outcome for change in self.changes)

    @property
    def is_nothing_new(self) -> bool:
        """Whether the memory was as the files are."""
        return set(self.counts) <= {"unchanged", "put aside", "known", "refused"}
