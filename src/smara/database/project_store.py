"""Give every room's store its project scope and id lookup.

`ProjectStore` inserts the project into statements. `NamedStore` also finds rows by UUID,
short id or a prefix of either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from smara.core.ids import SHORTEST_PREFIX, code_of, key_of, length_for
from smara.core.scope import Scope, is_id, scoped_sql
from smara.database.database import Database, Session
from smara.errors import InvalidInputError, NotFoundError

_MOST_CANDIDATES = 8
_LONGEST_NAME = 100


class ProjectStore:
    """Some tables, as one project sees them."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self.database = database
        self.scope = scope

    def sql(self, text: str) -> str:
        """A statement with the wall of this project put in."""
        return scoped_sql(self.scope, text)


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

    def numbers(self, session: Session, rest: str, values: Sequence[Any] = ()) -> list[int]:
        """Numbers of rows by the rest of a statement."""
        statement = (
            f"SELECT {self.ALIAS}.no FROM {self.TABLE} WHERE {self.ALIAS}.project_no = "
            f":project{rest}"
        )
        return [row[0] for row in session.all(self.sql(statement), values)]

    def looked_up(
        self, session: Session, conditions: Sequence[tuple[str, Any]], limit: int
    ) -> list[tuple[int, str]]:
        """Return numbers and short ids of rows that match a condition."""
        where = " OR ".join(condition for condition, _ in conditions)
        values = [
            value
            for _, given in conditions
            for value in (given if isinstance(given, tuple) else (given,))
        ]
        statement = (
            f"SELECT {self.ALIAS}.no, {self.ALIAS}.short_id FROM {self.TABLE}"
            f" WHERE {self.ALIAS}.project_no = :project AND ({where}) LIMIT ?"
        )
        return [(row[0], row[1]) for row in session.all(self.sql(statement), (*values, limit))]

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
        length = length_for(count)
        while True:
            short_id = f"{prefix}-{code_of(uuid, length)}"
            if not self.looked_up(session, [(f"{self.ALIAS}.key = ?", key_of(short_id))], 1):
                return short_id
            length += 1

    def find_asked_for(self, session: Session, query: str) -> int | None:
        """Return the number of the row a query names."""
        text = query.strip()
        if not text or len(text) > _LONGEST_NAME or " " in text:
            return None
        try:
            return self.find_no(session, text)
        except InvalidInputError:
            return None


def plain_value(value: Any) -> Any:
    """Return a field's value as the JSON of an event holds it."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
