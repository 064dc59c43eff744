"""Watch a tree and update its index on every save.

Changes are collected for half a second, so that a branch switch or a formatter is one update. A
failed write is tried again, and a deleted root is waited for.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smara.codegraph import git
from smara.codegraph.index.indexer import IndexTree, index
from smara.codegraph.index.update import get_ready, update
from smara.codegraph.models import IndexReport
from smara.core import log
from smara.core.paths import is_generated_folder
from smara.errors import SmaraError

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


DEBOUNCE_MS = 500
_STEP_MS = 100
_TICK_MS = 1_000
_WAIT_FOR_ROOT_SECONDS = 0.5

OnUpdate = Callable[[IndexReport, Sequence[str] | None], None]


def watch(tree: IndexTree, stop: threading.Event, on_update: OnUpdate | None = None) -> None:
    """Index a tree at least once, and then every change in it, until ``stop`` is set."""
    watcher = _Watcher(tree, on_update)
    while True:
        try:
            with _kept_open(tree.root), _notices(tree.root) as notices:
                # Follow the changes in one folder, as long as the root is that folder.
                folder = _identity(tree.root)
                # Changes are told from here on, and only then everything is compared: nothing is saved in
                # between unseen.
                watcher.all_anew()
                while not stop.is_set() and _identity(tree.root) == folder:
                    changes = notices.watch(DEBOUNCE_MS, _STEP_MS, _TICK_MS, stop)
                    if changes == "signal":
                        raise KeyboardInterrupt
                    paths = {path for _, path in changes} if isinstance(changes, set) else set()
                    watcher.take({path for path in paths if is_worth_a_look(tree.root, path)})
        except (FileNotFoundError, NotADirectoryError):
            stop.wait(_WAIT_FOR_ROOT_SECONDS)
        if stop.is_set():
            return


@contextmanager
def _kept_open(root: str) -> Iterator[None]:
    """Keep a folder's number from being given to the next one of the same name, which would then
    look the same.
    """
    if not hasattr(os, "O_DIRECTORY"):
        yield
        return
    number = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
    finally:
        os.close(number)


def _identity(root: str) -> tuple[int, int] | None:
    """Which folder a path means. One that was deleted and made again is another, of whose changes
    nobody tells us.
    """
    try:
        facts = os.stat(root)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else None


class _Watcher:
    def __init__(self, tree: IndexTree, on_update: OnUpdate | None) -> None:
        self._tree, self._on_update = tree, on_update
        self._waiting: set[str] = set()
        self._is_all_waiting = False
        self._head = git.GitHead()

    def all_anew(self) -> None:
        """Compare everything with the disk."""
        self._is_all_waiting = True
        self._work()
        if not self._is_all_waiting:
            get_ready(self._tree)

    def take(self, paths: set[str]) -> None:
        """Read what changed; ``paths`` may be empty, which is the time to try again what failed."""
        self._waiting |= paths
        # A commit or a checkout shows in git's head; what it changed may be more than we were told.
        if not self._is_all_waiting and git.head_of(self._tree.root) != self._head:
            self._is_all_waiting = True
        if self._waiting or self._is_all_waiting:
            self._work()

    def _work(self) -> None:
        paths = sorted(self._waiting)
        if not os.path.isdir(self._tree.root):
            return  # it is waited for, and then everything is compared
        try:
            if self._is_all_waiting:
                head = git.head_of(self._tree.root)
                report = index(self._tree)
                self._head = head
            else:
                report = update(self._tree, paths)
        except (SmaraError, OSError) as error:
            log.warning("code.watch_failed", error=str(error), waiting=len(paths))
            return
        was_all, self._is_all_waiting = self._is_all_waiting, False
        self._waiting -= set(paths)
        if self._on_update is not None and (report.indexed or report.removed or was_all):
            self._on_update(report, None if was_all else paths)


def _notices(root: str) -> RustNotify:
    from watchfiles._rust_notify import RustNotify

    try:
        return RustNotify([root], False, False, _TICK_MS, True, True)
    except FileNotFoundError:
        raise
    except OSError as error:
        # The system has no watches left, or none for this kind of disk: look around instead of
        # being told.
        log.warning("code.watch_polls", error=str(error))
        return RustNotify([root], False, True, _TICK_MS, True, True)


def is_worth_a_look(root: str, path: str) -> bool:
    """Whether a change may concern the index: nothing in a folder that machines make does."""
    inside = os.path.relpath(path, root)
    return not any(is_generated_folder(part) for part in inside.split(os.sep))
