"""What beads writes, and what an import of it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smara.tasks.models import Refused

Record = Mapping[str, Any]
"""One line of a tracker: an issue, or something else that beads keeps."""

KEY = "beads"
"""Where a task's metadata holds what has no place of its own here."""

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


def in_order(record: Record) -> dict[str, Any]:
    """The record with its fields in the order of beads."""
    return {
        name: record[name]
        for name in sorted(record, key=lambda name: (_PLACES.get(name, len(FIELDS)), name))
    }


@dataclass(slots=True)
class BeadsImported:
    """What became of a tracker.

    ``lines`` equals issues + others + repeated + unreadable, and ``issues`` equals added +
    changed + unchanged + newer_here.
    """

    path: str
    lines: int = 0
    issues: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    newer_here: int = 0
    """Issues left as they are, because the task was changed here after the file was written."""
    dependencies: int = 0
    """Dependencies of the file that stand between tasks now, implied parents among them."""
    implied_parents: int = 0
    """Children known as such by their ids alone: ``bd-1.2`` is one of ``bd-1``."""
    tombstones: int = 0
    others: Counter[str] = field(default_factory=Counter)
    """Records that are no issues, by type; kept as messages of the thread ``beads``."""
    folded: Counter[str] = field(default_factory=Counter)
    """Fields that became sections of the description."""
    kept_in_metadata: Counter[str] = field(default_factory=Counter)
    """What has no counterpart here, by kind; it goes out again as it was."""
    repeated: list[tuple[int, str]] = field(default_factory=list)
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    refused: tuple[Refused, ...] = ()
    redacted: int = 0
    """Secrets that were replaced before anything was stored."""
