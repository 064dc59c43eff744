"""Keep where a framework's runs stand, so that they can go on.

A state has a kind, a namespace, a name and a part, all named by the framework, and a body that
only the framework can read. It belongs to a thread of the same name as the framework's, and goes
with it: erasing the thread erases its states. It is never searched; what was said in a run is
read into the thread as messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core.escape import from_storable, to_storable
from smara.core.scope import require_id
from smara.core.startup.record import dataclass
from smara.database.database import Row, Session
from smara.database.fulltext import join_terms
from smara.database.project_store import ProjectStore
from smara.database.projects import ProjectContext
from smara.errors import ConflictError
from smara.frameworks.store import to_json
from smara.messages.models import NewThread
from smara.messages.threads import Threads

_SELECT = (
    "SELECT s.no, s.key, s.kind, s.namespace, s.name, s.part, s.entry FROM framework_states s"
    " WHERE s.project_no = :project AND s.framework = ?"
)
_COLUMNS = {"key": "s.key", "kind": "s.kind", "namespace": "s.namespace", "name": "s.name"}
_NEWEST, _BY_NAME = "s.name DESC, s.no DESC", "s.name, s.part, s.no"
_REPLACE, _LEAVE = "UPDATE SET entry = excluded.entry", "NOTHING"
_THREAD = "SELECT t.no FROM threads t WHERE t.project_no = :project AND t.id = ?"


@dataclass(frozen=True, slots=True)
class RunState:
    """One part of where a run stands."""

    kind: str
    namespace: str
    name: str
    part: str
    body: Any
    key: str = ""
    """The framework's name of the thread."""
    no: int = 0


class RunStates:
    """The states of a framework's runs in one project.

    Safe for threads and processes.
    """

    def __init__(self, project: ProjectContext, threads: Threads, *, framework: str) -> None:
        """Open the states of a framework.

        Args:
            project: The project they are of.
            threads: Where the thread of a run is made.
            framework: The framework's name, for example ``langgraph``.
        """
        self._project = project
        self._threads = threads
        self._store = ProjectStore(project.database, project.scope)
        self._framework = require_id(framework, "framework")
        self._made: set[str] = set()

    def thread_id(self, key: str) -> str:
        """Return the id of the thread of a key."""
        return f"{self._framework}:{key}"

    @contextmanager
    def read(self) -> Iterator[StateBatch]:
        """Open states for reading."""
        with self._project.database.read() as session:
            yield StateBatch(session, self._store, self._project, self._framework)

    @contextmanager
    def write(self) -> Iterator[StateBatch]:
        """Open one transaction over states; an exception undoes all of it."""
        with self._project.database.write() as session:
            yield StateBatch(session, self._store, self._project, self._framework)

    def put(self, key: str, states: Sequence[RunState], *, replaces: bool = True) -> None:
        """Put states of a thread in one transaction.

        The thread is made on first use.

        Args:
            key: The framework's name of the thread.
            states: What to put.
            replaces: False to leave those that are there.
        """
        # It may have been erased since this process made it: a run that goes on makes it again.
        for is_made in (key in self._made, False):
            if not is_made:
                self._threads.put(NewThread(self.thread_id(key)))
            try:
                with self.write() as batch:
                    batch.put(key, states, replaces=replaces)
            except ConflictError:
                if not is_made:
                    raise
                continue
            self._made.add(key)
            return


class StateBatch:
    """Reads and writes of one transaction."""

    def __init__(
        self, session: Session, store: ProjectStore, project: ProjectContext, framework: str
    ) -> None:
        self._session = session
        self._store = store
        self._project = project
        self._framework = framework

    def list(
        self,
        *,
        newest_first: bool = False,
        before: str | None = None,
        limit: int | None = None,
        **where: str,
    ) -> list[RunState]:
        """Return states, by name.

        Args:
            newest_first: True for the greatest names first.
            before: Only names smaller than this one.
            limit: How many at most.
            **where: The ``key``, ``kind``, ``namespace`` and ``name`` they must have.

        Returns:
            The states.
        """
        terms = [f"{_COLUMNS[column]} = ?" for column in where]
        terms += [] if before is None else ["s.name < ?"]
        rows = self._store.rows(
            self._session,
            f"{_SELECT}{join_terms(terms)} ORDER BY {_NEWEST if newest_first else _BY_NAME}"
            f"{'' if limit is None else ' LIMIT ?'}",
            self._framework,
            *map(to_storable, where.values()),
            *(() if before is None else (to_storable(before),)),
            *(() if limit is None else (limit,)),
        )
        return [_state(row) for row in rows]

    def find(self, key: str, kind: str, namespace: str, name: str, *, part: str) -> RunState | None:
        """Return one state, or ``None``."""
        rows = self._store.rows(
            self._session,
            f"{_SELECT} AND s.key = ? AND s.kind = ? AND s.namespace = ? AND s.name = ?"
            " AND s.part = ?",
            self._framework,
            *map(to_storable, (key, kind, namespace, name, part)),
        )
        return _state(rows[0]) if rows else None

    def put(self, key: str, states: Iterable[RunState], *, replaces: bool = True) -> None:
        """Put states of a thread; without ``replaces``, those that are there stay.

        Raises:
            ConflictError: If the thread was erased meanwhile.
        """
        now, thread = self._project.clock.now_ms(), f"{self._framework}:{key}"
        row = self._session.one(self._store.sql(_THREAD), (to_storable(thread),))
        if row is None:
            raise ConflictError(f"Thread {thread!r} was erased while it was written.", key=key)
        self._store.run_many(
            self._session,
            "INSERT INTO framework_states (project_no, id, thread_no, framework, key, kind,"
            " namespace, name, part, entry, created_at)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (project_no, framework, key, kind, namespace, name, part)"
            f" DO {_REPLACE if replaces else _LEAVE}",
            [
                (
                    self._project.new_id(),
                    row[0],
                    self._framework,
                    *map(to_storable, (key, each.kind, each.namespace, each.name, each.part)),
                    to_json(each.body),
                    now,
                )
                for each in states
            ],
        )

    def delete(self, states: Sequence[RunState]) -> None:
        """Delete states."""
        self._store.run(
            self._session,
            "DELETE FROM framework_states WHERE project_no = :project AND no IN (:some)",
            some=[each.no for each in states],
        )


def _state(row: Row) -> RunState:
    key, kind, namespace, name, part = map(from_storable, row[1:6])
    return RunState(kind, namespace, name, part, json.loads(row[6]), key=key, no=int(row[0]))
