"""Describe every table of the store once.

One frozen `TableSpec` says how rows are exported, imported and erased, and how long they are kept;
`TABLES` is in the order of import, so that a row comes after those it names. `tests/unit/privacy`
compares the list with the schema of both databases: a table that a migration adds is not forgotten
by an erase, nor does it grow for ever unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from smara.core.startup.record import dataclass, field

Holds = Literal["records", "copies", "machine"]
"""``records`` are exported; ``copies`` are made again from records (indexes, vectors, the graph of
the code); ``machine`` is about this store and machine alone (leases, places, queues).
"""
_OWNERS: Mapping[str, str] = MappingProxyType({"memory": "memories", "observation": "observations"})
_COMPACT = frozenset(
    {
        "threads", "messages", "tasks", "memories",
        "framework_streams", "framework_entries", "framework_items", "framework_states",
    }
)  # fmt: skip
JSON_COLUMNS = frozenset(
    {
        "metadata", "parts", "before", "after", "tags", "files", "modules", "session_ids",
        "evidence", "work_unit", "data", "review_reasons", "details", "lines",
        "mode_specific", "extracted", "warnings", "signs", "functions", "renames",
        "task_type_breakdown", "sessions", "schema", "entry", "item",
        "searched_fields",
    }
)  # fmt: skip
"""Columns of text that hold JSON, in every table that has them."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Describes how long rows are kept, or what bounds them."""

    kind: str = ""
    """The kind that settings name; several tables may be of one kind."""
    at: str = ""
    """The column of their age."""
    days: int = 0
    """Older rows go, unless the settings say otherwise; 0 keeps them for ever."""
    mib: int = 0
    """Beyond so much text the oldest rows go, likewise."""
    where: str = "1 = 1"
    """The rows of this kind, by a condition on ``t``."""
    unless: str = "1 = 0"
    """Those that stay whatever the rule says, because something else rests on them."""
    is_walked: bool = False
    """True if what was made from a row goes with it, as in an erase."""
    weight: str = "1"
    """How many rows one row counts for."""
    counted: str = ""
    """The table of the rows that it counts for; by default its own."""
    least_days: int = 0
    """Younger rows never go: that would break something."""
    why: str = ""
    """What bounds rows without a rule, or why a shorter time is refused."""


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
    changed: str | None = None
    """The column of its last change: of two versions of a row, the later is taken."""
    session: str | None = None
    """The column that names the session it is of."""
    omitted: tuple[str, ...] = ()
    """Columns that are counted again at import."""
    only: str = ""
    """The condition for rows that are records; the others are work in progress."""
    keep: Keep | None = None
    """How long its rows are kept. Copies, and rows with an owner, may do without: they go with the
    record they belong to.
    """

    def json_text(self, value: Any) -> str:
        """Return a value as this table stores JSON."""
        return json.dumps(value, separators=(",", ":") if self.name in _COMPACT else None)


def _copies(*names: str) -> tuple[TableSpec, ...]:
    return tuple(TableSpec(name, name.replace("_", " "), "copies", key=()) for name in names)


def _machine(why: str, *names: str) -> tuple[TableSpec, ...]:
    return tuple(
        TableSpec(name, name.replace("_", " "), "machine", key=(), keep=Keep(why=why))
        for name in names
    )


def _live(kind: str, value: str, among: str = "", where: str = "1 = 1") -> str:
    """Return a condition: a memory in force rests on what has this value.

    Args:
        kind: The kind of key that the memory has for it.
        value: What the key holds, ``t.id``.
        among: Other rows to look at, ``messages g``; before the keys, which are many more.
        where: Which of those rows.
    """
    return (
        f"EXISTS (SELECT 1 FROM {among + ' CROSS JOIN ' if among else ''}memory_keys k"
        f" CROSS JOIN memories m WHERE {where} AND k.project_no = t.project_no"
        f" AND k.kind = '{kind}' AND k.value = {value} AND m.no = k.memory_no"
        " AND +m.project_no = t.project_no AND m.deprecated_at IS NULL)"
    )


_OF_THREAD = "x.thread_no = t.no AND +x.project_no = t.project_no"
_HELD_THREADS = " OR ".join(
    (
        _live("session", "t.id"),
        _live("message", "x.id", "messages x", _OF_THREAD),
        _live("observation", "x.id", "observations x", _OF_THREAD),
        "EXISTS (SELECT 1 FROM messages g JOIN task_messages x ON x.message_no = g.no"
        " JOIN tasks y ON y.no = x.task_no AND y.status <> 'closed' WHERE g.thread_no = t.no"
        " AND +g.project_no = t.project_no)",
        "EXISTS (SELECT 1 FROM threads c WHERE c.project_no = t.project_no"
        " AND c.parent_id = t.id AND +c.updated_at > t.updated_at)",
    )
)
"""Conversations that a memory in force, an unfinished task or a younger subagent rests on."""
_HELD_OUTPUTS = (
    _live("message", "t.id")
    + " OR EXISTS (SELECT 1 FROM task_messages x WHERE x.message_no = t.no)"
)
_HELD_TASKS = (
    "EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks o ON o.no IN (d.task_no, d.depends_on_no)"
    " WHERE (d.task_no = t.no OR d.depends_on_no = t.no) AND o.status <> 'closed')"
)
_HELD_MEMORIES = (
    "EXISTS (SELECT 1 FROM memory_relations r JOIN memories m ON m.no = r.memory_no"
    " AND +m.project_no = t.project_no WHERE r.target_no = t.no AND r.type = 'derived_from'"
    " AND m.deprecated_at IS NULL)"
)
_HELD_SESSIONS = (
    "EXISTS (SELECT 1 FROM behavior_findings f JOIN memories m ON m.id = f.memory_id"
    " AND m.project_no = f.project_no WHERE f.session_no = t.no AND m.deprecated_at IS NULL)"
)
_FEW = Keep(why="one row for each project")
_OF_FILES = Keep(why="one row for each file, pair of files or module")
_OF_HISTORY = Keep(why="the history of the repository")


_THREAD = {"thread_no": "threads"}
_TASK = {"task_no": "tasks"}
_MEMORY = {"memory_no": "memories"}
_RECORD = {"record_no": "observation_records"}
_SPAN = ("created_at", "updated_at")

TABLES: tuple[TableSpec, ...] = (
    TableSpec("projects", "projects", "machine",
        keep=Keep(why="the projects themselves")),
    TableSpec(
        "threads", "threads", times=_SPAN, people=("resource_id",), session="id",
        omitted=("last_seq", "tokens", "index_rows", "index_terms"),
        keep=Keep("messages", "updated_at", unless=_HELD_THREADS, is_walked=True,
                  weight="t.last_seq", counted="messages", least_days=1,
                  why="a conversation may still go on"), changed="updated_at",
    ),
    TableSpec("messages", "messages", refs=_THREAD, owner="thread_no", times=("created_at",),
        keep=Keep("tool_outputs", "created_at",
                  where="t.role = 'tool' AND t.raw_content <> '[erased]'", unless=_HELD_OUTPUTS,
                  least_days=1, why="it may not be observed yet")),
    TableSpec(
        "compactions", "compactions", refs={**_THREAD, "parent_no": "compactions"},
        owner="thread_no",
    ),
    TableSpec("tasks", "tasks", times=_SPAN, people=("created_by", "assignee"),
        keep=Keep("closed_tasks", "closed_at", where="t.status = 'closed'", unless=_HELD_TASKS,
                  is_walked=True), changed="updated_at"),
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
    TableSpec("working_memory", "pages of working memory", times=_SPAN, people=("resource_id",),
        keep=Keep(why="one page for each person and thread"), changed="updated_at"),
    TableSpec(
        "working_memory_versions", "versions of pages", key=("memory_no", "version"),
        refs={"memory_no": "working_memory"}, owner="memory_no",
        keep=Keep("page_versions", "created_at", days=365, mib=64,
                  where="t.version < (SELECT w.version FROM working_memory w"
                  " WHERE w.no = t.memory_no)"),
    ),
    TableSpec("model_calls", "calls of models", times=("started_at",),
        keep=Keep("model_calls", "started_at", days=365, least_days=2,
                  why="budgets count the calls of a day")),
    TableSpec("observation_records", "records of observation", refs=_THREAD, times=_SPAN,
          people=("resource_id",),
        keep=Keep(why="one for each thread or person"), changed="updated_at"),
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
        keep=Keep("condensed_observations", "created_at", where="t.state = 'reflected'",
                  unless=_live("observation", "t.id")),
    ),
    TableSpec(
        "memories", "memories", refs={"replaced_by_no": "memories"}, times=_SPAN,
        people=("created_by",), session="session_id",
        keep=Keep("retired_memories", "deprecated_at", where="t.deprecated_at IS NOT NULL",
                  unless=_HELD_MEMORIES, is_walked=True), changed="updated_at",
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
          times=("first_at",), session="session_id",
        keep=Keep(why="one short row for each session; trust counts them")),
    TableSpec("memory_state", "the state of trust", key=(),
          omitted=("total", "active", "to_review"), keep=_FEW, changed="level_since",
        # The row is made when the first memory is looked for; until then it says nothing.
        only="NOT (t.trust_level = 1 AND t.level_since = 0 AND t.pruned_at = 0)"),
    TableSpec("memory_tombstones", "names of deleted memories", times=("deleted_at",),
        keep=Keep(why="without them a memory would be learned again")),
    TableSpec("memory_trust_events", "changes of trust", key=("at", "actor", "to_level"),
          times=("at",), people=("actor",),
        keep=Keep(why="a few for each project")),
    TableSpec("code_anchors", "places of memories in the code",
          key=("owner", "owner_no", "path", "symbol", "first_line", "anchored_at"),
          refs={"owner_no": _OWNERS}, owner="owner_no"),
    TableSpec("code_anchored", "records looked up in the code", key=("owner", "owner_no"),
          refs={"owner_no": _OWNERS}, owner="owner_no"),
    TableSpec("behavior_sessions", "watched sessions", key=("session_id",),
          times=("started_at", "last_event_at"), session="session_id",
        keep=Keep("sessions", "last_event_at", days=730, where="t.state = 'final'",
                  unless=_HELD_SESSIONS), changed="last_event_at"),
    TableSpec("behavior_signals", "signals", key=("kind", "key"), times=("first_at", "last_at"),
        keep=Keep(why="they go with the last session that showed them"), changed="last_at"),
    TableSpec(
        "behavior_findings", "findings of signals", key=("signal_no", "session_no"),
        refs={"session_no": "behavior_sessions", "signal_no": "behavior_signals"},
        owner="session_no",
    ),
    TableSpec("behavior_pads", "scratchpads", key=("session_no", "part", "number"),
          refs={"session_no": "behavior_sessions"}, owner="session_no"),
    TableSpec("observer_calibrations", "plans and steps by module", key=("module", "methodology"),
          times=("last_at",), keep=_OF_FILES, changed="last_at"),
    TableSpec("observer_co_access_edges", "files used together", key=("file_a", "file_b"),
          times=("last_observed_at",), keep=_OF_FILES, changed="last_observed_at"),
    TableSpec("observer_error_patterns", "errors and what mended them", key=("error_fingerprint",),
          times=("first_seen_at", "last_seen_at"),
        keep=Keep("errors", "last_seen_at", days=730), changed="last_seen_at"),
    TableSpec("observer_file_nodes", "uses of files", key=("file_path",),
              times=("last_accessed_at",), keep=_OF_FILES, changed="last_accessed_at"),
    TableSpec("observer_module_files", "uses of files by module", key=("module", "file_path"),
          times=("last_at",), keep=_OF_FILES, changed="last_at"),
    TableSpec("observer_module_session_counts", "sessions by module", key=("module",),
          times=("last_at",), keep=_OF_FILES, changed="last_at"),
    TableSpec("observer_synthesis_log", "runs of the synthesis", key=("module", "trigger_count"),
          times=("synthesized_at",), keep=_OF_FILES),
    TableSpec("moment_sessions", "sessions that were told something", key=("session_id",),
          times=("started_at", "last_at"), session="session_id",
        keep=Keep("receipts", "last_at", days=180), changed="last_at"),
    TableSpec("moment_state", "the state of experiments", key=(), keep=_FEW, changed="changed_at"),
    TableSpec("moment_receipts", "receipts", times=("made_at",), session="session_id",
        keep=Keep("receipts", "made_at", days=180)),
    TableSpec("moment_items", "statements of receipts", key=("receipt_no", "position"),
          refs={"receipt_no": "moment_receipts"}, owner="receipt_no"),
    TableSpec("framework_streams", "sessions of frameworks", refs=_THREAD, owner="thread_no",
          times=_SPAN, changed="updated_at"),
    TableSpec("framework_entries", "entries of frameworks",
          refs={"stream_no": "framework_streams", "message_no": "messages"}, owner="stream_no",
          times=("created_at",)),
    TableSpec("framework_states", "states of runs", refs=_THREAD, owner="thread_no",
          times=("created_at",)),
    TableSpec("framework_items", "values of frameworks", times=_SPAN,
        keep=Keep(why="the framework deletes them, or gave them a time to live"),
        changed="updated_at"),
    TableSpec("commits", "commits", key=("sha",), times=("at",), keep=_OF_HISTORY),
    TableSpec("commit_files", "files of commits", key=("path", "commit_no"),
          refs={"commit_no": "commits"}, owner="commit_no"),
    TableSpec("commit_state", "the state of the history", key=(), keep=_FEW),
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
        "framework_vectors",
    ),
    TableSpec("leases", "leases", "machine", key=("name",),
              keep=Keep("leases", "heartbeat_at", days=30, where="t.owner IS NULL", least_days=1,
                        why="a lease may be asked for again")),
    TableSpec("sessions", "sessions that were seen", "machine",
              keep=Keep("sessions", "seen_at", days=730,
                        unless="EXISTS (SELECT 1 FROM tasks y WHERE y.project_no = t.project_no"
                        " AND y.session_id = t.id AND y.status = 'in_progress')")),
    TableSpec("intake_events", "keys of events", "machine", key=("stem", "at_ms"),
              keep=Keep("events", "taken_at", days=30, least_days=8,
                        why="events may wait in the spool for a week")),
    TableSpec("intake_jobs", "jobs that were given up", "machine", key=("kind", "session_id"),
              keep=Keep("events", "due_at", days=30, where="t.attempts >= 5")),
    TableSpec("request_keys", "keys of requests", "machine", key=("key",),
              keep=Keep("events", "begun_at", days=30, least_days=8)),
    TableSpec("access", "keys and sessions of servers", "machine", key=("hash",),
              keep=Keep(why="codes and sessions end by themselves, keys when they are revoked")),
    TableSpec("access_projects", "projects of keys", "machine", key=("hash",),
              keep=Keep(why="they go with their key")),
    TableSpec("jobs", "work in the background", "machine",
              keep=Keep("events", "updated_at", days=30, where="t.state <> 'running'")),
    TableSpec("erasures", "acts of erasing", "machine",
              keep=Keep("erasures", "erased_at",
                        where="t.outcome NOT IN ('removed', 'traces left')")),
    *_machine("they go with what they are about", "observation_failures"),
    *_machine("without them an import would bring it back", "tombstones"),
    *_machine(
        "a few rows for each project, host or job", "migrations", "model_switch", "project_places",
        "project_notes", "behavior_jobs", "intake_hosts", "retention_state",
        "copies",
    ),
)  # fmt: skip
RECORDS: tuple[TableSpec, ...] = tuple(table for table in TABLES if table.holds == "records")
BY_NAME: Mapping[str, TableSpec] = MappingProxyType({table.name: table for table in TABLES})
