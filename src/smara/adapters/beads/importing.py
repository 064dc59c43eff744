"""A tracker on its way in: safe to repeat, nothing lost, nothing of ours undone.

An issue that says what our own export would say of its task is left alone. One that says
what it said when it last came in has nothing new, and a task that was changed here after the
file was written is newer: both stay as they are. Everything else is put, in one go, with the
dependencies that can stand; the others are kept with their issues, set apart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from smara.adapters.beads.accounting import account
from smara.adapters.beads.edges import Edge
from smara.adapters.beads.mapping import take, with_residue
from smara.adapters.beads.models import KEY, BeadsImported
from smara.adapters.beads.others import keep_others
from smara.adapters.beads.reading import Issue, Tracker, read_tracker
from smara.adapters.beads.settling import Settled, settle
from smara.adapters.beads.writing import (
    Written,
    edges_of,
    implied_by,
    render,
    told_by,
    write_issues,
)
from smara.adapters.decoding import mapping_in
from smara.core.shortids import key_of
from smara.errors import ConflictError
from smara.memory import Memory
from smara.tasks.models import NewTask, Refused

Progress = Callable[[int, int], None]
"""Called with the issues stored so far and the issues to store."""


def import_beads(
    memory: Memory, path: str | os.PathLike[str], *, progress: Progress | None = None
) -> BeadsImported:
    """Bring in the issues of a tracker; safe to repeat.

    Each line is accounted for in the report. Raises `NotFoundError` or `InvalidInputError`
    for a path that is no readable tracker; then nothing was stored.
    """
    report = BeadsImported(os.fspath(path))
    tracker = read_tracker(path, report)
    _Import(memory, tracker, report).run(progress)
    keep_others(memory, tracker.others)
    return report


def check_beads(path: str | os.PathLike[str]) -> None:
    """Read a tracker without storing anything; raises what `import_beads` would raise."""
    read_tracker(path, BeadsImported(os.fspath(path)))


class _Here(NamedTuple):
    """A task that is known already: what an export would say of it, and its dependencies."""

    line: str
    seen: str | None
    """The fingerprint of the issue as it last came in."""
    updated_at: int
    created_at: int
    edges: frozenset[Edge]
    told: frozenset[Edge]
    """Dependencies that an earlier import brought."""
    implied: Edge | None
    """The one among them that only the id tells."""


class _Import:
    def __init__(self, memory: Memory, tracker: Tracker, report: BeadsImported) -> None:
        self._memory = memory
        self._report = report
        self._issues = tracker.issues
        self._lines = {key: render(issue.record) for key, issue in tracker.issues.items()}
        self._here = {
            key_of(each.task.short_id): _here(each) for each in write_issues(memory.tasks.export())
        }
        self._tasks = {key: self._read(key, issue) for key, issue in tracker.issues.items()}
        self._newer_here = {key for key in self._tasks if self._is_newer_here(key)}
        self._replaced = self._tasks.keys() - self._newer_here
        self._orphans = {
            key
            for key, here in self._here.items()
            if here.implied and here.implied not in here.edges
        }
        self._settled = self._settle()
        self._told = {
            edge for key in self._replaced & self._here.keys() for edge in self._here[key].told
        }
        self._gone = self._told - self._settled.edges
        """Dependencies that an earlier import brought, and the file no longer tells."""

    def run(self, progress: Progress | None) -> None:
        report, settled = self._report, self._settled
        wanted = [
            key for key in self._tasks if key not in self._newer_here and not self._is_known(key)
        ]
        done = self._memory.tasks.put_many(
            _counted((self._new_task(key) for key in wanted), len(wanted), progress)
        )
        report.added, report.changed = done.added, done.changed
        report.newer_here = len(self._newer_here) + done.newer_here
        report.unchanged = len(self._tasks) - len(self._newer_here) - len(wanted) + done.unchanged
        report.refused = (*done.refused, *self._connect(set(wanted)))
        report.implied_parents = len(settled.implied)
        report.dependencies = len(settled.edges)
        for key, issue in self._issues.items():
            account(report, issue.record, self._tasks[key], apart=settled.apart.get(key, {}))

    def _read(self, key: str, issue: Issue) -> NewTask:
        task = take(issue.record)
        if task.created_at is None and (here := self._here.get(key)):
            # An issue without any time got that of its first import, and keeps it.
            return replace(task, created_at=here.created_at, updated_at=here.updated_at)
        return task

    def _is_newer_here(self, key: str) -> bool:
        here, updated_at = self._here.get(key), self._tasks[key].updated_at
        if here is None or self._is_same(key):
            return False
        return here.seen == _fingerprint(self._lines[key]) or (
            updated_at is not None and here.updated_at > updated_at
        )

    def _is_same(self, key: str) -> bool:
        here = self._here.get(key)
        return here is not None and here.line == self._lines[key]

    def _settle(self) -> Settled:
        """The dependencies of the file among those that stay whatever it says."""
        records = {
            key: issue.record for key, issue in self._issues.items() if key in self._replaced
        }
        standing = [
            edge
            for key, here in self._here.items()
            if key not in self._replaced
            for edge in here.edges
        ]
        return settle(
            records, self._tasks.keys() | self._here.keys(), standing, orphans=self._orphans
        )

    def _is_known(self, key: str) -> bool:
        """Whether nothing has to be done: the issue and all that others say of its dependencies are
        here.
        """
        if not self._is_same(key):
            return False
        edges = self._here[key].edges
        return self._settled.edges_of(key) <= edges and self._gone.isdisjoint(edges)

    def _new_task(self, key: str) -> NewTask:
        task, settled = with_residue(self._issues[key].record, self._tasks[key]), self._settled
        notes = {
            "seen": _fingerprint(self._lines[key]),
            "apart": sorted(settled.apart.get(key, ())),
            "implied": key in settled.implied or key in self._orphans,
        }
        residue = {
            **task.metadata.get(KEY, {}),
            **{name: note for name, note in notes.items() if note},
        }
        task = replace(task, metadata={**task.metadata, KEY: residue})
        here = self._here.get(key)
        others = here.edges - here.told - self._gone if here else frozenset()
        edges = sorted(settled.edges_of(key) | others)
        return replace(task, depends_on=[(edge.depends_on, edge.type) for edge in edges])

    def _connect(self, put: set[str]) -> Iterator[Refused]:
        """Dependencies that an issue tells, or no longer tells, of a task which itself was not
        put.
        """
        for edge in sorted(self._gone):
            if edge.task not in put and edge in self._here[edge.task].edges:
                self._memory.tasks.undepend(edge.task, edge.depends_on, type=edge.type)
        for edge in sorted(
            self._settled.edges - self._told
        ):  # what was told before and is not here was removed here
            if edge.task not in put and edge not in self._here[edge.task].edges:
                try:
                    self._memory.tasks.depend(edge.task, edge.depends_on, type=edge.type)
                except ConflictError as error:
                    yield Refused(edge.task, f"{edge.type} {edge.depends_on}", str(error))


def _here(written: Written) -> _Here:
    task, record = written
    residue = mapping_in(task.metadata.get(KEY))
    return _Here(
        render(record),
        residue.get("seen"),
        task.updated_at,
        created_at=task.created_at,
        edges=frozenset(edges_of(task)),
        told=frozenset(told_by(task)),
        implied=implied_by(task),
    )


def _fingerprint(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def _counted(tasks: Iterable[NewTask], total: int, progress: Progress | None) -> Iterator[NewTask]:
    for number, task in enumerate(tasks, 1):
        yield task
        if progress:
            progress(number, total)
