"""Record each change of a row as an event, and undo it.

Tasks and memories change in one way. A `Change` is one transaction: it locks the state of the
project, so that writers take turns on both databases; it writes a row and an event with the fields
before and after; at its end it writes the state. Undo takes the newest operation that was not
undone and reverts it in every row that it touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from smara.core.escape import to_storable
from smara.core.ids import bare_key_of, key_of
from smara.core.validate import precondition
from smara.database.database import Session
from smara.database.fulltext import RecordKind, RecordTerms
from smara.database.project_store import Event, JournalStore, StoredT, plain_value
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError
from smara.secrets.redact import clean_name

StoreT = TypeVar("StoreT", bound=JournalStore[Any, Any, Any])
ChangeT = TypeVar("ChangeT", bound="Change[Any]")

_UNDOABLE = "undone_by IS NULL AND kind <> 'undone'"
_LASTING = ("created", "imported")


class Change(Generic[StoredT]):
    """One transaction that changes rows: who, as whom, when."""

    store: JournalStore[Any, StoredT, Any]
    state: Any

    def __init__(
        self,
        store: JournalStore[Any, StoredT, Any],
        session: Session,
        project: ProjectContext,
        *,
        actor: str,
        session_id: str | None,
        by: Any,
    ) -> None:
        self.store = store
        self.session = session
        self.new_id = project.new_id
        self.now_ms = project.clock.now_ms()
        self.actor, self.session_id, self.by = actor, session_id, by
        self.state = store.lock(session)
        self.operation = self.new_id()
        self._last_event_no = 0

    def put(self, stored: StoredT, fields: Mapping[str, Any], is_touched: bool) -> StoredT:
        """Write fields of a row, its index and the state; return it."""
        raise NotImplementedError

    def revert(self, event: Event) -> None:
        """Revert one event, and record that."""
        raise NotImplementedError

    def identify(
        self, prefix: str, count: int, *, id: str | None = None, short_id: str | None = None
    ) -> dict[str, str]:
        """Return the id columns of a new row, one of ``count``."""
        id = id or self.new_id()
        name = short_id or self.store.new_short_id(self.session, id, prefix, count)
        return {"id": id, "short_id": name, "key": key_of(name), "bare_key": bare_key_of(name)}

    def change(
        self,
        stored: StoredT,
        kind: Any,
        fields: Mapping[str, Any],
        note: Mapping[str, Any] | None = None,
        *,
        where: str | None = None,
        is_touched: bool = True,
    ) -> StoredT:
        """Update fields of a row and record the event.

        Args:
            stored: The row.
            kind: The kind of the event.
            fields: The fields, each with its new value.
            note: More to tell of what happened.
            where: The session it belongs to, if not that of the transaction.
            is_touched: False for upkeep that leaves the time of the last change.

        Returns:
            The row as it is now.
        """
        precondition.get()(stored[1])
        before = {name: self.store.plain(stored[1], name) for name in fields}
        after = {name: plain_value(value) for name, value in fields.items()}
        changed = self.put(stored, fields, is_touched)
        self.event(stored[0], kind, before, {**after, **(note or {})}, where)
        return changed

    def event(
        self,
        no: int,
        kind: Any,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        where: str | None = None,
    ) -> None:
        """Record what happened to a row."""
        values = {
            f"{self.store.WHAT}_no": no,
            "id": self.new_id(),
            "kind": kind,
            "actor": to_storable(self.actor),
            "session_id": where or self.session_id,
            "at": self.now_ms,
            "before": json.dumps(before),
            "after": json.dumps(after),
        }
        if self.store.OPERATION == "operation":
            values |= {"operation": self.operation, "acted_as": self.by}
        self._last_event_no = self.store.insert(
            self.session, values, table=f"{self.store.WHAT}_events"
        )

    def index(self, kind: RecordKind, no: int, terms: RecordTerms) -> None:
        """Put the terms of a row into the index of records."""
        project_no = self.store.scope.project_no
        self.store.database.records.put(self.session, kind, project_no, [(no, terms)])

    def next_operation(self) -> None:
        """Begin an operation that is undone by itself."""
        self.operation = self.new_id()

    def undo(self, stored: StoredT) -> StoredT:
        """Revert the newest operation in all rows that it touched.

        Raises:
            ConflictError: If nothing is left, or one of the rows was changed since.
        """
        store, what = self.store, self.store.WHAT
        newest = self._newest(stored[0])
        if newest is None or newest.kind in _LASTING:
            short_id = stored[1].short_id
            raise ConflictError.with_hint(
                f"There is nothing to undo on {what} {short_id}: it is as it was made.",
                store.UNMADE_HINT,
                brief="Nothing to undo",
                **{f"{what}_id": short_id},
            )
        if newest.by == "person":
            self.require_person("undo what a person did")
        rest = f"{store.OPERATION} = ? AND undone_by IS NULL ORDER BY no"
        events = store.events(self.session, rest, (newest.operation,))
        for no in sorted({event.row_no for event in events}):
            newer = self._newest(no)
            if newer is not None and newer.operation != newest.operation:
                short_id = store.stored(self.session, no)[1].short_id
                raise ConflictError.with_hint(
                    f"{what.capitalize()} {short_id}, which the same change touched, was changed"
                    " since.",
                    f"Undo that first: `{store.UNDO_COMMAND} {short_id}`.",
                    brief="A part of the change was changed since",
                    **{f"{what}_id": short_id},
                )
        self.next_operation()
        for event in reversed(events):
            self.revert(event)
            self.session.run(
                store.sql(
                    f"UPDATE {store.WHAT}_events SET undone_by = ?"
                    " WHERE project_no = :project AND no = ?"
                ),
                (self._last_event_no or event.no, event.no),
            )
        return store.stored(self.session, stored[0])

    def _newest(self, no: int) -> Event | None:
        """Return the newest event of a row that is neither undone nor an undo."""
        newest = self.store.events_of(
            self.session, no, f" AND {_UNDOABLE} ORDER BY no DESC LIMIT 1"
        )
        return newest[0] if newest else None

    def require_person(self, what: str) -> None:
        """Raise ``InvalidInputError`` unless a person acts.

        An agent must not raise the trust in its own statements.
        """
        if self.by != "person":
            raise InvalidInputError.with_hint(
                f"Only a person can {what}.",
                f"Ask the person, who can do it with `smara {self.store.TABLE.split()[0]}`.",
                field="by",
                brief=f"Only a person can {what}",
            )


class ChangeJournal(Generic[StoreT, ChangeT]):
    """Begins changes, with a default actor and session."""

    def __init__(self, project: ProjectContext, store: StoreT, change: type[ChangeT]) -> None:
        self.project = project
        self.store = store
        self._change = change

    @contextmanager
    def begin(
        self, actor: str | None = None, session_id: str | None = None, by: str = "agent"
    ) -> Iterator[ChangeT]:
        """Begin a transaction in which the rows may be changed.

        Args:
            actor: Who acts; by default the actor of the project.
            session_id: The session in which it happens; by default that of the settings.
            by: As whom: a ``person``, an ``agent`` or the ``system``.
        """
        who = self.project.actor if actor is None else clean_name(actor, "actor")
        where = self.project.settings.session
        if session_id is not None:
            where = clean_name(session_id, "session_id")
        with self.store.database.write() as session:
            turn = self._change(
                self.store, session, self.project, actor=who, session_id=where, by=by
            )
            before = turn.state
            yield turn
            if turn.state != before:
                columns = ", ".join(f"{name} = ?" for name in self.store.State._fields)
                session.run(
                    self.store.sql(
                        f"UPDATE {self.store.STATE} SET {columns} WHERE project_no = :project"
                    ),
                    tuple(turn.state),
                )
