"""Store tasks and their dependencies: SQL and row mapping, no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable
from smara.database.database import PART, Row, Session, marks, parts
from smara.database.project_store import NamedStore
from smara.tasks.models import Dependency, Task, TaskEvent, TaskProgress, TaskTotals

COLUMNS = (
    "id", "short_id", "title", "description", "status", "priority", "type", "assignee",
    "session_id", "claimed_at",
    "created_at", "created_by", "updated_at", "closed_at", "close_reason", "summary",
    "compaction_level",
    "compacted_at", "original_content", "metadata",
)  # fmt: skip
_COLUMNS = ", ".join(f"t.{name}" for name in COLUMNS)

WAITS = (
    "(EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks b ON b.no = d.depends_on_no AND "
    "b.status <> 'closed'"
    " WHERE d.task_no = t.no AND d.type = 'blocks')"
    " OR EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks b ON b.no = d.task_no AND b.status "
    "<> 'closed'"
    " WHERE d.depends_on_no = t.no AND d.type = 'parent-child'))"
)
"""Whether a task waits for unfinished ones: those that block it, and its children."""


class StoredTask(NamedTuple):
    """A task and its number."""

    no: int
    task: Task


class TaskStore(NamedStore):
    """The tables of tasks of one project."""

    TABLE, ALIAS, WHAT = "tasks t", "t", "task"
    HINT = "`smara tasks list` and the tool action `list` show what there is."

    # reading

    def select(self, session: Session, rest: str, values: Sequence[Any] = ()) -> list[StoredTask]:
        """Select tasks by conditions, order and limit."""
        rows = session.all(
            self.sql(f"SELECT {_COLUMNS}, t.no FROM tasks t WHERE t.project_no = :project{rest}"),
            values,
        )
        return self._with_parts(session, rows)

    def _select_numbers(self, session: Session, numbers: Sequence[int]) -> list[StoredTask]:
        # The plus keeps SQLite from reading a whole project by an index that begins with it.
        where = f"+t.project_no = :project AND t.no IN ({marks(len(numbers))})"
        statement = self.sql(f"SELECT {_COLUMNS}, t.no FROM tasks t WHERE {where}")
        return self._with_parts(session, session.all(statement, numbers))

    def by_numbers(self, session: Session, numbers: Iterable[int]) -> dict[int, Task]:
        """Tasks by number, in the order of the numbers."""
        wanted = list(dict.fromkeys(numbers))
        found: dict[int, Task] = {}
        for part in parts(wanted):
            found.update(self._select_numbers(session, part))
        return {no: found[no] for no in wanted if no in found}

    def by_number(self, session: Session, no: int) -> Task:
        return self.by_numbers(session, (no,))[no]

    def waiting(self, session: Session, numbers: Sequence[int]) -> set[int]:
        """Return which tasks wait for unfinished ones."""
        found: set[int] = set()
        for part in parts(numbers):
            statement = (
                "SELECT t.no FROM tasks t WHERE +t.project_no = :project AND t.no IN "
                f"({marks(len(part))})"
            )
            found.update(row[0] for row in session.all(self.sql(f"{statement} AND {WAITS}"), part))
        return found

    def _with_parts(self, session: Session, rows: Sequence[Row]) -> list[StoredTask]:
        numbers = [int(row[-1]) for row in rows]
        labels = self._labels(session, numbers)
        dependencies = self._dependencies(session, numbers)
        return [
            StoredTask(no, _task(row, labels.get(no, ()), dependencies.get(no, ())))
            for no, row in zip(numbers, rows, strict=True)
        ]

    def _labels(self, session: Session, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        found: dict[int, list[str]] = {}
        for part in parts(numbers):
            for no, label in session.all(
                self.sql(
                    # The plus keeps SQLite from the index by label, which begins with the project.
                    "SELECT task_no, label FROM task_labels"
                    f" WHERE +project_no = :project AND task_no IN ({marks(len(part))})"
                ),
                part,
            ):
                found.setdefault(no, []).append(from_storable(label))
        return {no: tuple(sorted(labels)) for no, labels in found.items()}

    def _dependencies(
        self, session: Session, numbers: Sequence[int]
    ) -> dict[int, tuple[Dependency, ...]]:
        found: dict[int, list[Dependency]] = {}
        for part in parts(numbers):
            rows = session.all(
                self.sql(
                    "SELECT d.task_no, a.id, b.id, d.type, d.created_at, d.created_by, "
                    "a.short_id, b.short_id"
                    " FROM task_dependencies d JOIN tasks a ON a.no = d.task_no JOIN tasks b ON "
                    "b.no = d.depends_on_no"
                    f" WHERE d.project_no = :project AND d.task_no IN ({marks(len(part))})"
                    " ORDER BY d.created_at, b.no, d.type"
                ),
                part,
            )
            for row in rows:
                found.setdefault(row[0], []).append(Dependency(*row[1:]))
        return {no: tuple(dependencies) for no, dependencies in found.items()}

    # what waits for what

    def needs(self, session: Session, numbers: Sequence[int], type_: str) -> list[tuple[int, int]]:
        """Return (task, dependency) pairs of one type."""
        return self._edges(session, "task_no", numbers, type_)

    def needed_by(
        self, session: Session, numbers: Sequence[int], type_: str
    ) -> list[tuple[int, int]]:
        """(task, what it depends on) for some tasks that are depended on."""
        return self._edges(session, "depends_on_no", numbers, type_)

    def _edges(
        self, session: Session, column: str, numbers: Sequence[int], type_: str
    ) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for part in parts(numbers):
            rows = session.all(
                self.sql(
                    "SELECT task_no, depends_on_no FROM task_dependencies"
                    f" WHERE project_no = :project AND type = ? AND {column} IN "
                    f"({marks(len(part))})"
                    " ORDER BY task_no, depends_on_no"
                ),
                (type_, *part),
            )
            found += [(row[0], row[1]) for row in rows]
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

    def insert(self, session: Session, values: Mapping[str, Any]) -> int:
        """A new row; its number."""
        names = list(values)
        columns = ", ".join(names)
        row = session.one(
            self.sql(
                f"INSERT INTO tasks (project_no, {columns}) VALUES (:project, "
                f"{marks(len(names))}) RETURNING no"
            ),
            list(values.values()),
        )
        return int(row[0]) if row else 0

    def write(self, session: Session, no: int, values: Mapping[str, Any]) -> None:
        """Write columns of a task."""
        columns = ", ".join(f"{name} = ?" for name in values)
        session.run(
            self.sql(f"UPDATE tasks SET {columns} WHERE project_no = :project AND no = ?"),
            (*values.values(), no),
        )

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

    def remove_dependency(self, session: Session, no: int, depends_on_no: int, type_: str) -> bool:
        return bool(
            session.run(
                self.sql(
                    "DELETE FROM task_dependencies"
                    " WHERE project_no = :project AND task_no = ? AND depends_on_no = ? AND type "
                    "= ?"
                ),
                (no, depends_on_no, type_),
            )
        )

    # totals

    def lock(self, session: Session) -> TaskTotals:
        """Lock and return the project's totals until the transaction ends."""
        statement = self.sql(
            "UPDATE task_totals SET open = open WHERE project_no = :project"
            " RETURNING open, in_progress, closed, ready, blocked"
        )
        row = session.one(statement)
        if row is None:
            session.run(
                self.sql(
                    "INSERT INTO task_totals (project_no) VALUES (:project) ON CONFLICT "
                    "(project_no) DO NOTHING"
                )
            )
            row = session.one(statement)
        return TaskTotals(*row) if row else TaskTotals()

    def totals(self, session: Session) -> TaskTotals:
        row = session.one(
            self.sql(
                "SELECT open, in_progress, closed, ready, blocked FROM task_totals WHERE "
                "project_no = :project"
            )
        )
        return TaskTotals(*row) if row else TaskTotals()

    def put_totals(self, session: Session, totals: TaskTotals) -> None:
        session.run(
            self.sql(
                "UPDATE task_totals SET open = ?, in_progress = ?, closed = ?, ready = ?, blocked "
                "= ?"
                " WHERE project_no = :project"
            ),
            (totals.open, totals.in_progress, totals.closed, totals.ready, totals.blocked),
        )

    def recount(self, session: Session) -> TaskTotals:
        """The totals, counted again."""
        by_status = {
            row[0]: int(row[1])
            for row in session.all(
                self.sql(
                    "SELECT t.status, count(*) FROM tasks t WHERE t.project_no = :project GROUP "
                    "BY t.status"
                )
            )
        }
        row = session.one(
            self.sql(
                "SELECT coalesce(sum(CASE WHEN waits THEN 0 WHEN status = 'open' THEN 1 ELSE 0 "
                "END), 0),"
                " coalesce(sum(CASE WHEN waits THEN 1 ELSE 0 END), 0)"
                f" FROM (SELECT t.status AS status, {WAITS} AS waits FROM tasks t"
                " WHERE t.project_no = :project AND t.status <> 'closed') AS unfinished"
            )
        )
        ready, blocked = (int(row[0]), int(row[1])) if row else (0, 0)
        return TaskTotals(
            by_status.get("open", 0),
            by_status.get("in_progress", 0),
            by_status.get("closed", 0),
            ready=ready,
            blocked=blocked,
        )

    # events

    def add_event(self, session: Session, values: Sequence[Any]) -> int:
        """Insert (task, id, kind, actor, session, at, before, after); its number."""
        row = session.one(
            self.sql(
                "INSERT INTO task_events (project_no, task_no, id, kind, actor, session_id, at, "
                "before, after)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING no"
            ),
            values,
        )
        return int(row[0]) if row else 0

    def events(self, session: Session, no: int, task_id: str, limit: int) -> list[TaskEvent]:
        rows = session.all(
            self.sql(
                "SELECT id, kind, actor, session_id, at, before, after, undone_by FROM task_events"
                " WHERE project_no = :project AND task_no = ? ORDER BY no DESC LIMIT ?"
            ),
            (no, limit),
        )
        return [
            TaskEvent(
                row[0],
                task_id,
                row[1],
                actor=row[2],
                session_id=row[3],
                at=row[4],
                before=json.loads(row[5]),
                after=json.loads(row[6]),
                is_undone=row[7] is not None,
            )
            for row in rows
        ]

    def newest_change(self, session: Session, no: int) -> Row | None:
        """Return the newest event that is neither undone nor an undo.

        (number, kind, before, after).
        """
        return session.one(
            self.sql(
                "SELECT no, kind, before, after FROM task_events"
                " WHERE project_no = :project AND task_no = ? AND undone_by IS NULL AND kind <> "
                "'undone'"
                " ORDER BY no DESC LIMIT 1"
            ),
            (no,),
        )

    def mark_undone(self, session: Session, event_no: int, undone_by: int) -> None:
        session.run(
            self.sql("UPDATE task_events SET undone_by = ? WHERE project_no = :project AND no = ?"),
            (undone_by, event_no),
        )

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

    def link_relation(self, session: Session, no: int, message_no: int) -> str | None:
        row = session.one(
            self.sql(
                "SELECT relation FROM task_messages WHERE project_no = :project AND task_no = ? "
                "AND message_no = ?"
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

    def end_session(self, session: Session, session_id: str, now_ms: int) -> None:
        session.run(
            self.sql(
                "INSERT INTO sessions (project_no, id, seen_at, ended_at) VALUES (:project, ?, ?, "
                "?)"
                " ON CONFLICT (project_no, id) DO UPDATE SET ended_at = excluded.ended_at"
            ),
            (session_id, now_ms, now_ms),
        )

    def seen_at(self, session: Session, session_id: str) -> int | None:
        row = session.one(
            self.sql("SELECT seen_at FROM sessions WHERE project_no = :project AND id = ?"),
            (session_id,),
        )
        return int(row[0]) if row else None

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


def indexed_tasks(session: Session) -> Iterator[tuple[int, int, Task]]:
    """Yield every project's tasks for the shared index.

    As (number, project, task).
    """
    after = 0
    while True:
        rows = session.all(
            f"SELECT {_COLUMNS}, t.no, t.project_no FROM tasks t WHERE t.no > ? ORDER BY t.no "
            f"LIMIT {PART}",
            (after,),
        )
        if not rows:
            return
        labels: dict[int, list[str]] = {}
        for no, label in session.all(
            "SELECT task_no, label FROM task_labels WHERE task_no BETWEEN ? AND ?",
            (rows[0][-2], rows[-1][-2]),
        ):
            labels.setdefault(no, []).append(from_storable(label))
        for row in rows:
            yield row[-2], row[-1], _task(row[:-1], tuple(sorted(labels.get(row[-2], ()))), ())
        after = rows[-1][-2]


def _task(row: Row, labels: tuple[str, ...], dependencies: tuple[Dependency, ...]) -> Task:
    (
        id_,
        short_id,
        title,
        description,
        status,
        priority,
        type_,
        assignee,
        session_id,
        claimed_at,
        created_at,
        created_by,
        updated_at,
        closed_at,
        close_reason,
        summary,
        level,
        compacted_at,
        original,
        metadata,
        _,
    ) = row
    return Task(
        id_,
        short_id,
        from_storable(title),
        description=from_storable(description),
        status=status,
        priority=priority,
        type=type_,
        assignee=assignee,
        session_id=session_id,
        claimed_at=claimed_at,
        created_at=created_at,
        created_by=created_by,
        updated_at=updated_at,
        closed_at=closed_at,
        close_reason=_text(close_reason),
        summary=_text(summary),
        labels=labels,
        dependencies=dependencies,
        compaction_level=level,
        compacted_at=compacted_at,
        original_content=_text(original),
        metadata=json.loads(metadata),
    )


def _text(stored: str | None) -> str | None:
    return None if stored is None else from_storable(stored)
