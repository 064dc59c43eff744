"""Import a beads tracker as tasks, and export tasks as one.

An import is safe to repeat. An issue equal to our own export or to its last import is
skipped, and so is one whose task changed here after the file was written. All others are put
in one transaction with their valid dependencies. Fields without a counterpart are reported
and kept in the metadata; an export restores them. Records that are no issues ("memories")
are stored as messages of one thread, so that search finds them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO

from smara.adapters.beads.issues import (
    COUNTERPARTS,
    DEPENDENCY_TYPES,
    KEY,
    NO_COUNTERPART,
    IssueEdge,
    Record,
    edge_of,
    implied_parent,
    issue_of,
    rfc3339,
    sections_of,
    settle,
    take,
    with_residue,
)
from smara.adapters.lines import (
    JsonLine,
    bound_unpacking,
    decode,
    given,
    list_in,
    mapping_in,
    milliseconds,
    read_lines,
    text_in,
)
from smara.adapters.records import Progress
from smara.core.ids import key_of
from smara.core.scope import is_id
from smara.core.startup.record import dataclass, field, replace
from smara.errors import ConflictError, InvalidInputError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, plain
from smara.secrets import redact_value
from smara.shapes import encodable
from smara.tasks.models import MAX_TITLE_LENGTH, Dependency, NewTask, Task, TaskRefusal

THREAD = NewThread("beads", title="Notes kept in beads", metadata={"host": "beads"})
# Fields that repeat what the others say.
_SAYS_NOTHING = ("_type", "content_hash", "dependency_count", "dependent_count", "comment_count")

# In the order in which beads writes them, so that a tracker that goes out again differs from the
# one that came in only where something changed. Others follow by name.
FIELDS = (
    "_type", "id", "content_hash", "title", "description", "design", "acceptance_criteria", "notes",
    "spec_id",
    "status", "priority", "issue_type", "assignee", "owner", "estimated_minutes", "created_at",
    "created_by",
    "updated_at", "started_at", "closed_at", "close_reason", "closed_by_session", "due_at",
    "defer_until",
    "external_ref", "source_system", "metadata", "compaction_level", "compacted_at",
    "compacted_at_commit",
    "original_size", "source_repo", "labels", "dependencies", "comments", "deleted_at",
    "deleted_by", "delete_reason",
    "original_type", "sender", "ephemeral", "pinned", "is_template", "await_type", "await_id",
    "timeout", "waiters",
    "dependency_count", "dependent_count", "comment_count",
)  # fmt: skip
_PLACES = {name: place for place, name in enumerate(FIELDS)}

# As Go writes JSON, which beads does: a tracker then differs only where something was changed.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@dataclass(slots=True)
class BeadsReport:
    """The result of importing a tracker.

    ``lines`` equals issues + others + repeated + unreadable, and ``issues`` equals added +
    changed + unchanged + newer_here.

    Attributes:
        newer_here: Issues left as they are, because the task was changed here after the file was
            written.
        dependencies: Dependencies of the file that stand between tasks now, implied parents among
            them.
        implied_parents: Children known as such by their ids alone: ``bd-1.2`` is one of ``bd-1``.
        others: Records that are no issues, by type; kept as messages of the thread ``beads``.
        folded: Fields that became sections of the description.
        kept_in_metadata: What has no counterpart here, by kind; it goes out again as it was.
        redacted: Secrets that were replaced before anything was stored.
    """

    path: str
    lines: int = 0
    issues: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    newer_here: int = 0
    dependencies: int = 0
    implied_parents: int = 0
    tombstones: int = 0
    others: Counter[str] = field(default_factory=Counter)
    folded: Counter[str] = field(default_factory=Counter)
    kept_in_metadata: Counter[str] = field(default_factory=Counter)
    repeated: list[tuple[int, str]] = field(default_factory=list)
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    refused: tuple[TaskRefusal, ...] = ()
    redacted: int = 0


def read_tracker(
    path: str | os.PathLike[str], report: BeadsReport
) -> tuple[dict[str, Record], list[Record]]:
    """Read a whole file, plain or compressed, accounting for every line.

    Returns its issues by key, since ids that differ in case alone are one, and its other records.
    Raises `NotFoundError` or `InvalidInputError` when it is no readable file, or holds lines
    and not one of them is an issue.
    """
    issues: dict[str, tuple[int, Record]] = {}
    others: list[Record] = []
    for entry in map(decode, read_lines(path)):
        report.lines += 1
        if not isinstance(entry, JsonLine):
            detail = f" ({entry.detail})" if entry.detail else ""
            report.unreadable.append((entry.line, entry.reason + detail))
            continue
        record, secrets = redact_value(entry.value)
        if record.get("_type", "issue") != "issue":
            others.append(record)
            report.others[str(record["_type"])] += 1
        elif not is_id(record.get("id")) or not record["id"].strip():
            report.unreadable.append((entry.line, 'no issue: it has no "id"'))
            continue
        elif not {"title", "status", "issue_type"} & record.keys():
            report.unreadable.append((entry.line, 'no issue: it has no "title"'))
            continue
        else:
            # Of two issues with one id the newer counts, and of equally old ones the later.
            key, issue = key_of(record["id"]), (entry.line, record)
            older, newer = sorted(
                (issues.get(key, issue), issue),
                key=lambda each: milliseconds(each[1].get("updated_at")) or 0,
            )
            issues[key] = newer
            if older is not newer:
                what = "the same as" if older[1] == newer[1] else "older than"
                report.repeated.append((older[0], f"{older[1]['id']} is {what} in line {newer[0]}"))
        report.redacted += secrets
    report.issues = len(issues)
    if report.lines and not issues and not others:
        number, reason = report.unreadable[0]
        raise InvalidInputError(
            f"{report.path} holds no issue of beads (line {number}: {reason}); nothing was stored. "
            "Give the issues.jsonl of a .beads folder, or what `bd export` writes.",
            path=report.path,
        )
    return {key: record for key, (_, record) in issues.items()}, others


def _store_others(memory: Memory, records: Iterable[Record]) -> None:
    """Store records of unknown types as they are; safe to repeat."""
    newest, versions = _other_records(memory)
    messages = []
    for record in records:
        name = _name(record)
        if newest.get(name) == record:
            continue
        newest[name] = record
        versions[name] += 1
        key, value = record.get("key"), record.get("value")
        if isinstance(value, str) and value.strip():
            words = f"{key}\n\n{value}" if isinstance(key, str) else value
        else:
            words = plain(dict(record))
        metadata = {"kind": "note", KEY: dict(record)}
        messages.append(NewMessage("system", words, f"{name}#{versions[name]}", metadata=metadata))
    if messages:
        memory.messages.append_batch(THREAD, messages, may_differ=True, compact=False)


def _other_records(memory: Memory) -> tuple[dict[str, Record], Counter[str]]:
    """Return the stored records that are no issues, newest form each, and their versions."""
    newest: dict[str, Record] = {}
    versions: Counter[str] = Counter()
    if memory.threads.find(THREAD.id) is None:
        return newest, versions
    for message in memory.messages.stream(thread_id=THREAD.id):
        if record := dict(mapping_in(message.metadata.get(KEY))):
            newest[_name(record)] = record
            versions[_name(record)] += 1
    return newest, versions


def _name(record: Record) -> str:
    """What makes two records one: their type and key."""
    named = record.get("key", record.get("id", record.get("name")))
    return f"{record.get('_type')}:{plain(named if named is not None else dict(record))}"[:400]


def export_beads(memory: Memory, file: TextIO) -> int:
    """Write every task as a line of beads; return the number.

    Issues are in the order of their ids, and records that are no issues come last. A task
    that came from beads and was not changed here is written as it came.
    """
    issues = sorted(_write_issues(memory.tasks.export()), key=lambda pair: pair[0].short_id)
    others = sorted(_other_records(memory)[0].items())
    for record in (*(record for _, record in issues), *(record for _, record in others)):
        file.write(render(record) + "\n")
    return len(issues)


def render(record: Record) -> str:
    """Render a record as one line, in the order of beads.

    Equal records give equal lines.
    """
    names = sorted(record, key=lambda name: (_PLACES.get(name, len(FIELDS)), name))
    ordered = encodable({name: record[name] for name in names})
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _write_issues(tasks: Iterable[Task]) -> list[tuple[Task, dict[str, Any]]]:
    """Return all tasks of a project, each with the issue that an export makes of it.

    Dependencies are given as they came where they still stand.
    """
    whole = list(tasks)  # at once, since one issue may tell a dependency of another
    standing = {_edge_here(each) for task in whole for each in task.dependencies}
    covered = {
        edge
        for task in whole
        for edge in (
            _implied_by(task, is_alone=True),
            *(edge for _, edge, _ in _originals(task)),
        )
    }
    counts: Counter[tuple[str, str]] = Counter()
    issues = []
    for task in whole:
        record, is_changed = issue_of(task)
        originals = _originals(task)
        came = [given for given, _, _ in originals]
        still = [given for given, edge, is_apart in originals if is_apart or edge in standing]
        for each in task.dependencies:
            if _edge_here(each) not in covered:
                fields = {
                    "issue_id": each.task,
                    "depends_on_id": each.depends_on,
                    "type": each.type,
                    "created_at": rfc3339(each.created_at),
                    "created_by": each.created_by,
                }
                still.append({name: value for name, value in fields.items() if value is not None})
        # Beads counts the issues that each one needs, and is needed by, by ``blocks`` alone.
        for change, each in (*((-1, each) for each in came), *((1, each) for each in still)):
            if isinstance(each, dict) and each.get("type") == "blocks":
                counts["dependency_count", str(each.get("issue_id"))] += change
                counts["dependent_count", str(each.get("depends_on_id"))] += change
        if still != came:
            record["dependencies"] = still
        if not still and came:
            del record["dependencies"]
        if still != came or is_changed:
            record.pop("content_hash", None)  # of what the issue was before
        issues.append((task, record))
    for _, record in issues:
        # Bring counts that the issue came with up to date, by what has changed here.
        for name in ("dependency_count", "dependent_count"):
            if (change := counts[name, record["id"]]) and type(record.get(name)) is int:
                record[name] += change
    return issues


def _edge_here(dependency: Dependency) -> IssueEdge:
    return IssueEdge(key_of(dependency.task), key_of(dependency.depends_on), dependency.type)


def _implied_by(task: Task, is_alone: bool = False) -> IssueEdge | None:
    """Return the parent that an import took from a task's id.

    ``is_alone`` if the task has no other.

    Beside another parent it must be told, or the next import would take it for gone.
    """
    if not mapping_in(task.metadata.get(KEY)).get("implied"):
        return None
    key = key_of(task.short_id)
    edge = IssueEdge(key, implied_parent(key) or "", "parent-child")
    parents = [_edge_here(each) for each in task.dependencies if each.type == "parent-child"]
    return edge if not is_alone or parents == [edge] else None


def _originals(task: Task) -> list[tuple[Any, IssueEdge | None, bool]]:
    """The dependencies that came with a task: as given, what they say here, and whether they were
    set apart.
    """
    residue = mapping_in(task.metadata.get(KEY))
    apart = list_in(residue.get("apart"))
    return [
        (given, edge_of(task.short_id, given), position in apart)
        for position, given in enumerate(
            list_in(mapping_in(residue.get("fields")).get("dependencies"))
        )
    ]


def import_beads(
    memory: Memory, path: str | os.PathLike[str], *, progress: Progress | None = None
) -> BeadsReport:
    """Bring in the issues of a tracker; safe to repeat.

    Each line is accounted for in the report. Raises `NotFoundError` or `InvalidInputError`
    for a path that is no readable tracker; then nothing was stored.
    """
    report = BeadsReport(os.fspath(path))
    bound_unpacking(memory.settings)
    issues, others = read_tracker(path, report)
    _BeadsImport(memory, issues, report).run(progress)
    _store_others(memory, others)
    return report


def check_beads(path: str | os.PathLike[str]) -> None:
    """Read a tracker without storing anything; raises what `import_beads` would raise."""
    read_tracker(path, BeadsReport(os.fspath(path)))


class _Here(NamedTuple):
    """A task that is here already: what an export would say of it, and its dependencies.

    Attributes:
        fingerprint: Of the issue as it last came in.
        brought: Dependencies that an earlier import brought.
        implied: The one among them that only the id tells.
    """

    line: str
    fingerprint: str | None
    updated_at: int
    created_at: int
    edges: frozenset[IssueEdge]
    brought: frozenset[IssueEdge]
    implied: IssueEdge | None


class _BeadsImport:
    """Compare a tracker with the tasks that are here, then put what is new."""

    def __init__(self, memory: Memory, records: dict[str, Record], report: BeadsReport) -> None:
        self._memory = memory
        self._report = report
        self._records = records
        self._lines = {key: render(record) for key, record in self._records.items()}
        self._here = {}
        for task, record in _write_issues(memory.tasks.export()):
            implied = _implied_by(task)
            brought = {edge for _, edge, is_apart in _originals(task) if edge and not is_apart}
            self._here[key_of(task.short_id)] = _Here(
                line=render(record),
                fingerprint=mapping_in(task.metadata.get(KEY)).get("seen"),
                updated_at=task.updated_at,
                created_at=task.created_at,
                edges=frozenset(map(_edge_here, task.dependencies)),
                brought=frozenset(brought | {implied} if implied else brought),
                implied=implied,
            )
        self._tasks = {key: take(record) for key, record in self._records.items()}
        self._same = set()
        self._newer_here = set()
        for key in self._tasks.keys() & self._here.keys():
            here, task_there = self._here[key], self._tasks[key]
            if task_there.created_at is None:
                # An issue without any time got that of its first import, and keeps it.
                task_there = self._tasks[key] = replace(
                    task_there, created_at=here.created_at, updated_at=here.updated_at
                )
            if here.line == self._lines[key]:
                self._same.add(key)
            elif here.fingerprint == _fingerprint(self._lines[key]) or (
                task_there.updated_at is not None and here.updated_at > task_there.updated_at
            ):
                self._newer_here.add(key)
        replaced = self._tasks.keys() - self._newer_here
        self._orphans = {
            key
            for key, here in self._here.items()
            if here.implied and here.implied not in here.edges
        }
        # The dependencies of the file among those that stay whatever it says.
        self._settled = settle(
            {key: record for key, record in self._records.items() if key in replaced},
            self._tasks.keys() | self._here.keys(),
            [edge for key in self._here.keys() - replaced for edge in self._here[key].edges],
            orphans=self._orphans,
        )
        self._edges: defaultdict[str, set[IssueEdge]] = defaultdict(set)
        for edge in self._settled.edges:
            self._edges[edge.task].add(edge)
        self._brought = {
            edge for key in replaced & self._here.keys() for edge in self._here[key].brought
        }
        self._gone = self._brought - self._settled.edges
        """Dependencies that an earlier import brought, and the file no longer tells."""

    def run(self, progress: Progress | None) -> None:
        report, settled = self._report, self._settled
        # An issue that is here needs nothing if all that others say of its dependencies is.
        settled_here = {
            key
            for key in self._same
            if self._edges[key] <= self._here[key].edges
            and self._gone.isdisjoint(self._here[key].edges)
        }
        fresh = [key for key in self._tasks if key not in self._newer_here | settled_here]
        done = self._memory.tasks.put_many(self._new_tasks(fresh, progress))
        report.added, report.changed = done.added, done.changed
        report.newer_here = len(self._newer_here) + done.newer_here
        report.unchanged = len(self._tasks) - len(self._newer_here) - len(fresh) + done.unchanged
        report.refused = (*done.refused, *self._connect(set(fresh)))
        report.implied_parents = len(settled.implied)
        report.dependencies = len(settled.edges)
        for key, record in self._records.items():
            report.tombstones += record.get("status") == "tombstone"
            report.folded.update(sections_of(record))
            report.kept_in_metadata.update(self._without_counterpart(key))

    def _new_tasks(self, keys: list[str], progress: Progress | None) -> Iterator[NewTask]:
        settled = self._settled
        for number, key in enumerate(keys, 1):
            task = with_residue(self._records[key], self._tasks[key])
            residue = {
                **task.metadata.get(KEY, {}),
                **given(
                    seen=_fingerprint(self._lines[key]),
                    apart=sorted(settled.apart.get(key, ())),
                    implied=key in settled.implied or key in self._orphans,
                ),
            }
            here = self._here.get(key)
            others = here.edges - here.brought - self._gone if here else frozenset()
            yield replace(
                task,
                metadata={**task.metadata, KEY: residue},
                depends_on=[
                    (edge.depends_on, edge.type) for edge in sorted(self._edges[key] | others)
                ],
            )
            if progress:
                progress(number, len(keys))

    def _connect(self, put: set[str]) -> Iterator[TaskRefusal]:
        """Dependencies that an issue tells, or no longer tells, of a task which itself was not
        put.
        """
        for edge in sorted(self._gone):
            if edge.task not in put and edge in self._here[edge.task].edges:
                self._memory.tasks.undepend(edge.task, edge.depends_on, type=edge.type)
        # What was told before and is not here was removed here.
        for edge in sorted(self._settled.edges - self._brought):
            if edge.task not in put and edge not in self._here[edge.task].edges:
                try:
                    self._memory.tasks.depend(edge.task, edge.depends_on, type=edge.type)
                except ConflictError as error:
                    yield TaskRefusal(edge.task, f"{edge.type} {edge.depends_on}", str(error))

    def _without_counterpart(self, key: str) -> Iterator[str]:
        """Name what of an issue has no counterpart here, for the report."""
        record, task, apart = self._records[key], self._tasks[key], self._settled.apart.get(key, {})
        for name, ours in (
            ("status", task.status),
            ("issue_type", task.type),
            ("priority", task.priority),
        ):
            if name in record and record[name] != ours:
                yield f"{name} {record[name]} → {ours}"
        if len(" ".join(text_in(record.get("title")).split())) > MAX_TITLE_LENGTH:
            yield f"title of more than {MAX_TITLE_LENGTH} characters"
        expected = {*COUNTERPARTS, *sections_of(record), *_SAYS_NOTHING}
        yield from (f"field {name}" for name in record if name not in expected)
        for position, dependency in enumerate(list_in(record.get("dependencies"))):
            name = text_in(mapping_in(dependency).get("type")) or "blocks"
            counterpart, why = DEPENDENCY_TYPES.get(name, (None, False))[0], apart.get(position)
            if counterpart is None:
                yield f"dependency {name} {NO_COUNTERPART}"
            elif why:
                yield f"dependency {why}"
            elif name != counterpart:
                yield f"dependency {name} → {counterpart}"


def _fingerprint(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]
