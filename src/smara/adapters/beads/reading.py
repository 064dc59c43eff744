"""The lines of a tracker: issues by id, other records, and what could not be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.beads.models import BeadsImported
from smara.adapters.decoding import Entry, decode, milliseconds
from smara.adapters.reading import read_lines
from smara.core.scope import is_id
from smara.core.shortids import key_of
from smara.errors import InvalidInputError
from smara.secrets import redact_value


@dataclass(slots=True)
class Issue:
    """An issue of the file."""

    line: int
    record: dict[str, Any]


@dataclass(slots=True)
class Tracker:
    """All that a file holds. ``issues`` are by key: ids that differ in case alone are one."""

    issues: dict[str, Issue] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)


def read_tracker(path: str | os.PathLike[str], report: BeadsImported) -> Tracker:
    """Read a whole file, plain or compressed; the report accounts for every line.

    Raises `NotFoundError` or `InvalidInputError` when it is no readable file, or holds lines
    and not one of them is an issue.
    """
    tracker = Tracker()
    for line in read_lines(path):
        report.lines += 1
        entry = decode(line)
        if isinstance(entry, Entry):
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


def _take(tracker: Tracker, entry: Entry, report: BeadsImported) -> None:
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


def _settle(tracker: Tracker, issue: Issue, report: BeadsImported) -> None:
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
