"""Define what backups, exports and imports report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

ExportFormat = Literal["zip", "json", "markdown", "claude-md", "agents-md"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was written and checked."""

    path: str
    kind: Literal["sqlite", "archive"]
    size_bytes: int
    sha256: str
    counts: Mapping[str, int]
    """Rows by table."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An archive that was written."""

    path: str
    size_bytes: int
    sha256: str
    projects: tuple[str, ...]
    counts: Mapping[str, int]
    """Rows by table, of all projects together."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """An archive that was read into the store."""

    projects: tuple[str, ...]
    added: Mapping[str, int]
    """New rows by table."""
    present: Mapping[str, int]
    """Rows by table that the store had already."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows by table that name a row which is neither in the archive nor in the store."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A backup or an archive that was restored."""

    path: str
    kind: Literal["sqlite", "archive"]
    saved_as: str | None
    """The backup of what was there before."""
    counts: Mapping[str, int]
