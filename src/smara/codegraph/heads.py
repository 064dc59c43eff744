"""Where a checked-out folder stands in its history: branch, commit, and which files git tracks.

Branch and commit are read from git's own files. The tracked files are asked of git, with everything
switched off by which a foreign repository could make it run a program.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from smara.core.git import ask_git
from smara.core.repository import find_repository

_SMALL = 4_096
_PACKED = 8 * 1024 * 1024
_BRANCH = re.compile(r"ref: refs/heads/(\S{1,250})")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Head(NamedTuple):
    """What is checked out. Both are ``None`` outside of git; a detached head has no branch."""

    branch: str | None = None
    commit: str | None = None


class GitFolder(NamedTuple):
    """Git's own folder of a working folder, and the one it shares with other worktrees."""

    own: str
    common: str


def git_folder(root: str) -> GitFolder | None:
    """Git's folder of the repository that holds ``root``."""
    found = find_repository(root)
    if found is None:
        return None
    marker = os.path.join(found.root, ".git")
    if os.path.isdir(marker):
        return GitFolder(marker, marker)
    text = _text(marker, _SMALL)
    if not text.startswith("gitdir:"):
        return None
    own = os.path.normpath(os.path.join(found.root, text.removeprefix("gitdir:").strip()))
    return GitFolder(own, found.common_dir)


def head_of(root: str) -> Head:
    """The branch and the commit that are checked out."""
    folder = git_folder(root)
    if folder is None:
        return Head()
    text = _text(os.path.join(folder.own, "HEAD"), _SMALL)
    if _COMMIT.fullmatch(text):
        return Head(None, text)
    match = _BRANCH.fullmatch(text)
    if match is None:
        return Head()
    return Head(match[1], _commit_of(folder, f"refs/heads/{match[1]}"))


def _commit_of(folder: GitFolder, name: str) -> str | None:
    if ".." in name:
        return None
    for base in (folder.common, folder.own):
        text = _text(os.path.join(base, *name.split("/")), _SMALL)
        if _COMMIT.fullmatch(text):
            return text
    for line in _text(os.path.join(folder.common, "packed-refs"), _PACKED).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def exclude_lines(root: str) -> list[str]:
    """The patterns of ``.git/info/exclude``."""
    folder = git_folder(root)
    return (
        _text(os.path.join(folder.common, "info", "exclude"), _PACKED).splitlines()
        if folder
        else []
    )


def tracked_paths(root: str, timeout_seconds: float = 20.0) -> frozenset[str] | None:
    """The files that git tracks below ``root``; ``None`` when there is no git to ask."""
    if git_folder(root) is None:
        return None
    answer = ask_git(root, "ls-files", "-z", timeout_seconds=timeout_seconds)
    if answer is None or answer.code:
        return None
    return frozenset(
        name for name in answer.output.decode("utf-8", "surrogateescape").split("\0") if name
    )


def index_stamp(root: str) -> tuple[int, int] | None:
    """What changes when git begins or ends to track a file."""
    folder = git_folder(root)
    try:
        facts = os.stat(os.path.join(folder.own, "index")) if folder else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size) if facts else None


def _text(path: str, most: int) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
