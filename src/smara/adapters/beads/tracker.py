"""Read a beads tracker: issues by id, and its other records.

Other records are notes ("memories"). Each is stored as a message of one thread, with the
record in its metadata, so that search finds it and an export restores it. The newest version
of a record counts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.lines import JsonLine, decode, mapping_in, milliseconds, read_lines
from smara.core.ids import key_of
from smara.core.scope import is_id
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.messages.models import Message, NewMessage, NewThread, plain
from smara.secrets import redact_value
from smara.tasks.models import TaskRefusal

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
class BeadsReport:
    """The result of importing a tracker.

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
    refused: tuple[TaskRefusal, ...] = ()
    redacted: int = 0
    """Secrets that were replaced before anything was stored."""


@dataclass(slots=True)
class Issue:
    """An issue of the file."""

    line: int
    record: dict[str, Any]


@dataclass(slots=True)
class Tracker:
    """The content of a tracker's file.

    ``issues`` are by key: ids that differ in case alone are one.
    """

    issues: dict[str, Issue] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)


def read_tracker(path: str | os.PathLike[str], report: BeadsReport) -> Tracker:
    """Read a whole file, plain or compressed, accounting for every line.

    Raises `NotFoundError` or `InvalidInputError` when it is no readable file, or holds lines
    and not one of them is an issue.
    """
    tracker = Tracker()
    for line in read_lines(path):
        report.lines += 1
        entry = decode(line)
        if isinstance(entry, JsonLine):
            _take(tracker, entry, report)
        else:
            detail = f" ({entry.detail})" if entry.detail else ""
            report.unreadable.append((entry.line, entry.reason + detail))
    report.issues = len(tracker.issues)
    if report.lines and not tracker.issues and not tracker.others:
        number, reason = report.unreadable[0]
        raise InvalidInputError(
            f"{report.path} holds no issue of beads (line {number}: {reason}); nothing was stored. "
            "Give the issues.jsonl of a .beads folder, or what `bd export` writes.",
            path=report.path,
        )
    return tracker


def _take(tracker: Tracker, entry: JsonLine, report: BeadsReport) -> None:
    record, secrets = redact_value(entry.value)
    if record.get("_type", "issue") != "issue":
        tracker.others.append(record)
        report.others[str(record["_type"])] += 1
    elif not is_id(record.get("id")) or not record["id"].strip():
        report.unreadable.append((entry.line, 'no issue: it has no "id"'))
        return
    elif not {"title", "status", "issue_type"} & record.keys():
        report.unreadable.append((entry.line, 'no issue: it has no "title"'))
        return
    else:
        _settle(tracker, Issue(entry.line, record), report)
    report.redacted += secrets


def _settle(tracker: Tracker, issue: Issue, report: BeadsReport) -> None:
    """Of two issues with one id the newer counts, and of equally old ones the later."""
    key = key_of(issue.record["id"])
    known = tracker.issues.get(key)
    if known is None:
        tracker.issues[key] = issue
        return
    is_newer = _age(issue.record) >= _age(known.record)
    older, newer = (known, issue) if is_newer else (issue, known)
    tracker.issues[key] = newer
    what = "the same as" if older.record == newer.record else "older than"
    report.repeated.append((older.line, f"{older.record['id']} is {what} in line {newer.line}"))


def _age(record: dict[str, Any]) -> int:
    return milliseconds(record.get("updated_at")) or 0


THREAD = NewThread("beads", title="Notes kept in beads", metadata={"host": "beads"})


def keep_others(memory: Memory, records: Iterable[Record]) -> None:
    """Store records of unknown types as they are; safe to repeat."""
    newest, versions = _newest(memory)
    messages = []
    for record in records:
        name = _name(record)
        if newest.get(name) == record:
            continue
        newest[name] = record
        versions[name] = versions.get(name, 0) + 1
        client_id = f"{name}#{versions[name]}"
        messages.append(
            NewMessage(
                "system", _words(record), client_id, metadata={"kind": "note", KEY: dict(record)}
            )
        )
    if messages:
        memory.messages.append_batch(THREAD, messages, may_differ=True, compact=False)


def other_records(memory: Memory) -> list[Record]:
    """Return the stored records, newest form each, by type and name."""
    newest, _ = _newest(memory)
    return [newest[name] for name in sorted(newest)]


def _newest(memory: Memory) -> tuple[dict[str, Record], dict[str, int]]:
    newest: dict[str, Record] = {}
    versions: dict[str, int] = {}
    if memory.threads.find(THREAD.id) is None:
        return newest, versions
    for message in memory.messages.stream(thread_id=THREAD.id):
        if record := _record(message):
            name = _name(record)
            newest[name] = record
            versions[name] = versions.get(name, 0) + 1
    return newest, versions


def _record(message: Message) -> dict[str, Any]:
    return dict(mapping_in(message.metadata.get(KEY)))


def _name(record: Record) -> str:
    """What makes two records one: their type and key."""
    named = record.get("key", record.get("id", record.get("name")))
    return f"{record.get('_type')}:{plain(named if named is not None else dict(record))}"[:400]


def _words(record: Record) -> str:
    key, value = record.get("key"), record.get("value")
    if isinstance(value, str) and value.strip():
        return f"{key}\n\n{value}" if isinstance(key, str) else value
    return plain(dict(record))
