"""Which git repository a folder belongs to.

A project is known by its git common directory (which worktrees share), its first commit
and its remote; never by its folder's name. The common directory is read from the files;
git itself is asked only the first time a repository is met.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from smara.core.git import git_text


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository: where its history lies, how it began, where it is pushed."""

    common_dir: str
    root: str

    @property
    def name(self) -> str:
        """The folder's name, for people to read."""
        folder = Path(self.common_dir)
        return (folder.parent if folder.name == ".git" else folder).name.removesuffix(
            ".git"
        ) or "project"

    @property
    def first_commit(self) -> str | None:
        """The root commit; the oldest of them when histories were joined."""
        lines = _git(self.common_dir, "rev-list", "--max-parents=0", "HEAD")
        return lines.split()[-1] if lines else None

    @property
    def remote(self) -> str | None:
        """The address of ``origin``, without a user's name or password."""
        url = _git(self.common_dir, "config", "--get", "remote.origin.url")
        if not url:
            return None
        scheme, separator, rest = url.strip().partition("://")
        if not separator:
            return url.strip()
        return f"{scheme}://{rest.rsplit('@', 1)[-1]}"

    @staticmethod
    def is_there(common_dir: str | None) -> bool:
        """Whether a common directory still exists."""
        return common_dir is not None and os.path.isdir(common_dir)


def find_repository(start: str | os.PathLike[str]) -> Repository | None:
    """The repository that holds a folder, or ``None``; a folder that cannot be looked into holds
    none.
    """
    folder = Path(os.path.abspath(start))
    for candidate in (folder, *folder.parents):
        marker = candidate / ".git"
        if os.path.isdir(marker):
            return Repository(os.path.realpath(marker), str(candidate))
        if os.path.isfile(marker):
            common = _common_dir_of_worktree(marker)
            if common:
                return Repository(common, str(candidate))
    return None


def _common_dir_of_worktree(marker: Path) -> str | None:
    """Follow ``gitdir: …`` and then ``commondir``, as git does for worktrees and submodules."""
    try:
        text = marker.read_text(encoding="utf-8").strip()
        if not text.startswith("gitdir:"):
            return None
        git_dir = marker.parent / text.removeprefix("gitdir:").strip()
        pointer = git_dir / "commondir"
        if pointer.is_file():
            git_dir = git_dir / pointer.read_text(encoding="utf-8").strip()
        return os.path.realpath(git_dir)
    except (OSError, ValueError):
        return None


def _git(common_dir: str, *arguments: str) -> str:
    return git_text(common_dir, *arguments) or ""
