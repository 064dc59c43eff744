"""What the history of a repository yields: commits as they were read, and what could be remembered
of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from smara.knowledge.models import MemoryType

Kind = Literal["reason", "breaking", "revert", "fix chain"]
Outcome = Literal["added", "known", "duplicate", "refused"]


class PastCommit(NamedTuple):
    """A commit that is no merge."""

    sha: str
    at_ms: int
    author: str
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that commits say and that may be worth remembering."""

    kind: Kind
    type: MemoryType
    content: str
    quotes: tuple[tuple[str, str], ...]
    """Pairs of a commit and the words in it that say so; the first commit is the one it is known
    by.
    """
    at_ms: int
    author: str
    files: tuple[str, ...] = ()
    data: dict[str, str] = field(default_factory=dict)

    @property
    def sha(self) -> str:
        return self.quotes[0][0]


@dataclass(frozen=True, slots=True)
class Change:
    """One candidate, and what became of it."""

    outcome: Outcome
    kind: Kind
    type: str
    content: str
    sha: str
    at_ms: int
    memory_id: str | None = None
    why: tuple[str, ...] = ()


@dataclass(slots=True)
class GitReport:
    """What an import of a history did, or with ``is_dry_run`` would do."""

    root: str
    is_dry_run: bool = False
    commits: int = 0
    """How many commits were read."""
    is_all: bool = True
    """Whether the history ends there; ``False`` when older commits were not looked at."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many commits that seemed to tell something were left out, by the reason."""
    changes: list[Change] = field(default_factory=list)
    cut: int = 0
    """How many candidates were beyond the limit."""
    warmed_commits: int | None = None
    """How many commits were counted for files that change together; ``None`` when that was not
    done.
    """
    left_for_later: int | None = None
    """How many files the repository has, when its code was not indexed because they are many."""

    @property
    def counts(self) -> Counter[str]:
        """How many candidates had each outcome."""
        return Counter(each.outcome for each in self.changes)
