"""What became of the files of a tree, for memories that name files and nothing in them that is
anchored.

The folder says whether a file is there, git whether it was, and what changed it since. Git is
asked for a second or so in all; after that nobody knows, and nothing waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from smara.environment import patience

if TYPE_CHECKING:  # loaded when git is asked for the first time
    from smara.codegraph.anchors.past import Past

ALLOWED_SECONDS = 1.5
_SECONDS_EACH = 0.5
T = TypeVar("T")


class TreeFiles:
    """The files of the folder that asks."""

    def __init__(
        self, find_root: Callable[[], str | None], allowed_seconds: float = ALLOWED_SECONDS
    ) -> None:
        self._find_root = find_root
        self._left = allowed_seconds * patience()
        self._pasts: dict[str, Past] = {}
        self._known: dict[tuple[str, str, str, str], bool | int | None] = {}

    def exists(self, path: str) -> bool | None:
        """Whether the file is there; gone is only what git still has."""
        root = self._root_of(path)
        if root is None:
            return None
        if os.path.lexists(os.path.join(root, path)):
            return True
        was = self._asked(root, "knows", path, lambda past: past.knows(path))
        return False if was else None

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Whether the file differs from what it was at a commit."""
        root = self._root_of(path)
        if root is None:
            return None
        found = self._asked(
            root, "changed", f"{path}\0{commit}", lambda past: past.changed_since(path, commit)
        )
        return None if found is None else bool(found)

    def modified_at(self, path: str) -> int | None:
        """When the file was last written: by a commit, for a checkout writes every file anew; else
        by its time.
        """
        root = self._root_of(path)
        if root is None or not os.path.isfile(os.path.join(root, path)):
            return None
        committed = self._asked(root, "modified", path, lambda past: past.modified_at(path))
        if committed is not None:
            return committed
        try:
            return (
                None
                if os.path.exists(os.path.join(root, ".git"))
                else _mtime(os.path.join(root, path))
            )
        except OSError:
            return None

    def _root_of(self, path: str) -> str | None:
        root = self._find_root()
        is_inside = not os.path.isabs(path) and ".." not in path.split("/")
        return root if is_inside else None

    def _asked(self, root: str, what: str, about: str, ask: Callable[[Past], T]) -> T | None:
        from smara.codegraph.anchors.past import Past

        past = self._pasts.setdefault(root, Past(root, _SECONDS_EACH))
        key = (root, past.head() or "", what, about)
        if key in self._known:
            return self._known[key]  # type: ignore[return-value]  # the same question was answered so before
        if self._left <= 0:
            return None
        begin = time.monotonic()
        found = ask(past)
        self._left -= time.monotonic() - begin
        self._known[key] = found  # type: ignore[assignment]
        return found


def _mtime(path: str) -> int:
    return os.stat(path).st_mtime_ns // 1_000_000
