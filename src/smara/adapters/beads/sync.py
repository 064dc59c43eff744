"""Import a beads tracker as tasks, and export tasks as one.

An import is safe to repeat. An issue equal to our own export or to its last import is
skipped, and so is one whose task changed here after the file was written. All others are put
in one transaction with their valid dependencies. Fields without a counterpart are reported
and kept in the metadata; an export restores them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TextIO

from smara.adapters.beads.issues import (
    COUNTERPARTS,
    DEPENDENCY_TYPES,
    NO_COUNTERPART,
    IssueEdge,
    Settled,
    edge_of,
    implied_parent,
    issue_of,
    keyed,
    rfc3339,
    sections_of,
    settle,
    take,
    with_residue,
)
from smara.adapters.beads.tracker import (
    KEY,
    BeadsReport,
    Issue,
    Record,
    Tracker,
    in_order,
    keep_others,
    other_records,
    read_tracker,
)
from smara.adapters.lines import list_in, mapping_in, text_in, without_surrogates
from smara.core.ids import key_of
from smara.errors import ConflictError
from smara.memory import Memory
from smara.tasks.models import MAX_TITLE_LENGTH, Dependency, NewTask, Task, TaskRefusal

_SAYS_NOTHING = ("_type", "content_hash", "dependency_count", "dependent_count", "comment_count")
"""Fields that repeat what the others say."""


def account(report: BeadsReport, record: Record, task: NewTask, apart: Mapping[int, str]) -> None:
    """Add one issue to the report."""
    report.tombstones += record.get("status") == "tombstone"
    report.folded.update(sections_of(record))
    report.kept_in_metadata.update(_kept(record, task))
    report.kept_in_metadata.update(_kept_dependencies(record, apart))


def _kept(record: Record, task: NewTask) -> Iterator[str]:
    for name, ours in (
        ("status", task.status),
        ("issue_type", task.type),
        ("priority", task.priority),
    ):
        if name in record and record[name] != ours:
            yield f"{name} {record[name]} → {ours}"
    if len(" ".join(text_in(record.get("title")).split())) > MAX_TITLE_LENGTH:
        yield f"title of more than {MAX_TITLE_LENGTH} characters"
    for name in record:
        if (
            name not in COUNTERPARTS
            and name not in sections_of(record)
            and name not in _SAYS_NOTHING
        ):
            yield f"field {name}"


def _kept_dependencies(record: Record, apart: Mapping[int, str]) -> Iterator[str]:
    for position, dependency in enumerate(list_in(record.get("dependencies"))):
        name = text_in(mapping_in(dependency).get("type")) or "blocks"
        ours, why = DEPENDENCY_TYPES.get(name, (None, False))[0], apart.get(position)
        if ours is None:
            yield f"dependency {name} {NO_COUNTERPART}"
        elif why:
            yield f"dependency {why}"
        elif name != ours:
            yield f"dependency {name} → {ours}"


# As Go writes JSON, which beads does: a tracker then differs only where something was changed.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Written(NamedTuple):
    """A task and the issue that an export makes of it."""

    task: Task
    record: dict[str, Any]


def export_beads(memory: Memory, file: TextIO) -> int:
    """Write every task as a line of beads; return the number.

    Issues are in the order of their ids, and records that are no issues come last. A task
    that came from beads and was not changed here is written as it came.
    """
    written = sorted(write_issues(memory.tasks.export()), key=lambda each: each.task.short_id)
    for record in (*(each.record for each in written), *other_records(memory)):
        file.write(render(record) + "\n")
    return len(written)


def render(record: Record) -> str:
    """Render a record as one line; equal records give equal lines."""
    text = json.dumps(
        without_surrogates(in_order(record)), ensure_ascii=False, separators=(",", ":")
    )
    return text.translate(_ESCAPES)


def write_issues(tasks: Iterable[Task]) -> list[Written]:
    """Return the issues of all tasks of a project.

    Dependencies are given as they came where they still stand.
    """
    whole = list(tasks)  # at once, since one issue may tell a dependency of another
    standing = {edge for task in whole for edge in edges_of(task)}
    told = {edge for task in whole for edge in (implied_by(task, is_alone=True), *_given(task))}
    before, now = _DependencyTally(), _DependencyTally()
    written = []
    for task in whole:
        record, is_changed = issue_of(task)
        came = [given for given, _, _ in _originals(task)]
        still = [
            given for given, edge, is_apart in _originals(task) if is_apart or edge in standing
        ]
        still += [_dependency(each) for each in task.dependencies if edge_here(each) not in told]
        before.add(came)
        now.add(still)
        if still != came:
            record["dependencies"] = still
        if not still and came:
            del record["dependencies"]
        if still != came or is_changed:
            record.pop("content_hash", None)  # of what the issue was before
        written.append(Written(task, record))
    for each in written:
        # Bring counts that the issue came with up to date, by what has changed here.
        for name, old, new in (
            ("dependency_count", before.needs, now.needs),
            ("dependent_count", before.needed, now.needed),
        ):
            if (change := new[each.record["id"]] - old[each.record["id"]]) and type(
                each.record.get(name)
            ) is int:
                each.record[name] += change
    return written


def edges_of(task: Task) -> Iterator[IssueEdge]:
    """The dependencies of a task, by keys."""
    yield from map(edge_here, task.dependencies)


def edge_here(dependency: Dependency) -> IssueEdge:
    """A dependency of ours, by keys."""
    return IssueEdge(key_of(dependency.task), key_of(dependency.depends_on), dependency.type)


def told_by(task: Task) -> Iterator[IssueEdge]:
    """Return the dependencies that came with a task's issue."""
    yield from (edge for _, edge, is_apart in _originals(task) if edge and not is_apart)
    if edge := implied_by(task):
        yield edge


def implied_by(task: Task, is_alone: bool = False) -> IssueEdge | None:
    """Return the parent that an import took from a task's id.

    ``is_alone`` if the task has no other.

    Beside another parent it must be told, or the next import would take it for gone.
    """
    if not mapping_in(task.metadata.get(KEY)).get("implied"):
        return None
    parents = [edge for edge in edges_of(task) if edge.type == "parent-child"]
    edge = IssueEdge(
        key_of(task.short_id), implied_parent(key_of(task.short_id)) or "", "parent-child"
    )
    return edge if not is_alone or parents == [edge] else None


def _given(task: Task) -> Iterator[IssueEdge | None]:
    return (edge for _, edge, _ in _originals(task))


def _originals(task: Task) -> list[tuple[Any, IssueEdge | None, bool]]:
    """The dependencies that came with a task: as given, what they say here, and whether they were
    set apart.
    """
    residue = mapping_in(task.metadata.get(KEY))
    given = list_in(mapping_in(residue.get("fields")).get("dependencies"))
    apart = list_in(residue.get("apart"))
    edges = [edge_of(task.short_id, each) for each in given]
    return [
        (each, edge and keyed(edge), n in apart)
        for n, (each, edge) in enumerate(zip(given, edges, strict=True))
    ]


def _dependency(dependency: Dependency) -> dict[str, Any]:
    record = {
        "issue_id": dependency.task,
        "depends_on_id": dependency.depends_on,
        "type": dependency.type,
        "created_at": rfc3339(dependency.created_at),
        "created_by": dependency.created_by,
    }
    return {name: value for name, value in record.items() if value is not None}


class _DependencyTally:
    """How many issues each one needs, and is needed by, as beads counts them: by ``blocks``
    alone.
    """

    def __init__(self) -> None:
        self.needs: Counter[str] = Counter()
        self.needed: Counter[str] = Counter()

    def add(self, dependencies: Iterable[Any]) -> None:
        for each in dependencies:
            if isinstance(each, dict) and each.get("type") == "blocks":
                self.needs[str(each.get("issue_id"))] += 1
                self.needed[str(each.get("depends_on_id"))] += 1


Progress = Callable[[int, int], None]
"""Called with the issues stored so far and the issues to store."""


def import_beads(
    memory: Memory, path: str | os.PathLike[str], *, progress: Progress | None = None
) -> BeadsReport:
    """Bring in the issues of a tracker; safe to repeat.

    Each line is accounted for in the report. Raises `NotFoundError` or `InvalidInputError`
    for a path that is no readable tracker; then nothing was stored.
    """
    report = BeadsReport(os.fspath(path))
    tracker = read_tracker(path, report)
    _BeadsImport(memory, tracker, report).run(progress)
    keep_others(memory, tracker.others)
    return report


def check_beads(path: str | os.PathLike[str]) -> None:
    """Read a tracker without storing anything; raises what `import_beads` would raise."""
    read_tracker(path, BeadsReport(os.fspath(path)))


class _Here(NamedTuple):
    """A task that is known already: what an export would say of it, and its dependencies."""

    line: str
    seen: str | None
    """The fingerprint of the issue as it last came in."""
    updated_at: int
    created_at: int
    edges: frozenset[IssueEdge]
    told: frozenset[IssueEdge]
    """Dependencies that an earlier import brought."""
    implied: IssueEdge | None
    """The one among them that only the id tells."""


class _BeadsImport:
    def __init__(self, memory: Memory, tracker: Tracker, report: BeadsReport) -> None:
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

    def _connect(self, put: set[str]) -> Iterator[TaskRefusal]:
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
                    yield TaskRefusal(edge.task, f"{edge.type} {edge.depends_on}", str(error))


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
