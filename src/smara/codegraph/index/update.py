"""Update an index: once, before a query, or at every save.

`CatchUp` compares the tree with the disk before a query when no watcher runs: a few changes are
indexed at once, many are reported. `watch` follows the folder until it is stopped.
"""

from __future__ import annotations

import gc
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from smara.codegraph import git
from smara.codegraph.index.edges import EdgeBuilder
from smara.codegraph.index.files import RULE_FILES
from smara.codegraph.index.indexer import IndexTree, index, is_as_before, plan_of
from smara.codegraph.index.workers import taken_apart, work_inline
from smara.codegraph.index.writer import StoredFiles, Writer
from smara.codegraph.models import IndexReport
from smara.codegraph.store import VERSION, FileRow
from smara.core import log
from smara.core.paths import is_generated_folder
from smara.core.startup.record import dataclass, field
from smara.errors import SmaraError
from smara.secrets.redact import scan

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


MOST_PATHS = 300
"""Beyond, comparing everything is quicker than looking at each."""


@contextmanager
def _without_gc() -> Iterator[None]:
    """A block in which no circles of garbage are looked for.

    An update leaves none, and looking through all that the process holds takes as long as the
    update.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_gc()
def update(tree: IndexTree, paths: Sequence[str | os.PathLike[str]]) -> IndexReport:
    """Read some files again and update what depends on them.

    Missing files are removed. Paths may be absolute or relative to the root; those outside of it
    are ignored. A tree that was never indexed, a folder among the paths or a change of what is
    ignored leads to a run over everything.
    """
    with tree.changing():
        clock, store = tree.clock, tree.store
        started = clock.monotonic()
        row = tree.row()
        inside = _inside(tree.root, paths)
        full = [os.path.join(tree.root, *path.split("/")) for path in inside]
        if (
            row is None
            or row.finished_at is None
            or row.version != VERSION
            or len(inside) > MOST_PATHS
            or any(os.path.basename(path) in RULE_FILES for path in full)
            or any(os.path.isdir(path) and not os.path.islink(path) for path in full)
        ):
            return index(tree)
        walked = tree.walk().some(inside)
        with store.database.read() as session:
            seen = store.files(session, row.no, inside)
            below = [
                each
                for path in inside
                if path not in walked.files
                for each in store.below(session, row.no, path)
            ]
        plan = plan_of(walked, seen)
        writer = Writer(store, row.no, tree.cache, numbers=tree.numbers)
        late = [seen[each.path] for each in plan.read if each.path in seen]
        if len(late) > 1:
            with store.database.write(is_derived=True) as session:
                store.mark_stale(session, [each.no for each in late], clock.now_ms())
        earlier = store.ask(StoredFiles.read, store, late)
        chunks = {
            (chunk.kind, chunk.name, chunk.prefix, chunk.text)
            for rows in earlier.chunks.values()
            for chunk in rows
        }
        works = list(work_inline(tree.root, plan.read, stored=chunks))
        tree.numbers.prepare(works)
        gone = [*plan.removed, *below]
        indexed = removed = 0
        if works or gone:
            with store.database.write(is_derived=True) as session:
                now_ms = clock.now_ms()
                if works:
                    indexed = writer.write(
                        session, works, seen, now_ms, is_first=False, earlier=earlier
                    )
                removed = writer.remove(session, gone, now_ms) if gone else 0
        EdgeBuilder(store, row.no, tree.root, cache=tree.cache).build()
        same = plan.unchanged + sum(work.is_same for work in works)
        return IndexReport(
            len(inside),
            indexed,
            same,
            removed=removed,
            seconds=round(clock.monotonic() - started, 4),
            skipped={str(reason): count for reason, count in walked.skipped.items()},
        )


def get_ready(tree: IndexTree) -> None:
    """Load and compile what the first update needs."""
    store, row = tree.store, tree.row()
    scan(
        f"password = '{'x7Qp2mLk' * 2}'"
    )  # one that looks real: only then the scanner compiles its rules
    if row is None:
        return
    with tree.lock, store.database.read() as session:
        for path in store.one_of_each_language(session, row.no):
            taken_apart(path.rpartition("/")[2], b"ready\n")
        tree.cache.current_notes(session, store, row.no).get_ready()


class Differences(NamedTuple):
    """The differences between disk and index, without reading files."""

    changed: list[str]
    added: list[str]
    removed: list[str]
    unsure: dict[str, bytes]
    """Of the size they had, with the hash of what was read; they were saved so shortly before that
    their time tells nothing.
    """

    @property
    def paths(self) -> list[str]:
        return [*self.changed, *self.added, *self.removed, *self.unsure]


def differences(tree: IndexTree) -> Differences:
    """Compare a tree with the disk by names, sizes and times."""
    store, row = tree.store, tree.row()
    if row is None:
        return Differences([], sorted(tree.walk().all().files), [], unsure={})
    seen: dict[str, FileRow] = store.ask(store.files, row.no)
    walked = tree.walk(clean=seen).all()
    changed = [
        path
        for path, found in walked.files.items()
        if path in seen and not is_as_before(seen[path], found)
    ]
    unsure = {
        path: seen[path].hash
        for path in sorted(changed)
        if not seen[path].mtime_ns and seen[path].size == walked.files[path].size
    }
    return Differences(
        sorted(path for path in changed if path not in unsure),
        sorted(walked.files.keys() - seen.keys()),
        sorted(seen.keys() - walked.files.keys()),
        unsure=unsure,
    )


def _inside(root: str, paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return paths relative to the root, with slashes, each once."""
    inside, found = root + os.sep, []
    for path in paths:
        full = os.path.normpath(os.path.join(root, os.fspath(path)))
        # The same folder may have another name: a link on the way to the root.
        real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        found += [each for each in (full, real) if each.startswith(inside)][:1]
    return list(dict.fromkeys(each.removeprefix(inside).replace(os.sep, "/") for each in found))


MOST_FILES = 200
MOST_LOOKED_AT = 20_000
"""In a tree of more files, looking would take longer than anyone waits for an answer; only its
commit is compared.
"""
_REST = 10.0
_WAIT_SECONDS = 2.0
ELSEWHERE = "another commit is checked out than was indexed; `smara code index` reads what changed"
UNSURE = "the code could not be compared with the disk: answers may be behind"


@dataclass(eq=False)
class CatchUp:
    """Compares one tree with the disk, now and then."""

    tree: IndexTree
    on_indexed: Callable[[Sequence[str] | None], None]
    _next_look: float = field(default=0.0, init=False)
    _note: str | None = field(default=None, init=False)

    def look(self) -> str | None:
        """Read what has changed, if it is little.

        What has to be known of the answers besides, or ``None``.
        """
        clock = self.tree.clock
        started = clock.monotonic()
        if started < self._next_look:
            return self._note
        try:
            self._note = self._compare()
        except (SmaraError, OSError) as error:
            log.warning("code.not_caught_up", error=str(error))
            self._note = UNSURE
        ended = clock.monotonic()
        self._next_look = ended + _REST * (ended - started)
        return self._note

    def _compare(self) -> str | None:
        if (row := self.tree.row()) is None or row.finished_at is None:
            return None  # the process that makes the first index tells it
        if not os.path.isdir(self.tree.root):
            return f"the folder {self.tree.root} is gone: answers are of what was in it"
        if row.version != VERSION:
            return (
                "the index was made by another version of Smara; `smara code index` makes it again"
            )
        is_elsewhere = git.head_of(self.tree.root) != (row.branch, row.head)
        store = self.tree.store
        with store.database.read() as session:
            is_large = store.count(session, "code_files", row.no) > MOST_LOOKED_AT
            # Left by a process that was killed between writing and joining; while an index is made,
            # it joins them.
            unjoined = (
                0 if row.state == "building" else len(store.stale(session, row.no, MOST_FILES + 1))
            )
        if is_large:
            return ELSEWHERE if is_elsewhere else None
        found = differences(self.tree)
        many = len(found.paths) - len(found.unsure)
        if many > MOST_FILES:
            return (
                f"{many:,} files have changed since the code was indexed; `smara code index` "
                "reads them"
            )
        if len(found.paths) > MOST_PATHS or is_elsewhere:
            index(self.tree, wait_seconds=_WAIT_SECONDS)
            self.on_indexed(None)
        elif found.paths or 0 < unjoined <= MOST_FILES:
            update(self.tree, found.paths)
            self.on_indexed(found.paths)
        return None


DEBOUNCE_MS = 500
_STEP_MS = 100
_TICK_MS = 1_000
_WAIT_FOR_ROOT_SECONDS = 0.5


def watch(
    tree: IndexTree,
    stop: threading.Event,
    on_update: Callable[[IndexReport, Sequence[str] | None], None] | None = None,
) -> None:
    """Index a tree, then every change, until ``stop`` is set."""
    waiting: set[str] = set()
    while True:
        try:
            with _kept_open(tree.root), _notices(tree.root) as notices:
                # Follow the changes in one folder, as long as the root is that folder. It is
                # followed already, and only now everything is compared: nothing is saved in between
                # unseen.
                folder = _identity(tree.root)
                is_all, is_ready, head = True, False, git.GitHead()
                while _identity(tree.root) == folder:
                    paths = sorted(waiting)
                    report = IndexReport()
                    try:
                        if is_all:
                            head = git.head_of(tree.root)
                            report = index(tree)
                        elif paths:
                            report = update(tree, paths)
                    except (SmaraError, OSError) as error:
                        # Tried again with the next changes, or at the next tick.
                        log.warning("code.watch_failed", error=str(error), waiting=len(paths))
                    else:
                        if on_update and (report.indexed or report.removed or is_all):
                            on_update(report, None if is_all else paths)
                        waiting, is_all = set(), False
                    if not is_ready and not is_all:
                        get_ready(tree)
                        is_ready = True
                    # Everything is compared once, however soon it is to stop.
                    if stop.is_set():
                        return
                    changes = notices.watch(DEBOUNCE_MS, _STEP_MS, _TICK_MS, stop)
                    if changes == "signal":
                        raise KeyboardInterrupt
                    if isinstance(changes, set):
                        waiting |= {path for _, path in changes if is_worth_a_look(tree.root, path)}
                    # A commit or a checkout shows in git's head; what it changed may be more than
                    # the system reports.
                    is_all = is_all or git.head_of(tree.root) != head
        except (FileNotFoundError, NotADirectoryError):
            if stop.wait(_WAIT_FOR_ROOT_SECONDS):
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
    """Return the identity of a folder.

    One that was deleted and made again is another, whose changes are not reported.
    """
    try:
        facts = os.stat(root)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else None


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
    """Return True if a change may concern the index.

    Nothing in a folder that machines make does.
    """
    inside = os.path.relpath(path, root)
    return not any(is_generated_folder(part) for part in inside.split(os.sep))
