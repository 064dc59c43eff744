"""List what happened in a project, in order.

Nothing is written for it: messages, the events of tasks and memories, observations, receipts,
model calls and jobs are numbered by their tables as they are stored. A *cursor* holds the last
number of each that was seen, so that a follower who was away, or whose server was started again,
goes on where it was. An event names what changed, and has none of its words.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping

from smara.core.escape import from_storable
from smara.core.validate import check_page
from smara.database.database import Row
from smara.database.project_store import ProjectStore
from smara.database.projects import ProjectContext
from smara.feed.models import FeedEvent, FeedPage, read_cursor, write_cursor

MOST_EVENTS = 1_000
_SOURCES: Mapping[str, tuple[str, str, str]] = {
    "m": (
        "messages",
        "'message.added', s.id, s.created_at, t.id, ''",
        "JOIN threads t ON t.no = s.thread_no",
    ),
    "t": (
        "task_events",
        "'task.' || s.kind, t.short_id, s.at, '', coalesce(s.session_id, '')",
        "JOIN tasks t ON t.no = s.task_no",
    ),
    "k": (
        "memory_events",
        "'memory.' || s.kind, t.short_id, s.at, '', coalesce(s.session_id, '')",
        "JOIN memories t ON t.no = s.memory_no AND +t.project_no = s.project_no",
    ),
    "o": (
        "observations",
        "s.kind || '.added', s.id, s.created_at, coalesce(t.id, ''), ''",
        "LEFT JOIN threads t ON t.no = s.thread_no",
    ),
    "r": ("moment_receipts", "'receipt.added', s.id, s.made_at, '', s.session_id", ""),
    "c": ("model_calls", "'model.called', s.id, s.started_at, '', ''", ""),
    "w": ("jobs", "'job.' || s.state, s.id, s.updated_at, '', ''", ""),
}
"""By the letter in a cursor: the table, what an event tells of a row, and where it finds that."""


class Feed:
    """The events of one project, in order."""

    def __init__(self, project: ProjectContext) -> None:
        self._store = ProjectStore(project.database, project.scope)

    def newest(self) -> str:
        """Return the cursor behind everything that has happened so far.

        Returns:
            A cursor for :meth:`list`.
        """
        with self._store.database.read() as session:
            places = {
                letter: self._store.number(
                    session,
                    f"SELECT coalesce(max(no), 0) FROM {table} WHERE project_no = :project",
                )
                for letter, (table, _, _) in _SOURCES.items()
            }
        return write_cursor(places)

    def list(self, after: str = "", limit: int = 200) -> FeedPage:
        """Return what happened after a cursor, the oldest first.

        Args:
            after: A cursor; without it, from the beginning.
            limit: The most events, up to 1,000.

        Returns:
            The events, and the cursor for the next call.

        Raises:
            InvalidInputError: If the cursor is not one of a feed.
        """
        check_page(limit)
        places, most = read_cursor(after), min(limit, MOST_EVENTS)
        found: builtins.list[tuple[int, str, Row]] = []
        with self._store.database.read() as session:
            for letter, (table, columns, joined) in _SOURCES.items():
                rows = session.all(
                    self._store.sql(
                        f"SELECT s.no, {columns} FROM {table} s {joined}"
                        " WHERE s.project_no = :project AND s.no > ? ORDER BY s.no LIMIT ?"
                    ),
                    (places[letter], most),
                )
                # By number in each table, and by time among tables: what was imported may be older
                # than what came before it, and must not be passed by.
                latest = 0
                for row in rows:
                    latest = max(latest, int(row[3]))
                    found.append((latest, letter, row))
        found.sort(key=lambda each: (each[0], each[1], each[2][0]))
        events = []
        for _, letter, (no, kind, name, at, thread_id, session_id) in found[:most]:
            places[letter] = int(no)
            events.append(
                FeedEvent(
                    str(kind),
                    str(name),
                    int(at),
                    from_storable(thread_id) or None,
                    from_storable(session_id) or None,
                    f"{letter}{no}",
                )
            )
        return FeedPage(tuple(events), write_cursor(places))
