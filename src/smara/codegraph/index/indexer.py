"""Bring a tree's index up to date with the disk.

One run at a time per tree, under a lease. A run walks the folders, compares with the stored rows,
reads what may have changed, writes in batches, and then makes the stale edges.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from smara.codegraph import git
from smara.codegraph.index.edges import EdgeBuilder, PreciseIndex, TreeCache
from smara.codegraph.index.files import FileEntry, FileWalk, TreeReader, WalkResult
from smara.codegraph.index.workers import SMALL, WORKERS, FileRecord, FileRequest, Pool, work_inline
from smara.codegraph.index.writer import Numbers, Writer
from smara.codegraph.models import IndexReport
from smara.codegraph.store import VERSION, CodeStore, FileRow, TreeRow
from smara.core import log
from smara.core.startup.record import dataclass
from smara.database.database import Session
from smara.database.leases import Lease, host_name, is_gone
from smara.database.projects import ProjectContext
from smara.errors import BusyError, InvalidInputError, LeaseLostError
from smara.secrets.redact import clean_id

Progress = Callable[[int, int], None]

LEASE_SECONDS = 15.0
_BATCH_FILES = 200
_BATCH_CHUNKS = 3_000
_RETRIED = frozenset({"unreadable", "changing", "outside", "not_a_file"})
"""Reasons that may be gone the next time although the file looks the same."""


@dataclass(slots=True)
class IndexPlan:
    """The work of one indexing run."""

    read: list[FileRequest]
    removed: list[FileRow]
    seen: dict[str, FileRow]
    unchanged: int = 0


class IndexTree:
    """One working folder and what this process holds of its index."""

    def __init__(self, project: ProjectContext, root: str) -> None:
        self.project, self.clock = project, project.clock
        self.store = CodeStore(project.database, project.scope)
        self.root = os.path.realpath(root)
        digest = hashlib.sha256(self.root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.lease_name = f"code:{project.scope.project_no}:{digest}"
        self.cache = TreeCache()
        self.numbers = Numbers(self.store)
        self._tracked: tuple[tuple[int, int] | None, frozenset[str] | None] = (None, None)
        self.lock = threading.RLock()
        """Held by the thread that changes the index: one at a time in this process.
        """

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Guard a block that changes the index.

        What failed half-way must not be taken for known.
        """
        with self.lock:
            try:
                yield
            except BaseException:
                self.cache = TreeCache()
                raise

    def walk(self, clean: Container[str] = ()) -> FileWalk:
        """Return a walk over the folder.

        Git is asked again only when its index changed.
        """
        if (stamp := git.index_stamp(self.root)) is None or stamp != self._tracked[0]:
            self._tracked = (stamp, git.tracked_paths(self.root))
        excludes = git.exclude_lines(self.root)
        return FileWalk(TreeReader(self.root), excludes, self._tracked[1], clean=clean)

    def row(self) -> TreeRow | None:
        return self.store.ask(self.store.tree_of, self.root)


def index(
    tree: IndexTree,
    *,
    is_full: bool = False,
    progress: Progress | None = None,
    wait_seconds: float = 600.0,
    workers: int | None = None,
    scip: str | os.PathLike[str] | None = None,
) -> IndexReport:
    """Bring the index of a tree up to date.

    ``is_full`` reads every file again, changed or not.

    ``scip`` is a SCIP index to take precise edges from; without it, ``index.scip`` in the folder if
    there is one. ``BusyError`` when another process is at it for longer than ``wait_seconds``. Safe
    to repeat and to interrupt.
    """
    if not os.path.isdir(tree.root):
        raise InvalidInputError(
            f"There is no folder {tree.root!r} to index. Give a folder.", field="root"
        )
    if clean_id(tree.root) != tree.root:
        raise InvalidInputError(
            "The path of this folder holds a secret, and an index would store it. Rename the"
            " folder to index its code.",
            field="root",
        )
    precise = PreciseIndex(tree.root, scip)
    clock = tree.clock
    started = clock.monotonic()
    report: dict[str, Any] | None = None
    while report is None:
        try:
            with tree.changing(), _leased(tree, wait_seconds) as lease:
                run = _Run(tree, lease, progress, workers=workers, precise=precise)
                report = run.run(is_full)
        except LeaseLostError:
            # The machine slept, or stood still for longer than a lease; what was written is there,
            # the rest is not.
            if clock.monotonic() - started > wait_seconds:
                raise
    seconds = round(clock.monotonic() - started, 3)
    log.event("code.indexed", files=report["files"], indexed=report["indexed"], seconds=seconds)
    return IndexReport(**report, seconds=seconds)


class _Run:
    def __init__(
        self,
        tree: IndexTree,
        lease: Lease,
        progress: Progress | None,
        workers: int | None,
        precise: PreciseIndex,
    ) -> None:
        self._tree, self._store, self._lease = tree, tree.store, lease
        self._progress, self._workers, self._precise = progress, workers, precise

    def run(self, is_full: bool) -> dict[str, Any]:
        tree, store, now_ms = self._tree, self._store, self._tree.clock.now_ms
        head = git.head_of(tree.root)
        before = tree.row()
        with self._writing() as session:
            row = store.begin_tree(session, tree.root, now_ms())
        is_full = is_full or (before is not None and before.version != VERSION)
        walked = tree.walk().all()
        seen = store.ask(store.files, row.no)
        plan = plan_of(walked, seen, is_full)
        # Where most files are new, asking each time whom a change concerns costs more than to make
        # all edges.
        is_first = (
            row.finished_at is None
            or is_full
            or len(plan.read) + len(plan.removed) > max(200, len(seen) // 4)
        )
        # What is known of files that look different is behind from now on, and says so.
        late = [
            seen[each.path].no
            for each in plan.read
            if each.path in seen and not is_as_before(seen[each.path], walked.files[each.path])
        ]
        if late:
            with self._writing() as session:
                store.mark_stale(session, late, now_ms())
        writer = Writer(store, row.no, tree.cache, numbers=tree.numbers)
        removed = 0
        for start in range(0, len(plan.removed), _BATCH_FILES):
            with self._writing() as session:
                some = plan.removed[start : start + _BATCH_FILES]
                removed += writer.remove(session, some, now_ms())
        if (count := self._workers) is None:
            count = WORKERS if len(plan.read) > SMALL else 0
        builder = EdgeBuilder(store, row.no, tree.root, cache=tree.cache)
        workers = Pool(tree.root, count) if count > 0 else nullcontext()
        with workers as pool:
            indexed, same = self._read(writer, plan, pool, is_first)
            if is_first:
                with self._writing() as session:
                    store.next_revision(session, row.no)
                    store.mark_all_stale(session, row.no, now_ms())
            builder.build(self._guard, pool)
        if self._precise.has_news(before, has_changed=bool(indexed or removed)):
            self._precise.apply(builder, self._guard)
        skipped: Counter[str] = Counter(walked.skipped)
        with self._writing() as session:
            skipped.update(store.skips(session, row.no))
            counts = {"skipped": dict(sorted(skipped.items())), "scip": self._precise.stamp}
            store.next_revision(session, row.no)
            store.finish_tree(
                session,
                row.no,
                head.branch,
                head=head.commit,
                counts=counts,
                now_ms=now_ms(),
            )
            status = store.status(session, row)
        return {
            "files": status.files,
            "indexed": indexed,
            "unchanged": plan.unchanged + same,
            "removed": removed,
            "nodes": status.nodes,
            "edges": status.edges,
            "chunks": status.chunks,
            "skipped": counts["skipped"],
            "is_complete": not status.stale_files,
        }

    def _guard(self, session: Session) -> None:
        self._tree.project.leases.guard(session, self._lease)

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with self._store.database.write(is_derived=True) as session:
            self._guard(session)
            yield session

    def _read(
        self, writer: Writer, plan: IndexPlan, pool: Pool | None, is_first: bool
    ) -> tuple[int, int]:
        """Read and write files in batches; return how many were written and unchanged."""
        indexed = same = done = 0
        works = pool.work(plan.read) if pool else work_inline(self._tree.root, plan.read)
        for batch in _batches(works):
            self._tree.numbers.prepare(batch)
            with self._writing() as session:
                now_ms = self._tree.clock.now_ms()
                indexed += writer.write(session, batch, plan.seen, now_ms, is_first)
            same += sum(work.is_same for work in batch)
            done += len(batch)
            if self._progress is not None:
                self._progress(done, len(plan.read))
        return indexed, same


def plan_of(walked: WalkResult, seen: dict[str, FileRow], is_full: bool = False) -> IndexPlan:
    """Return what to read and what is gone since last time."""
    plan = IndexPlan([], [row for path, row in seen.items() if path not in walked.files], seen)
    for path, entry in walked.files.items():
        if (row := seen.get(path)) is None or is_full:
            plan.read.append(FileRequest(path))
        elif is_as_before(row, entry) and row.skip not in _RETRIED:
            plan.unchanged += 1
        else:
            plan.read.append(FileRequest(path, row.hash))
    return plan


def is_as_before(row: FileRow, entry: FileEntry) -> bool:
    """Return True if a file looks unchanged since it was read.

    Its content is compared only when it does not.
    """
    return row.mtime_ns == entry.mtime_ns and row.size == entry.size


def _batches(works: Iterable[FileRecord]) -> Iterator[list[FileRecord]]:
    batch: list[FileRecord] = []
    chunks = 0
    for work in works:
        batch.append(work)
        chunks += len(work.chunks)
        if len(batch) >= _BATCH_FILES or chunks >= _BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


@contextmanager
def _leased(tree: IndexTree, wait_seconds: float) -> Iterator[Lease]:
    leases, clock = tree.project.leases, tree.clock
    owner = f"{host_name()}:{os.getpid()}:{tree.project.new_id()}"
    deadline = clock.monotonic() + wait_seconds
    while (lease := leases.acquire(tree.lease_name, owner, LEASE_SECONDS)) is None:
        if (holder := leases.find(tree.lease_name)) is not None and is_gone(holder.owner):
            leases.release(holder)
            continue
        if clock.monotonic() >= deadline:
            raise BusyError(
                f"{tree.root} is being indexed by another process. Try again when it is done.",
                root=tree.root,
            )
        clock.wait(0.1)
    with leases.hold(lease, LEASE_SECONDS):
        yield lease
