"""Create, find and update threads, each owned by a resource."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, get_args

from smara.core.clock import check_time
from smara.core.escape import to_storable
from smara.core.scope import is_id, lookup_id, require_id
from smara.core.validate import one_of, precondition
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, NotFoundError
from smara.messages.models import NewThread, Thread, ThreadKind
from smara.messages.store import THREAD_COLUMNS, MessageStore, thread_of
from smara.secrets import redact
from smara.secrets.redact import dump_metadata

MAX_TITLE_LENGTH = 500


class Threads:
    """The threads of one project."""

    def __init__(self, project: ProjectContext, store: MessageStore) -> None:
        self._project = project
        self._store = store

    def add(
        self,
        thread_id: str | None = None,
        *,
        resource_id: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        kind: ThreadKind = "conversation",
        parent_id: str | None = None,
        created_at: int | None = None,
    ) -> Thread:
        """Create a thread.

        Args:
            thread_id: Its id; without it, one is made.
            resource_id: Whose thread it is; by default the resource of the settings.
            title: What it is called.
            metadata: Anything JSON can store.
            kind: ``conversation``, ``subagent`` or ``compaction``.
            parent_id: The thread it came from.
            created_at: When it began, in milliseconds; by default now.

        Returns:
            The thread as stored.

        Raises:
            ConflictError: If the id is taken.
            InvalidInputError: If a value is impossible.
        """
        new = NewThread(
            thread_id or self._project.new_id(),
            resource_id,
            title,
            metadata=metadata or {},
            kind=kind,
            parent_id=parent_id,
            created_at=created_at,
        )
        values = self.row_for(new)
        with self._store.database.write() as session:
            if not self._store.insert_thread(session, values):
                raise ConflictError(
                    f"Thread {new.id!r} exists already. Use update, or another id.",
                    thread_id=new.id,
                )
        return self.get(new.id)

    def put(self, new: NewThread) -> Thread:
        """Create or update a thread; safe to repeat.

        A thread keeps its resource, kind and title once it has them; metadata is merged.

        Args:
            new: The thread.

        Returns:
            The thread as it is now.

        Raises:
            InvalidInputError: If a value is impossible.
        """
        values = self.row_for(new)
        with self._store.database.write() as session:
            thread = None
            if not self._store.insert_thread(session, values):
                self._store.hold_thread(session, new.id)
                thread = self._store.find_thread(session, new.id)
            if thread is not None:
                precondition.get()(thread)
                merged = {**thread.metadata, **new.metadata}
                title = thread.title or new.title
                if (title, merged) != (thread.title, dict(thread.metadata)):
                    self._store.update_thread(
                        session,
                        new.id,
                        _clean_title(title),
                        metadata=dump_metadata(merged),
                        now_ms=thread.updated_at,
                    )
        return self.get(new.id)

    def row_for(self, new: NewThread) -> tuple[Any, ...]:
        """Return the row of a new thread, checked and redacted.

        Args:
            new: The thread; without a resource or a time, those of the settings and of now.

        Returns:
            The values of its columns.

        Raises:
            InvalidInputError: If a value is impossible.
        """
        one_of(new.kind, get_args(ThreadKind), "kind")
        created_at = check_time(new.created_at)
        if created_at is None:
            created_at = self._project.clock.now_ms()
        return (
            require_id(new.id, "thread_id"),
            require_id(new.resource_id or self._project.settings.resource, "resource_id"),
            new.kind,
            None if new.parent_id is None else require_id(new.parent_id, "parent_id"),
            _clean_title(new.title),
            dump_metadata(new.metadata),
            created_at,
            created_at,
        )

    def planned(self, thread_id: str, resource_id: str | None = None) -> Thread:
        """Return a thread as its first message will store it; store nothing.

        Args:
            thread_id: Its id.
            resource_id: Whose thread it is; by default the resource of the settings.

        Returns:
            The thread, without messages.

        Raises:
            InvalidInputError: If a value is impossible.
        """
        return thread_of((*self.row_for(NewThread(thread_id, resource_id)), 0, 0))

    def get(self, thread_id: str) -> Thread:
        """Return a thread.

        Args:
            thread_id: The whole id of the thread.

        Returns:
            The thread with its counts.

        Raises:
            NotFoundError: If there is no such thread.
        """
        found = self.find(require_id(thread_id, "thread_id"))
        if found is None:
            raise NotFoundError(
                f"There is no thread {thread_id!r} in this project. `smara threads list` shows "
                "what there is.",
                thread_id=thread_id,
            )
        return found

    def find(self, thread_id: str) -> Thread | None:
        """Return a thread, or ``None``.

        Args:
            thread_id: The whole id; a text that cannot be one is not found.

        Returns:
            The thread, or ``None`` if there is none of this id.
        """
        if not is_id(thread_id):
            return None
        return self._store.ask(self._store.find_thread, require_id(thread_id, "thread_id"))

    def list(
        self,
        *,
        resource_id: str | None = None,
        kind: ThreadKind | None = None,
        parent_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Thread]:
        """Return threads, the most recently used first.

        Args:
            resource_id: Only threads of this resource.
            kind: Only threads of this kind.
            parent_id: Only threads that came from this one.
            limit: The most threads; without it, all.
            offset: How many to skip.

        Returns:
            The threads with their counts.
        """
        given = {
            "resource_id": lookup_id(resource_id),
            "kind": kind,
            "parent_id": lookup_id(parent_id),
        }
        values = {column: value for column, value in given.items() if value is not None}
        where = "".join(f" AND {column} = ?" for column in values)
        rows = self._store.ask(
            self._store.rows,
            f"SELECT {THREAD_COLUMNS} FROM threads WHERE project_no = :project{where}"
            " ORDER BY updated_at DESC, no DESC LIMIT ? OFFSET ?",
            *values.values(),
            2**31 - 1 if limit is None else limit,
            offset,
        )
        return [thread_of(row) for row in rows]

    def beginning(self, start: str) -> builtins.list[str]:
        """Return the ids that begin with a text.

        Args:
            start: The first characters.

        Returns:
            The ids in their order.
        """
        rows = self._store.ask(
            self._store.rows,
            "SELECT id FROM threads WHERE project_no = :project AND substr(id, 1, ?) = ?"
            " ORDER BY id",
            len(start),
            start,
        )
        return [str(row[0]) for row in rows]

    def update(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """Update the title or merge metadata.

        Args:
            thread_id: The thread.
            title: The new title; ``None`` leaves it.
            metadata: Merged into what is there; ``None`` removes a key.

        Returns:
            The thread as it is now.

        Raises:
            NotFoundError: If there is no such thread.
        """
        now = self._project.clock.now_ms()
        with self._store.database.write() as session:
            # Taking the row first keeps another process from merging into what we read.
            self._store.hold_thread(session, thread_id)
            thread = self._store.find_thread(session, thread_id)
            if thread is not None:
                precondition.get()(thread)
                merged = {**thread.metadata, **(metadata or {})}
                self._store.update_thread(
                    session,
                    thread_id,
                    _clean_title(thread.title if title is None else title),
                    metadata=dump_metadata(
                        {key: value for key, value in merged.items() if value is not None}
                    ),
                    now_ms=now,
                )
        return self.get(thread_id)

    def totals(self) -> dict[str, int]:
        """Count the project's threads, messages, tokens and resources.

        Returns:
            The counts as ``threads``, ``messages``, ``tokens``, ``resources`` and ``subagents``,
            which are among the threads.
        """
        counts = self._store.ask(
            self._store.row,
            "SELECT count(*), coalesce(sum(last_seq), 0), coalesce(sum(tokens), 0), "
            "count(DISTINCT resource_id), count(CASE WHEN kind = 'subagent' THEN 1 END)"
            " FROM threads WHERE project_no = :project",
        )
        names = ("threads", "messages", "tokens", "resources", "subagents")
        return dict(zip(names, map(int, counts or (0, 0, 0, 0, 0)), strict=True))


def _clean_title(title: str | None) -> str | None:
    line = " ".join((title or "").split())
    return None if title is None else to_storable(redact(line).text[:MAX_TITLE_LENGTH])
