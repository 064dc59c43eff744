"""Tasks as a tracker of beads: each as it came, with what was changed here since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO

from smara.adapters.beads.edges import Edge, edge_of, implied_parent, keyed
from smara.adapters.beads.mapping import issue_of, rfc3339
from smara.adapters.beads.models import KEY, Record, in_order
from smara.adapters.beads.others import other_records
from smara.adapters.decoding import list_in, mapping_in, without_surrogates
from smara.core.shortids import key_of
from smara.memory import Memory
from smara.tasks.models import Dependency, Task

# As Go writes JSON, which beads does: a tracker then differs only where something was changed.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Written(NamedTuple):
    """A task and the issue that an export makes of it."""

    task: Task
    record: dict[str, Any]


def export_beads(memory: Memory, file: TextIO) -> int:
    """Write every task of the project as an issue of beads, one JSON object a line; how many there
    were.

    Issues are in the order of their ids, and records that are no issues come last. A task
    that came from beads and was not changed here is written as it came.
    """
    written = sorted(write_issues(memory.tasks.export()), key=lambda each: each.task.short_id)
    for record in (*(each.record for each in written), *other_records(memory)):
        file.write(render(record) + "\n")
    return len(written)


def render(record: Record) -> str:
    """A record as one line, without the newline; the same record always gives the same line."""
    text = json.dumps(
        without_surrogates(in_order(record)), ensure_ascii=False, separators=(",", ":")
    )
    return text.translate(_ESCAPES)


def write_issues(tasks: Iterable[Task]) -> list[Written]:
    """The issues of all tasks of a project; dependencies are told as they came where they still
    stand.
    """
    whole = list(tasks)  # at once, since one issue may tell a dependency of another
    standing = {edge for task in whole for edge in edges_of(task)}
    told = {edge for task in whole for edge in (implied_by(task, is_alone=True), *_given(task))}
    before, now = _Tally(), _Tally()
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
        _count_again(each.record, before, now)
    return written


def edges_of(task: Task) -> Iterator[Edge]:
    """The dependencies of a task, by keys."""
    yield from map(edge_here, task.dependencies)


def edge_here(dependency: Dependency) -> Edge:
    """A dependency of ours, by keys."""
    return Edge(key_of(dependency.task), key_of(dependency.depends_on), dependency.type)


def told_by(task: Task) -> Iterator[Edge]:
    """The dependencies, of this task or of others, that came with its issue."""
    yield from (edge for _, edge, is_apart in _originals(task) if edge and not is_apart)
    if edge := implied_by(task):
        yield edge


def implied_by(task: Task, is_alone: bool = False) -> Edge | None:
    """The parent that an import took from the task's id; ``is_alone`` when the task has no other.

    Beside another parent it must be told, or the next import would take it for gone.
    """
    if not mapping_in(task.metadata.get(KEY)).get("implied"):
        return None
    parents = [edge for edge in edges_of(task) if edge.type == "parent-child"]
    edge = Edge(key_of(task.short_id), implied_parent(key_of(task.short_id)) or "", "parent-child")
    return edge if not is_alone or parents == [edge] else None


def _given(task: Task) -> Iterator[Edge | None]:
    return (edge for _, edge, _ in _originals(task))


def _originals(task: Task) -> list[tuple[Any, Edge | None, bool]]:
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


class _Tally:
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


def _count_again(record: dict[str, Any], before: _Tally, now: _Tally) -> None:
    """Bring counts that the issue came with up to date, by what has changed here."""
    for name, old, new in (
        ("dependency_count", before.needs, now.needs),
        ("dependent_count", before.needed, now.needed),
    ):
        if (change := new[record["id"]] - old[record["id"]]) and type(record.get(name)) is int:
            record[name] += change
