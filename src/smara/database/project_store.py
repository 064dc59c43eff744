"""Give every room's store its project scope and id lookup.

`ProjectStore` inserts the project into statements. `NamedStore` also finds rows by UUID,
short id or a prefix of either. `JournalStore` also has their events; see `smara.journal`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from smara.core.escape import from_storable
from smara.core.ids import SHORTEST_PREFIX, code_of, key_of, length_for
from smara.core.scope import Scope, is_id, scoped_sql
from smara.database.database import Database, Row, Session, marks, parts
from smara.database.session import number
from smara.errors import InvalidInputError, NotFoundError

RecordT = TypeVar("RecordT")
StoredT = TypeVar("StoredT", bound=tuple[int, Any])
StateT = TypeVar("StateT")
AnswerT = TypeVar("AnswerT")
P = ParamSpec("P")
_MOST_CANDIDATES = 8
_LONGEST_NAME = 100


class ProjectStore:
    """Some tables, as one project sees them.

    In a statement, ``:project`` stands for the project and ``:some`` for a list of any length.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self.database = database
        self.scope = scope

    def sql(self, text: str) -> str:
        """A statement with the wall of this project put in."""
        return scoped_sql(self.scope, text)

    def ask(
        self,
        question: Callable[Concatenate[Session, P], AnswerT],
        *args: P.args,
        **named: P.kwargs,
    ) -> AnswerT:
        """Ask one question in a session of its own."""
        with self.database.read() as session:
            return question(session, *args, **named)

    def rows(
        self, session: Session, statement: str, *values: Any, some: Sequence[Any] | None = None
    ) -> list[Row]:
        """Read rows; the list ``some`` comes after all other values."""
        text = self.sql(statement)
        if some is None:
            return session.all(text, values)
        return [
            row
            for part in parts(some)
            for row in session.all(text.replace(":some", marks(len(part))), (*values, *part))
        ]

    def row(self, session: Session, statement: str, *values: Any) -> Row | None:
        """Read the first row, or ``None``."""
        return session.one(self.sql(statement), values)

    def number(self, session: Session, statement: str, *values: Any) -> int:
        """Read one number; 0 if there is no row."""
        return number(session, self.sql(statement), values)

    def run(
        self, session: Session, statement: str, *values: Any, some: Sequence[Any] | None = None
    ) -> int:
        """Run a statement, in parts if listed; return the changed rows."""
        text = self.sql(statement)
        if some is None:
            return session.run(text, values)
        return sum(
            session.run(text.replace(":some", marks(len(part))), (*values, *part))
            for part in parts(some)
        )

    def run_many(self, session: Session, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for every row of values."""
        session.run_many(self.sql(statement), list(rows))


class NamedStore(ProjectStore):
    """Tables of rows called by UUID, short id, or parts."""

    TABLE: ClassVar[str]
    """The table with what it is called in statements, ``tasks t``."""
    ALIAS: ClassVar[str]
    """What it is called in statements, ``t``."""
    WHAT: ClassVar[str]
    """What one row is called in an error, ``task``."""
    HINT: ClassVar[str]
    """Where to look when there is no such row, in an error."""
    WALL: ClassVar[str] = ""
    """The condition, after that on the project, for rows that the viewer may see."""
    viewer: tuple[Any, ...] = ()
    """The values of the wall; with none there is no wall, as for what keeps the whole store."""

    @property
    def wall(self) -> str:
        """The condition that hides the rows of others in a project."""
        return self.WALL if self.viewer else ""

    def numbers(self, session: Session, rest: str, values: Sequence[Any] = ()) -> list[int]:
        """Numbers of rows by the rest of a statement."""
        statement = (
            f"SELECT {self.ALIAS}.no FROM {self.TABLE} WHERE {self.ALIAS}.project_no = "
            f":project{self.wall}{rest}"
        )
        return [row[0] for row in session.all(self.sql(statement), (*self.viewer, *values))]

    def looked_up(
        self,
        session: Session,
        conditions: Sequence[tuple[str, Any]],
        limit: int,
        is_seen: bool = True,
    ) -> list[tuple[int, str]]:
        """Return numbers and short ids of rows that match a condition."""
        wall, viewer = (self.wall, self.viewer) if is_seen else ("", ())
        where = " OR ".join(condition for condition, _ in conditions)
        values = [
            value
            for _, given in conditions
            for value in (given if isinstance(given, tuple) else (given,))
        ]
        statement = (
            f"SELECT {self.ALIAS}.no, {self.ALIAS}.short_id FROM {self.TABLE}"
            f" WHERE {self.ALIAS}.project_no = :project{wall} AND ({where}) LIMIT ?"
        )
        rows = session.all(self.sql(statement), (*viewer, *values, limit))
        return [(row[0], row[1]) for row in rows]

    def find_no(self, session: Session, given: object) -> int | None:
        """Return the number of the row called so, or ``None``.

        Raises ``InvalidInputError`` when several are meant.
        """
        if not isinstance(given, str) or not is_id(given.strip()):
            return None
        text, at = given.strip(), self.ALIAS
        key = key_of(text)
        exact = self.looked_up(session, [(f"{at}.key = ?", key), (f"{at}.id = ?", text)], 2)
        if exact:
            return exact[0][0]
        found = self.looked_up(session, [(f"{at}.bare_key = ?", key)], _MOST_CANDIDATES + 1)
        if not found and len(key) >= SHORTEST_PREFIX:
            ends = (key, key + "\U0010ffff")
            begins = [
                (f"({at}.{name} >= ? AND {at}.{name} < ?)", ends)
                for name in ("key", "bare_key", "id")
            ]
            found = self.looked_up(session, begins, _MOST_CANDIDATES + 1)
        if len(found) > 1:
            names = sorted(short_id for _, short_id in found)[:_MOST_CANDIDATES]
            more = " and more" if len(found) > _MOST_CANDIDATES else ""
            meanings = f"{', '.join(names)}{more}"
            raise InvalidInputError(
                f"{text!r} may mean {meanings}. Give more characters of the id.",
                candidates=names,
                brief=f"Ambiguous {self.WHAT} id: {text}",
                hint=f"It may mean {meanings}. Give more characters.",
            )
        return found[0][0] if found else None

    def require_no(self, session: Session, given: object) -> int:
        """Return the number of the row that is called so.

        Raises:
            NotFoundError: If no row is called so.
            InvalidInputError: If several are meant.
        """
        no = self.find_no(session, given)
        if no is None:
            brief = f"{self.WHAT.capitalize()} not found: " + (
                given if isinstance(given, str) else repr(given)
            )
            facts: dict[str, Any] = {f"{self.WHAT}_id": given}
            raise NotFoundError(f"{brief}. {self.HINT}", brief=brief, hint=self.HINT, **facts)
        return no

    def new_short_id(self, session: Session, uuid: str, prefix: str, count: int) -> str:
        """Return the shortest free id for a table of `count` rows."""
        lengths = itertools.count(length_for(count))
        names = (f"{prefix}-{code_of(uuid, length)}" for length in lengths)
        same = f"{self.ALIAS}.key = ?"
        return next(
            name
            for name in names
            if not self.looked_up(session, [(same, key_of(name))], 1, is_seen=False)
        )

    def find_asked_for(self, session: Session, query: str) -> int | None:
        """Return the number of the row a query names."""
        text = query.strip()
        if not text or len(text) > _LONGEST_NAME or " " in text:
            return None
        try:
            return self.find_no(session, text)
        except InvalidInputError:
            return None


class Event(NamedTuple):
    """One change of one row: who, when, before and after."""

    no: int
    row_no: int
    operation: Any
    id: str
    kind: Any
    actor: str
    by: Any
    session_id: str | None
    at: int
    before: dict[str, Any]
    after: dict[str, Any]
    is_undone: bool

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that every room's event has."""
        return {
            name: getattr(self, name)
            for name in ("id", "kind", "actor", "session_id", "at", "before", "after", "is_undone")
        }


class JournalStore(NamedStore, Generic[RecordT, StoredT, StateT]):
    """The rows of one project with their events, and its state.

    The events of ``task`` rows are in ``task_events``, by ``task_no``.
    """

    SELECT: ClassVar[str]
    """The columns and tables of a row; the last two columns are its number and its project."""
    STATE: ClassVar[str]
    """The table with the state of each project."""
    State: ClassVar[Any]
    """The state, a named tuple whose fields are columns."""
    OPERATION: ClassVar[str] = "no"
    """The column that joins the events of one operation; an event is one by itself."""
    ACTED_AS: ClassVar[str] = "'agent'"
    UNDO_COMMAND: ClassVar[str]
    UNMADE_HINT: ClassVar[str]
    """What to do when there is nothing to undo, in an error."""

    def records(
        self, session: Session, rows: Sequence[Row], has_relations: bool = True
    ) -> list[StoredT]:
        """Return the records of rows of ``SELECT``, with their numbers."""
        raise NotImplementedError

    @staticmethod
    def plain(record: Any, name: str) -> Any:
        """Return a field of a record as events hold it."""
        return plain_value(getattr(record, name))

    def select(self, session: Session, rest: str, values: Sequence[Any] = ()) -> list[StoredT]:
        """Return records by the rest of a statement."""
        where = f"{self.SELECT} WHERE {self.ALIAS}.project_no = :project{self.wall}{rest}"
        return self.records(session, session.all(self.sql(where), (*self.viewer, *values)))

    def by_numbers(
        self, session: Session, numbers: Iterable[int], has_relations: bool = True
    ) -> dict[int, RecordT]:
        """Return records by number, in the order of the numbers."""
        order = list(dict.fromkeys(numbers))
        # The plus keeps SQLite from reading a whole project by an index that begins with it.
        where = f"+{self.ALIAS}.project_no = :project{self.wall} AND {self.ALIAS}.no IN (:some)"
        rows = self.rows(session, f"{self.SELECT} WHERE {where}", *self.viewer, some=order)
        found: dict[int, RecordT] = dict(self.records(session, rows, has_relations))
        return {no: found[no] for no in order if no in found}

    def stored(self, session: Session, no: int) -> StoredT:
        """Return the record of a number, with the number."""
        # A caller that has the number was let in before; a writer sees what it has just written.
        where = f"{self.SELECT} WHERE {self.ALIAS}.project_no = :project AND {self.ALIAS}.no = ?"
        return self.records(session, self.rows(session, where, no))[0]

    def find(self, session: Session, given: object) -> RecordT | None:
        """Return the record that is called so, or ``None``."""
        no = self.find_no(session, given)
        return None if no is None else self.by_numbers(session, (no,))[no]

    def require(self, session: Session, given: object) -> StoredT:
        """Return the record that is called so, or raise ``NotFoundError``."""
        return self.stored(session, self.require_no(session, given))

    def insert(self, session: Session, values: Mapping[str, Any], table: str = "") -> int:
        """Insert a row and return its number."""
        table, columns = table or self.TABLE.split()[0], ", ".join(values)
        return self.number(
            session,
            f"INSERT INTO {table} (project_no, {columns})"
            f" VALUES (:project, {marks(len(values))}) RETURNING no",
            *values.values(),
        )

    def write(self, session: Session, no: int, values: Mapping[str, Any]) -> None:
        """Write columns of a row."""
        table, columns = self.TABLE.split()[0], ", ".join(f"{name} = ?" for name in values)
        session.run(
            self.sql(f"UPDATE {table} SET {columns} WHERE project_no = :project AND no = ?"),
            (*values.values(), no),
        )

    def events_of(
        self, session: Session, no: int, rest: str, values: Sequence[Any] = ()
    ) -> list[Event]:
        """Return the events of a row, by the rest of a statement."""
        return self.events(session, f"{self.WHAT}_no = ?{rest}", (no, *values), is_of_row=True)

    def events(
        self, session: Session, rest: str, values: Sequence[Any], is_of_row: bool = False
    ) -> list[Event]:
        """Return events by the rest of a statement."""
        # Without statistics SQLite takes the events of the project for as few as those of a row.
        rows = session.all(
            self.sql(
                f"SELECT no, {self.WHAT}_no, {self.OPERATION}, id, kind, actor, {self.ACTED_AS},"
                f" session_id, at, before, after, undone_by FROM {self.WHAT}_events"
                f" WHERE {'+' if is_of_row else ''}project_no = :project AND {rest}"
            ),
            values,
        )
        return [
            Event(
                no=row[0],
                row_no=row[1],
                operation=row[2],
                id=row[3],
                kind=row[4],
                actor=from_storable(row[5]),
                by=row[6],
                session_id=row[7],
                at=row[8],
                before=json.loads(row[9]),
                after=json.loads(row[10]),
                is_undone=row[11] is not None,
            )
            for row in rows
        ]

    def history(self, session: Session, no: int, limit: int) -> list[Event]:
        """Return the events of a row, newest first."""
        return self.events_of(session, no, " ORDER BY no DESC LIMIT ?", (limit,))

    def state(self, session: Session) -> StateT:
        """Return the state of the project."""
        columns = ", ".join(self.State._fields)
        row = session.one(
            self.sql(f"SELECT {columns} FROM {self.STATE} WHERE project_no = :project")
        )
        state: StateT = self.State(*row) if row else self.State()
        return state

    def lock(self, session: Session) -> StateT:
        """Lock and return the state of the project until the transaction ends."""
        names = self.State._fields
        statement = self.sql(
            f"UPDATE {self.STATE} SET {names[0]} = {names[0]} WHERE project_no = :project"
            f" RETURNING {', '.join(names)}"
        )
        row = session.one(statement)
        if row is None:
            session.run(
                self.sql(
                    f"INSERT INTO {self.STATE} (project_no) VALUES (:project)"
                    " ON CONFLICT (project_no) DO NOTHING"
                )
            )
            row = session.one(statement)
        state: StateT = self.State(*row) if row else self.State()
        return state


def plain_value(value: Any) -> Any:
    """Return a field's value as the JSON of an event holds it."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


class Tombstones(ProjectStore):
    """Salted hashes of what was erased from this project."""

    def add(
        self,
        session: Session,
        kind: str,
        names: Iterable[str],
        erased_at: int,
        salt: bytes,
        is_project: bool = False,
    ) -> None:
        """Remember names; ``salt`` becomes the store's if it has none.

        If the project goes with them, one of the same repository is kept from them, too: it gets
        another id.
        """
        session.run(
            "INSERT INTO tombstones (kind, hash, erased_at) SELECT 'salt', ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE kind = 'salt')",
            (salt, erased_at),
        )
        key = next(iter(self._salts(session)), salt)
        projects = self._projects(session) if is_project else [self.scope.project_id]
        session.run_many(
            "INSERT INTO tombstones (kind, hash, erased_at) VALUES (?, ?, ?)"
            " ON CONFLICT (kind, hash) DO UPDATE SET erased_at = excluded.erased_at",
            [
                (kind, _tombstone(key, project, kind, name), erased_at)
                for name in names
                for project in projects
            ],
        )

    def erased(self, session: Session, kind: str, names: Iterable[str]) -> dict[str, int]:
        """Return when names were erased, of those that were."""
        # A store from which nothing was erased answers after the first question.
        keys, every = self._salts(session), list(names)
        projects = self._projects(session) if keys else []
        hashes = {
            _tombstone(key, project, kind, name): name
            for key in keys
            for project in projects
            for name in every
        }
        statement = "SELECT hash, erased_at FROM tombstones WHERE kind = ? AND hash IN (:some)"
        return {
            hashes[bytes(found)]: int(erased_at)
            for part in parts(list(hashes))
            for found, erased_at in session.all(
                statement.replace(":some", marks(len(part))), (kind, *part)
            )
        }

    def _salts(self, session: Session) -> list[bytes]:
        """Return the salts of this store and of those that were merged into it."""
        rows = session.all(
            "SELECT hash FROM tombstones WHERE kind = 'salt' ORDER BY erased_at, hash"
        )
        return [bytes(row[0]) for row in rows]

    def _projects(self, session: Session) -> list[str]:
        """Return the id of this project, and how its repositories and folders are known."""
        rows = session.all(
            self.sql(
                "SELECT kind, coalesce(first_commit, host), coalesce(remote, path, '')"
                " FROM project_places WHERE project_no = :project"
            )
        )
        return [self.scope.project_id, *(" ".join(map(str, row)) for row in rows)]


def _tombstone(key: bytes, project: str, kind: str, name: str) -> bytes:
    text = "\0".join((project, kind, name))
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=key, digest_size=16).digest()
