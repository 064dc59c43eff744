"""Describe every table of the store once.

One frozen `TableSpec` says how rows are exported, imported and erased; `TABLES` is in the order of
import, so that a row comes after those it names. `tests/unit/privacy` compares the list with the
schema of both databases: a table that a migration adds is not forgotten by an erase.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Holds = Literal["records", "copies", "machine"]
"""``records`` are exported; ``copies`` are made again from records (indexes, vectors, the graph of
the code); ``machine`` is about this store and machine alone (leases, places, queues).
"""
_OWNERS: Mapping[str, str] = MappingProxyType({"memory": "memories", "observation": "observations"})
_COMPACT = frozenset({"threads", "messages", "tasks", "memories"})
JSON_COLUMNS = frozenset(
    {
        "metadata", "parts", "before", "after", "tags", "files", "modules", "session_ids",
        "evidence", "work_unit", "data", "review_reasons", "details", "lines",
        "mode_specific", "extracted", "warnings", "signs", "functions", "renames",
        "task_type_breakdown", "sessions", "schema",
    }
)  # fmt: skip
"""Columns of text that hold JSON, in every table that has them."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """Describes one table: content, keys, references, owners."""

    name: str
    label: str
    """What its rows are called, for people: ``messages``."""
    holds: Holds = "records"
    key: tuple[str, ...] = ("id",)
    """The columns that tell its rows apart within a project."""
    refs: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    """The columns that hold the number of a row in another table. One that depends on the column
    ``owner`` has a table for each of its values.
    """
    owner: str | None = None
    """The column of ``refs`` whose row it belongs to: it is selected and erased with it."""
    times: tuple[str, ...] = ()
    """The column of the time it is of, or of its first and last."""
    people: tuple[str, ...] = ()
    """The columns that name whose it is; a row with an owner is its owner's."""
    session: str | None = None
    """The column that names the session it is of."""
    omitted: tuple[str, ...] = ()
    """Columns that are counted again at import."""
    only: str = ""
    """The condition for rows that are records; the others are work in progress."""

    def json_text(self, value: Any) -> str:
        """Return a value as this table stores JSON."""
        return json.dumps(value, separators=(",", ":") if self.name in _COMPACT else None)


def _copies(*names: str) -> tuple[TableSpec, ...]:
    return tuple(TableSpec(name, name.replace("_", " "), "copies", key=()) for name in names)


def _machine(*names: str) -> tuple[TableSpec, ...]:
    return tuple(TableSpec(name, name.replace("_", " "), "machine", key=()) for name in names)


_THREAD = {"thread_no": "threads"}
_TASK = {"task_no": "tasks"}
_MEMORY = {"memory_no": "memories"}
_RECORD = {"record_no": "observation_records"}
_SPAN = ("created_at", "updated_at")

TABLES: tuple[TableSpec, ...] = (
    TableSpec("projects", "projects", "machine"),
    TableSpec(
        "threads", "threads", times=_SPAN, people=("resource_id",), session="id",
        omitted=("last_seq", "tokens", "index_rows", "index_terms"),
    ),
    TableSpec("messages", "messages", refs=_THREAD, owner="thread_no", times=("created_at",)),
    TableSpec(
        "compactions", "compactions", refs={**_THREAD, "parent_no": "compactions"},
        owner="thread_no",
    ),
    TableSpec("tasks", "tasks", times=_SPAN, people=("created_by", "assignee")),
    TableSpec(
        "task_dependencies", "dependencies of tasks", key=("task_no", "type", "depends_on_no"),
        refs={**_TASK, "depends_on_no": "tasks"}, owner="task_no",
    ),
    TableSpec("task_labels", "labels of tasks", key=("task_no", "label"), refs=_TASK,
              owner="task_no"),
    TableSpec("task_events", "changes of tasks", refs={**_TASK, "undone_by": "task_events"},
          owner="task_no"),
    TableSpec(
        "task_messages", "links of tasks to messages", key=("task_no", "message_no"),
        refs={**_TASK, "message_no": "messages"}, owner="task_no",
    ),
    TableSpec("working_memory", "pages of working memory", times=_SPAN, people=("resource_id",)),
    TableSpec(
        "working_memory_versions", "versions of pages", key=("memory_no", "version"),
        refs={"memory_no": "working_memory"}, owner="memory_no",
    ),
    TableSpec("model_calls", "calls of models", times=("started_at",)),
    TableSpec("observation_records", "records of observation", refs=_THREAD, times=_SPAN,
          people=("resource_id",)),
    TableSpec("observation_batches", "batches of observations", refs={**_RECORD, **_THREAD},
          owner="record_no"),
    TableSpec(
        "observation_cursors", "positions of the observer", key=("record_no", "thread_no"),
        refs={**_RECORD, **_THREAD}, owner="record_no",
    ),
    TableSpec(
        "observations", "observations",
        refs={**_RECORD, **_THREAD, "batch_no": "observation_batches"}, owner="record_no",
        times=("created_at",), only="NOT (t.kind = 'reflection' AND t.state = 'buffered')",
    ),
    TableSpec(
        "memories", "memories", refs={"replaced_by_no": "memories"}, times=_SPAN,
        people=("created_by",), session="session_id",
    ),
    TableSpec("memory_events", "changes of memories",
              refs={**_MEMORY, "undone_by": "memory_events"}, owner="memory_no"),
    TableSpec("memory_keys", "keys of memories", key=("kind", "value", "memory_no"), refs=_MEMORY,
          owner="memory_no"),
    TableSpec(
        "memory_relations", "relations of memories", key=("memory_no", "target_no", "path", "type"),
        refs={**_MEMORY, "target_no": "memories"}, owner="memory_no",
    ),
    TableSpec("memory_sessions", "sessions that count for trust", key=("session_id",),
          times=("first_at",), session="session_id"),
    TableSpec("memory_state", "the state of trust", key=(),
          omitted=("total", "active", "to_review")),
    TableSpec("memory_tombstones", "names of deleted memories", times=("deleted_at",)),
    TableSpec("memory_trust_events", "changes of trust", key=("at", "actor", "to_level"),
          times=("at",), people=("actor",)),
    TableSpec("code_anchors", "places of memories in the code",
          key=("owner", "owner_no", "path", "symbol", "first_line", "anchored_at"),
          refs={"owner_no": _OWNERS}, owner="owner_no"),
    TableSpec("code_anchored", "records looked up in the code", key=("owner", "owner_no"),
          refs={"owner_no": _OWNERS}, owner="owner_no"),
    TableSpec("behavior_sessions", "watched sessions", key=("session_id",),
          times=("started_at", "last_event_at"), session="session_id"),
    TableSpec("behavior_signals", "signals", key=("kind", "key"), times=("first_at", "last_at")),
    TableSpec(
        "behavior_findings", "findings of signals", key=("signal_no", "session_no"),
        refs={"session_no": "behavior_sessions", "signal_no": "behavior_signals"},
        owner="session_no",
    ),
    TableSpec("behavior_pads", "scratchpads", key=("session_no", "part", "number"),
          refs={"session_no": "behavior_sessions"}, owner="session_no"),
    TableSpec("observer_calibrations", "plans and steps by module", key=("module", "methodology"),
          times=("last_at",)),
    TableSpec("observer_co_access_edges", "files used together", key=("file_a", "file_b"),
          times=("last_observed_at",)),
    TableSpec("observer_error_patterns", "errors and what mended them", key=("error_fingerprint",),
          times=("first_seen_at", "last_seen_at")),
    TableSpec("observer_file_nodes", "uses of files", key=("file_path",),
              times=("last_accessed_at",)),
    TableSpec("observer_module_files", "uses of files by module", key=("module", "file_path"),
          times=("last_at",)),
    TableSpec("observer_module_session_counts", "sessions by module", key=("module",),
          times=("last_at",)),
    TableSpec("observer_synthesis_log", "runs of the synthesis", key=("module", "trigger_count"),
          times=("synthesized_at",)),
    TableSpec("moment_sessions", "sessions that were told something", key=("session_id",),
          times=("started_at", "last_at"), session="session_id"),
    TableSpec("moment_state", "the state of experiments", key=()),
    TableSpec("moment_receipts", "receipts", times=("made_at",), session="session_id"),
    TableSpec("moment_items", "statements of receipts", key=("receipt_no", "position"),
          refs={"receipt_no": "moment_receipts"}, owner="receipt_no"),
    TableSpec("commits", "commits", key=("sha",), times=("at",)),
    TableSpec("commit_files", "files of commits", key=("path", "commit_no"),
          refs={"commit_no": "commits"}, owner="commit_no"),
    TableSpec("commit_state", "the state of the history", key=()),
    TableSpec("decisions", "places of decisions", key=("memory_no",),
          refs={"memory_no": "memories", "thread_no": "threads"}, owner="memory_no"),
    TableSpec("decision_cursors", "the reading of decisions", key=("thread_no",),
          refs={"thread_no": "threads"}, owner="thread_no"),
    *_copies(
        "task_totals", "buffered_reflections", "code_trees", "code_files", "code_nodes",
        "code_facts", "code_chunks", "code_churn", "code_cochange", "code_modules", "code_numbers",
        "message_index", "record_index", "code_index", "index_state", "words", "word_trigrams",
        "vector_spaces", "vector_fills", "vector_walks", "vector_shelves", "vectors",
        "vector_blocks", "embedding_queue", "embedding_failures", "embedding_cache", "line_notes",
    ),
    *_machine(
        "migrations", "leases", "model_switch", "project_places", "project_notes", "sessions",
        "observation_failures", "behavior_jobs", "intake_events", "intake_hosts", "intake_jobs",
        "erasures", "tombstones", "copies",
    ),
)  # fmt: skip
RECORDS: tuple[TableSpec, ...] = tuple(table for table in TABLES if table.holds == "records")
BY_NAME: Mapping[str, TableSpec] = MappingProxyType({table.name: table for table in TABLES})
