"""Look through folders for transcripts, reading only the head of each file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from smara.adapters.lines import JsonLine, decode, read_lines
from smara.core.git import find_repository
from smara.errors import SmaraError

HEAD_LINES = 30
_NEVER = {".git", ".venv", "node_modules", "__pycache__"}


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript of an agent: its file, or one session of a database."""

    path: str
    format: str
    cwd: str = ""
    """The folder of the session; empty if nothing names it."""
    at_ms: int = 0
    """The time of the last change."""
    session_id: str = ""
    is_subagent: bool = False
    only: str | None = None
    """The session, of a file that has many."""
    is_unreadable: bool = False
    """True if its head could not be read, so that nothing says where it belongs."""


class Here:
    """A folder, with the test that another one belongs to the same repository."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        repository = find_repository(folder)
        self._common_dir = repository.common_dir if repository else None
        self.root = repository.root if repository else self.folder
        self._answers: dict[str, bool] = {}

    def has(self, folder: str) -> bool:
        """Return True if a folder is of the same repository, or, without one, below this one."""
        if folder not in self._answers:
            self._answers[folder] = bool(folder) and self._look(folder)
        return self._answers[folder]

    def candidates(self) -> list[str]:
        """Return the folders of this repository that an agent may have been started in."""
        inside = [self.folder, *(str(each) for each in Path(self.folder).parents)]
        return list(
            dict.fromkeys([self.root, *(each for each in inside if each.startswith(self.root))])
        )

    def _look(self, folder: str) -> bool:
        if self._common_dir is not None:
            repository = find_repository(folder)
            return repository is not None and repository.common_dir == self._common_dir
        real = os.path.realpath(folder)
        return real == self.folder or real.startswith(self.folder.rstrip(os.sep) + os.sep)


def walk(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder; what cannot be listed is skipped, links are not followed."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _NEVER)
        for name in sorted(names):
            yield Path(root, name)


def head(path: Path, lines: int = HEAD_LINES) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the first lines of a file; nothing of an unreadable one."""
    try:
        for line in islice(read_lines(path), lines):
            entry = decode(line)
            if isinstance(entry, JsonLine):
                yield entry.value
    except SmaraError:
        return  # it is reported when the file itself is read


def is_readable(path: Path) -> bool:
    """Return True if a compressed file can be unpacked here, at least its first line."""
    if not path.name.endswith(".zst"):
        return True
    try:
        first = next(read_lines(path), None)
    except SmaraError:
        return False
    return first is not None and first.problem is None


def written_at(path: str | os.PathLike[str]) -> int:
    """Return the time of a file's last change in milliseconds; 0 if it cannot be read."""
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return 0
