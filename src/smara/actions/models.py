"""Define what agents did as frozen records: commands, outcomes, failures, tests, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from smara.core.startup.record import dataclass, field

Purpose = Literal[
    "idle",
    "edit",
    "stage",
    "look",
    "read",
    "search",
    "ask",
    "other",
    "network",
    "review",
    "git",
    "revert",
    "query",
    "install",
    "check",
    "test",
    "commit",
]
"""What a command is for. ``check`` builds, formats or lints; ``stage`` is ``git add``; ``ask``
queries a program outside the repository, such as ``gh pr view``.
"""
LOOKING: frozenset[Purpose] = frozenset({"idle", "look", "read", "search", "ask"})
"""Commands that change nothing: neither a fix nor a step of a recipe."""


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One command of a line: its variables, its program, its arguments."""

    text: str
    """With its variables, without wrappers and without what only trims its output."""
    head: str
    """The program and its verb, such as ``git push``."""
    aim: str
    """The same without a runner: ``npx jest`` and ``jest`` have one aim. Of an interpreter that
    runs code of its own line, the whole line.
    """
    purpose: Purpose
    arguments: tuple[str, ...] = ()
    """The words that are no options."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line by its most telling part."""

    parts: tuple[CommandPart, ...]
    main: CommandPart
    text: str
    """The parts that change something, joined by ``&&``; all where none does."""
    is_simple: bool
    """Whether it is one command, so that its failure is the failure of this."""
    is_piped: bool = False
    """Whether the exit code is that of a pager or a filter."""

    @property
    def head(self) -> str:
        return self.main.head

    @property
    def purpose(self) -> Purpose:
        return self.main.purpose

    def has(self, purpose: Purpose) -> bool:
        """Return True if any part has this purpose."""
        return any(part.purpose == purpose for part in self.parts)


Outcome = Literal["ok", "failed", "unknown"]
"""How a command ended; ``unknown`` if it speaks of an error that may not be its own."""


@dataclass(frozen=True, slots=True)
class CommitRun:
    """A commit by its command and output; fields may be empty."""

    branch: str
    sha: str
    subject: str
    message: str


Verb = Literal["read", "edit", "search", "glob", "run", "fetch", "plan", "mcp", "accept"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a tool call did."""

    verb: Verb
    subject: str = ""
    """A path, a pattern, an address, a command or the name of a tool."""
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in an output: its line, type and place."""

    line: str
    type: str = ""
    file: str = ""
    line_number: int = 0
    trace: tuple[str, ...] = ()
    is_certain: bool = True
    """Whether the line is one that only a failing program prints."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line_number}" if self.file else ""


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A failed test; reason and file may be empty."""

    name: str
    reason: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The report of a test run; ``summary`` is the program's own line."""

    __test__ = False  # not a test, whatever its name says

    summary: str
    has_failures: bool
    failing: tuple[str, ...] = ()
    coverage: str = ""
    counts: tuple[tuple[str, int], ...] = ()


JobKind = Literal["transcript", "finalize"]


@dataclass(frozen=True, slots=True)
class HostContact:
    """A host's last event of a kind, with counts."""

    agent: str
    kind: str
    last_at: int
    event_count: int
    repeat_count: int


@dataclass(frozen=True, slots=True)
class Job:
    """A due task for a session; one of each kind per session."""

    kind: JobKind
    session_id: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    due_at: int = 0
    attempts: int = 0
    error: str | None = None
