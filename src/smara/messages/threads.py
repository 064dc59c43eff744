"""Create, find and update threads, each owned by a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from smara.core.clock import check_time
from smara.core.escape import to_storable
from smara.core.scope import is_id, require_id
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.messages.models import NewThread, Thread, ThreadKind
from smara.messages.store import MessageStore
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
        """Make a thread; ``ConflictError`` when the id is taken."""
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
        """
        values = self.row_for(new)
        with self._store.database.write() as session:
            if not self._store.insert_thread(session, values):
                self._store.hold_thread(session, new.id)
                found = self._store.find_thread(session, new.id)
                if found is not None:
                    merged = {**found.metadata, **new.metadata}
                    title = found.title or new.title
                    if (title, merged) != (found.title, dict(found.metadata)):
                        self._store.update_thread(
                            session,
                            new.id,
                            _clean_title(title),
                            dump_metadata(merged),
                            found.updated_at,
                        )
        return self.get(new.id)

    def row_for(self, new: NewThread) -> tuple[Any, ...]:
        """The row of a new thread, checked and redacted."""
        now = self._project.clock.now_ms()
        if new.kind not in get_args(ThreadKind):
            raise InvalidInputError(
                f"kind must be one of {', '.join(get_args(ThreadKind))}; got {new.kind!r}."
            )
        created_at = check_time(new.created_at)
        return (
            require_id(new.id, "thread_id"),
            require_id(new.resource_id or self._project.settings.resource, "resource_id"),
            new.kind,
            None if new.parent_id is None else require_id(new.parent_id, "parent_id"),
            _clean_title(new.title),
            dump_metadata(new.metadata),
            created_at if created_at is not None else now,
            created_at if created_at is not None else now,
        )

    def get(self, thread_id: str) -> Thread:
        """The thread, or ``NotFoundError``."""
        found = self.find(require_id(thread_id, "thread_id"))
        if found is None:
            raise NotFoundError(
                f"There is no thread {thread_id!r} in this project. `smara threads list` shows "
                "what there is.",
                thread_id=thread_id,
            )
        return found

    def find(self, thread_id: str) -> Thread | None:
        """The thread, or ``None``."""
        if not is_id(thread_id):
            return None
        with self._store.database.read() as session:
            return self._store.find_thread(session, thread_id)

    def list(
        self,
        *,
        resource_id: str | None = None,
        kind: ThreadKind | None = None,
        parent_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Thread]:
        """Threads, the most recently used first."""
        conditions = [
            (f"{column} = ?", value)
            for column, value in (
                ("resource_id", resource_id),
                ("kind", kind),
                ("parent_id", parent_id),
            )
            if value is not None
        ]
        with self._store.database.read() as session:
            return self._store.list_threads(session, conditions, limit, offset=offset)

    def update(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """Update the title or merge metadata; ``None`` removes a key."""
        now = self._project.clock.now_ms()
        with self._store.database.write() as session:
            # Taking the row first keeps another process from merging into what we read.
            self._store.hold_thread(session, thread_id)
            found = self._store.find_thread(session, thread_id)
            if found is not None:
                merged = {**found.metadata, **(metadata or {})}
                kept = {key: value for key, value in merged.items() if value is not None}
                self._store.update_thread(
                    session,
                    thread_id,
                    _clean_title(title) if title is not None else _clean_title(found.title),
                    dump_metadata(kept),
                    now,
                )
        return self.get(thread_id)

    def totals(self) -> dict[str, int]:
        """Count the project's threads, messages, tokens and resources."""
        with self._store.database.read() as session:
            return self._store.totals(session)


def _clean_title(title: str | None) -> str | None:
    if title is None:
        return None
    return to_storable(redact(" ".join(title.split())).text[:MAX_TITLE_LENGTH])
