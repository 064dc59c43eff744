"""What of an issue has no counterpart here, in words; it is kept in the task's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smara.adapters.beads.edges import TYPES
from smara.adapters.beads.mapping import COUNTERPARTS
from smara.adapters.beads.models import BeadsImported, Record
from smara.adapters.beads.sections import sections_of
from smara.adapters.beads.settling import NO_COUNTERPART
from smara.adapters.decoding import list_in, mapping_in, text_in
from smara.tasks.models import MAX_TITLE_LENGTH, NewTask

_SAYS_NOTHING = ("_type", "content_hash", "dependency_count", "dependent_count", "comment_count")
"""Fields that repeat what the others say."""


def account(report: BeadsImported, record: Record, task: NewTask, apart: Mapping[int, str]) -> None:
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
        ours, why = TYPES.get(name, (None, False))[0], apart.get(position)
        if ours is None:
            yield f"dependency {name} {NO_COUNTERPART}"
        elif why:
            yield f"dependency {why}"
        elif name != ours:
            yield f"dependency {name} → {ours}"
