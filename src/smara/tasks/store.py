"""Store tasks and their dependencies: SQL and row mapping, no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable
from smara.database.database import PART, Row, Session, marks, parts
from smara.database.project_store import JournalStore
from smara.tasks.models import STATUSES, Dependency, Task, TaskProgress, TaskTotals

COLUMNS = (
    "id", "short_id", "title", "description", "status", "priority", "type", "assignee",
    "session_id", "claimed_at",
    "created_at", "created_by", "updated_at", "closed_at", "close_reason", "summary",
    "compaction_level",
    "compacted_at", "original_content", "metadata",
)  # fmt: skip
_COLUMNS = ", ".join(f"t.{name}" for name in COLUMNS)
TEXTS = frozenset(("title", "description", "close_reason", "summary", "original_content"))
"""The columns whose text is escaped where a database cannot store it."""

_BLOCKERS = (
    "SELECT 1 FROM task_dependencies d JOIN tasks b ON b.no = d.depends_on_no"
    " AND b.status <> 'closed' WHERE d.task_no = t.no AND d.type = 'blocks'"
)
_CHILDREN = (
    "SELECT 1 FROM task_dependencies d JOIN tasks b ON b.no = d.task_no"
    " AND b.status <> 'closed' WHERE d.depends_on_no = t.no AND d.type = 'parent-child'"
)
WAITS = f"(EXISTS ({_BLOCKERS}) OR EXISTS ({_CHILDREN}))"
"""Whether a task waits for unfinished ones: those that block it, and its children."""
# PostgreSQL makes a join of an EXISTS without an offset. Whether it then looks each task up or
# reads the whole table depends on an estimate that differs from one ANALYZE to the next.
_LOOKUP = "LIMIT 1 OFFSET 0"
WAITS_FOR_NOTHING = f"NOT EXISTS ({_BLOCKERS} {_LOOKUP}) AND NOT EXISTS ({_CHILDREN} {_LOOKUP})"
"""The opposite, for the first few tasks of many."""


class StoredTask(NamedTuple):
    """A task and its number."""

    no: int
    task: Task


class TaskStore(JournalStore[Task, StoredTask, TaskTotals]):
    """The tables of tasks of one project."""

    TABLE, ALIAS, WHAT = "tasks t", "t", "task"
    HINT = "`smara tasks list` and the tool action `list` show what there is."
    SELECT = f"SELECT {_COLUMNS}, t.no, t.project_no FROM tasks t"
    STATE, State = "task_totals", TaskTotals
    UNDO_COMMAND = "smara tasks undo"
    UNMADE_HINT = "Close it as wontfix if it should not be there."

    # reading

    def records(
        self, session: Session, rows: Sequence[Row], has_relations: bool = True
    ) -> list[StoredTask]:
        """Return tasks with their labels and dependencies."""
        labels: dict[int, list[str]] = {int(row[-2]): [] for row in rows}
        dependencies: dict[int, list[Dependency]] = {no: [] for no in labels}
        for no, label in self.rows(
            session,
            # The plus keeps SQLite from the index by label, which begins with the project.
            "SELECT task_no, label FROM task_labels"
            " WHERE +project_no = :project AND task_no IN (:some)",
            some=list(labels),
        ):
            labels[no].append(from_storable(label))
        for no, *dependency in self.rows(
            session,
            "SELECT d.task_no, a.id, b.id, d.type, d.created_at, d.created_by, a.short_id,"
            " b.short_id FROM task_dependencies d JOIN tasks a ON a.no = d.task_no"
            " JOIN tasks b ON b.no = d.depends_on_no"
            " WHERE d.project_no = :project AND d.task_no IN (:some)"
            " ORDER BY d.created_at, b.no, d.type",
            some=list(labels),
        ):
            dependencies[no].append(Dependency(*dependency))
        return [
            StoredTask(row[-2], _task(row, labels[row[-2]], dependencies[row[-2]])) for row in rows
        ]

    # what waits for what

    def waits(
        self, session: Session, numbers: Sequence[int], *, is_awaited: bool = False
    ) -> list[tuple[int, int, str]]:
        """Return (waiter, awaited, type) where some tasks wait, or are awaited."""
        mine, other = ("depends_on_no", "task_no") if is_awaited else ("task_no", "depends_on_no")
        found: list[tuple[int, int, str]] = []
        for part in parts(numbers):
            among = f"IN ({marks(len(part))})"
            statement = (
                "SELECT task_no, depends_on_no, type FROM task_dependencies"
                f" WHERE project_no = :project AND type = 'blocks' AND {mine} {among}"
                " UNION ALL SELECT depends_on_no, task_no, type FROM task_dependencies"
                f" WHERE project_no = :project AND type = 'parent-child' AND {other} {among}"
                " ORDER BY 3, 1, 2"
            )
            found += [
                (row[0], row[1], row[2]) for row in session.all(self.sql(statement), (*part, *part))
            ]
        return found

    def all_edges(self, session: Session, is_unfinished_only: bool) -> list[tuple[int, int, str]]:
        """Return every waiting dependency: (task, dependency, type)."""
        where = " AND a.status <> 'closed' AND b.status <> 'closed'" if is_unfinished_only else ""
        rows = session.all(
            self.sql(
                "SELECT d.task_no, d.depends_on_no, d.type FROM task_dependencies d"
                " JOIN tasks a ON a.no = d.task_no JOIN tasks b ON b.no = d.depends_on_no"
                f" WHERE d.project_no = :project AND d.type <> 'related'{where}"
            )
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def progress(self, session: Session, no: int) -> TaskProgress | None:
        """Return the progress below a task, or ``None``."""
        row = session.one(
            self.sql(
                "WITH RECURSIVE below (no) AS ("
                " SELECT d.task_no FROM task_dependencies d WHERE d.depends_on_no = ? AND d.type "
                "= 'parent-child'"
                " UNION SELECT d.task_no FROM task_dependencies d JOIN below ON d.depends_on_no = "
                "below.no"
                " WHERE d.type = 'parent-child')"
                " SELECT count(*), coalesce(sum(CASE WHEN t.status = 'closed' THEN 1 ELSE 0 END), "
                "0)"
                " FROM below JOIN tasks t ON t.no = below.no WHERE t.project_no = :project"
            ),
            (no,),
        )
        return TaskProgress(int(row[1]), int(row[0])) if row and row[0] else None

    # writing

    def write_labels(
        self, session: Session, no: int, labels: Iterable[str], is_new: bool = False
    ) -> None:
        if not is_new:
            session.run(
                self.sql("DELETE FROM task_labels WHERE project_no = :project AND task_no = ?"),
                (no,),
            )
        session.run_many(
            self.sql(
                "INSERT INTO task_labels (project_no, task_no, label) VALUES (:project, ?, ?)"
            ),
            [(no, label) for label in labels],
        )

    def add_dependency(self, session: Session, values: Sequence[Any]) -> bool:
        """Insert (task, depends on, type, created at, by); whether it was new."""
        return bool(
            session.run(
                self.sql(
                    "INSERT INTO task_dependencies (project_no, task_no, depends_on_no, type, "
                    "created_at, created_by)"
                    " VALUES (:project, ?, ?, ?, ?, ?) ON CONFLICT (task_no, type, depends_on_no) "
                    "DO NOTHING"
                ),
                values,
            )
        )

    # totals

    def count(self, session: Session, numbers: Sequence[int] | None = None) -> TaskTotals:
        """Count some tasks, or all, by status and readiness."""
        columns = ", ".join(
            f"coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)"
            for condition in (
                *(f"status = '{status}'" for status in STATUSES),
                "status = 'open' AND NOT waits",
                "waits",
            )
        )
        totals = TaskTotals()
        for part in [None] if numbers is None else parts(numbers):
            where = "" if part is None else f" AND t.no IN ({marks(len(part))})"
            row = session.one(
                self.sql(
                    f"SELECT {columns} FROM (SELECT t.status AS status, t.status <> 'closed' AND"
                    f" {WAITS} AS waits FROM tasks t WHERE +t.project_no = :project{where})"
                    " AS counted"
                ),
                part or (),
            )
            totals = totals.plus(row or ())
        return totals

    # links to messages, which are only numbers here

    def add_link(self, session: Session, values: Sequence[Any]) -> bool:
        """Insert a link; return True if new or of another relation.

        (task, message, relation, created at, by).
        """
        return bool(
            session.run(
                self.sql(
                    "INSERT INTO task_messages (project_no, task_no, message_no, relation, "
                    "created_at, created_by)"
                    " VALUES (:project, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (task_no, message_no) DO UPDATE SET relation = excluded.relation"
                    " WHERE task_messages.relation <> excluded.relation"
                ),
                values,
            )
        )

    def remove_link(self, session: Session, no: int, message_no: int) -> str | None:
        """Take a link away; the relation it had."""
        row = session.one(
            self.sql(
                "DELETE FROM task_messages WHERE project_no = :project AND task_no = ? AND "
                "message_no = ?"
                " RETURNING relation"
            ),
            (no, message_no),
        )
        return str(row[0]) if row else None

    # sessions

    def see_session(self, session: Session, session_id: str, now_ms: int) -> None:
        session.run(
            self.sql(
                "INSERT INTO sessions (project_no, id, seen_at) VALUES (:project, ?, ?)"
                " ON CONFLICT (project_no, id) DO UPDATE SET seen_at = excluded.seen_at, ended_at "
                "= NULL"
                " WHERE sessions.seen_at < excluded.seen_at OR sessions.ended_at IS NOT NULL"
            ),
            (session_id, now_ms),
        )

    def abandoned(self, session: Session, silent_since_ms: int | None) -> list[int]:
        """Return tasks held by sessions that ended or went silent."""
        rows = session.all(
            self.sql(
                "SELECT t.no FROM tasks t LEFT JOIN sessions s ON s.project_no = t.project_no AND "
                "s.id = t.session_id"
                " WHERE t.project_no = :project AND t.status = 'in_progress' AND t.session_id IS "
                "NOT NULL"
                " AND (s.ended_at IS NOT NULL OR coalesce(s.seen_at, t.claimed_at, t.updated_at) "
                "< ?) ORDER BY t.no"
            ),
            (silent_since_ms if silent_since_ms is not None else -(2**62),),
        )
        return [row[0] for row in rows]


def indexed_tasks(session: Session, after: int = 0) -> Iterator[tuple[int, int, Task]]:
    """Yield every project's tasks for the shared index.

    As (number, project, task), those with a number above ``after``.
    """
    while rows := session.all(
        f"{TaskStore.SELECT} WHERE t.no > ? ORDER BY t.no LIMIT {PART}",
        (after,),
    ):
        labels: dict[int, list[str]] = {}
        for no, label in session.all(
            "SELECT task_no, label FROM task_labels WHERE task_no BETWEEN ? AND ?",
            (rows[0][-2], rows[-1][-2]),
        ):
            labels.setdefault(no, []).append(from_storable(label))
        for row in rows:
            yield row[-2], row[-1], _task(row, labels.get(row[-2], ()), ())
        after = rows[-1][-2]


def _task(row: Row, labels: Iterable[str], dependencies: Iterable[Dependency]) -> Task:
    """Return the task of a row; the last two columns are not its own."""
    fields: dict[str, Any] = {
        name: from_storable(value) if name in TEXTS and value is not None else value
        for name, value in zip(COLUMNS, row, strict=False)
    }
    fields["metadata"] = json.loads(fields["metadata"])
    return Task(labels=tuple(sorted(labels)), dependencies=tuple(dependencies), **fields)
