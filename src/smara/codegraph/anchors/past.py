"""What git knows of a tree's past: files as they were at a commit, what was renamed, what changed
since.

Git is asked through short calls that read and never write. Every call has a time limit and a
limit of size; what it cannot say in time is not known, and nothing fails because of it.
Answers about commits never change and are kept for the life of the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from smara.codegraph.heads import head_of
from smara.core.git import ask_git

SECONDS = 5.0
MOST_BYTES = 2_000_000
_MOST_KEPT = 512
_COMMIT = re.compile(r"[0-9a-fA-F]{4,64}")
_NOT_KNOWN = object()
T = TypeVar("T")


class Past:
    """The past of one tree; of a tree without git, nothing is known."""

    def __init__(self, root: str, seconds: float = SECONDS) -> None:
        self.root = root
        self._seconds = seconds
        self._kept: dict[tuple[str, ...], Any] = {}

    def head(self) -> str | None:
        """The commit that is checked out now; asked anew each time, for branches are switched."""
        return head_of(self.root).commit

    def commit(self, name: str | None) -> str | None:
        """The whole hash of a commit by the beginning of it, if this repository has it."""
        if name is None or not _COMMIT.fullmatch(name):
            return None
        return self._keep(
            ("commit", name),
            lambda: _line(self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")),
        )

    def commit_at(self, at_ms: int) -> str | None:
        """The newest commit of this branch that was there at a moment."""
        return _line(self._git("rev-list", "-1", f"--before={at_ms // 1000}", "HEAD"))

    def read(self, commit: str, path: str) -> bytes | None:
        """A file as it was at a commit; ``None`` when it was not there, or is too large to be
        read.
        """
        return self._keep(
            ("read", commit, path), lambda: self._git("cat-file", "blob", f"{commit}:./{path}")
        )

    def renamed_to(self, commit: str, path: str) -> str | None:
        """What git takes a file of a commit to be called now, with what it was changed by on the
        way.
        """
        head = self.head()
        if head is None:
            return None
        renames = self._keep(("renames", commit, head), lambda: self._renames(commit, head))
        return renames.get(path) if renames else None

    def _renames(self, commit: str, head: str) -> dict[str, str]:
        told = self._git(
            "diff",
            "--name-status",
            "-M",
            "-l400",
            "--diff-filter=R",
            "-z",
            "--relative",
            commit,
            head,
        )
        pieces = (told or b"").decode("utf-8", "surrogateescape").split("\0")
        return {pieces[at + 1]: pieces[at + 2] for at in range(0, len(pieces) - 2, 3)}

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Whether a file differs from what it was at a commit, in the working folder."""
        whole = self.commit(commit)
        if whole is None:
            return None
        return self._status("diff", "--quiet", whole, "--", path)

    def knows(self, path: str) -> bool | None:
        """Whether a file of this name is part of the commit that is checked out.

        To ask the whole history would take seconds in a large one.
        """
        head = self.head()
        if head is None:
            return None
        return self._keep(
            ("knows", head, path),
            lambda: self._git("cat-file", "-t", f"{head}:./{path}") is not None,
        )

    def modified_at(self, path: str) -> int | None:
        """When a commit last changed a file (ms)."""
        told = _line(self._git("log", "-1", "--format=%ct", "HEAD", "--", path))
        return int(told) * 1000 if told is not None and told.isdecimal() else None

    def _keep(self, key: tuple[str, ...], ask: Callable[[], T]) -> T:
        found = self._kept.get(key, _NOT_KNOWN)
        if found is _NOT_KNOWN:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            found = self._kept[key] = ask()
        return cast(T, found)

    def _git(self, *arguments: str) -> bytes | None:
        answer = ask_git(self.root, *arguments, timeout_seconds=self._seconds)
        if answer is None or answer.code != 0 or len(answer.output) > MOST_BYTES:
            return None
        return answer.output

    def _status(self, *arguments: str) -> bool | None:
        answer = ask_git(self.root, *arguments, timeout_seconds=self._seconds)
        return None if answer is None or answer.code not in (0, 1) else bool(answer.code)


def _line(told: bytes | None) -> str | None:
    text = (told or b"").decode("utf-8", "replace").strip()
    return text or None
