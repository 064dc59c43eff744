"""Define instruction files, their statements, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from smara.knowledge.models import MemoryType


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """A file that tells agents how to work here."""

    path: str
    """Where it is, relative to the root where it lies inside, with ``/``."""
    place: str
    """The same, absolute, with links resolved: two names of one file are one file."""
    host: str
    """Whose file it is: ``claude``, ``agents``, ``cursor`` …; ``any`` for a file that was named."""
    folder: str = ""
    """The folder it speaks of, relative to the root; empty for all of the repository."""
    is_personal: bool = False
    """Whether it is one person's own, and not for the team."""


@dataclass(frozen=True, slots=True)
class RuleHead:
    """What a file says of itself in its first lines: Cursor's, Claude's and Copilot's front
    matter.
    """

    description: str = ""
    globs: tuple[str, ...] = ()
    """The files its rules are for."""
    is_always: bool = True
    lines: int = 0
    """How many lines the head has, its marks included."""


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    """One step of a procedure."""

    description: str
    line: int
    """Where it stands in the file."""


@dataclass(frozen=True, slots=True)
class InstructionStatement:
    """One thing an instruction file says."""

    text: str
    first_line: int
    last_line: int
    headings: tuple[str, ...] = ()
    """The headings it stands under, from the outermost."""
    steps: tuple[ProcedureStep, ...] = ()
    """What to do one after the other, when it is a procedure; ``title`` says what for."""
    title: str = ""
    marks: tuple[str, ...] = ()
    """What its form says of it: ``warning`` and ``note`` for quoted notices, ``code`` for a block
    of code.
    """
    type: MemoryType | None = None
    """Of which type it is, where the file says so; otherwise it is guessed."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a file that is no statement, and why."""

    line: int
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class FileReference:
    """Another file that is drawn in with ``@path``."""

    target: str
    line: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """All that an instruction file says."""

    head: RuleHead = field(default_factory=RuleHead)
    statements: tuple[InstructionStatement, ...] = ()
    references: tuple[FileReference, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
