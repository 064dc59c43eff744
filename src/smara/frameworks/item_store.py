"""Store the items of frameworks: SQL and row mapping, no decisions.

A namespace is stored as its labels, each followed by a separator that no label contains. So the
namespaces below another are one range of the index, and ``foo`` is no beginning of ``foobar``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import ProjectStore
from smara.frameworks.models import Item
from smara.frameworks.store import to_json

_SEPARATOR, _AFTER_SEPARATOR = "\x1f", "\x20"
_ESCAPED = "\ufdd0001f"  # as `to_storable` would write it, so `from_storable` reads it
_COLUMNS = (
    "i.no, i.id, i.framework, i.namespace, i.name, i.item, i.searched_fields, i.revision,"
    " i.ttl_seconds, i.expires_at, i.created_at, i.updated_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM framework_items i WHERE i.project_no = :project"
_NUMBERS = _SELECT.replace(_COLUMNS, "i.no")
_SEARCHED = " AND (i.searched_fields IS NULL OR i.searched_fields <> '[]')"
_NAMESPACES = _SELECT.replace(_COLUMNS, "DISTINCT i.namespace")
_NEWEST, _BY_NAME = "i.updated_at DESC, i.no DESC", "i.namespace, i.name"
_LIVE = " AND i.framework = ? AND (i.expires_at IS NULL OR i.expires_at > ?)"


def to_path(labels: Sequence[str]) -> str:
    """Return a namespace as it is stored."""
    return "".join(
        to_storable(label).replace(_SEPARATOR, _ESCAPED) + _SEPARATOR for label in labels
    )


def from_path(path: str) -> tuple[str, ...]:
    """Return the labels of a stored namespace.

    >>> from_path(to_path(["a", "b\\x1fc"])) == ("a", "b\\x1fc")
    True
    """
    return tuple(from_storable(label) for label in path.split(_SEPARATOR)[:-1])


def item_terms(item: Item) -> RecordTerms:
    """Return the terms of an item, its name and namespace as head."""
    head = " ".join((*item.namespace, item.name))
    return terms_of(head, item.content)


def indexed_items(session: Session, after: int = 0) -> Iterator[tuple[int, int, Item]]:
    """Yield every project's searchable items above a number, for the index."""
    rows = session.all(
        f"SELECT i.project_no, {_COLUMNS} FROM framework_items i WHERE i.no > ?{_SEARCHED}"
        " ORDER BY i.no",
        (after,),
    )
    for project_no, *row in rows:
        yield int(row[0]), int(project_no), _item(row)


class ItemStore(ProjectStore):
    """The tables ``framework_items`` and ``framework_vectors`` of one project."""

    def find(
        self, session: Session, framework: str, namespace: Sequence[str], name: str, now_ms: int
    ) -> Item | None:
        """Return an item that has not expired."""
        rows = self.rows(
            session,
            f"{_SELECT}{_LIVE} AND i.namespace = ? AND i.name = ?",
            framework,
            now_ms,
            to_path(namespace),
            to_storable(name),
        )
        return _item(rows[0]) if rows else None

    def page(
        self,
        session: Session,
        framework: str,
        prefix: Sequence[str],
        *,
        now_ms: int,
        is_newest_first: bool,
        holding: Sequence[str],
        limit: int,
        offset: int,
    ) -> list[Item]:
        """Return items of a namespace and those below it."""
        rows = self.rows(
            session,
            f"{_SELECT}{_LIVE}{_BELOW if prefix else ''}{_HOLDING * len(holding)}"
            f" ORDER BY {_NEWEST if is_newest_first else _BY_NAME} LIMIT ? OFFSET ?",
            framework,
            now_ms,
            *_below(prefix),
            *map(_pattern, holding),
            limit,
            offset,
        )
        return [_item(row) for row in rows]

    def searched_numbers(
        self, session: Session, framework: str, prefix: Sequence[str], now_ms: int
    ) -> list[int]:
        """Return the numbers of searchable items below a prefix, newest first."""
        rows = self.rows(
            session,
            f"{_NUMBERS}{_LIVE}{_BELOW if prefix else ''}{_SEARCHED} ORDER BY {_NEWEST}",
            framework,
            now_ms,
            *_below(prefix),
        )
        return [int(row[0]) for row in rows]

    def by_numbers(self, session: Session, numbers: Sequence[int], now_ms: int) -> dict[int, Item]:
        """Return items that have not expired, of any framework, by number."""
        rows = self.rows(
            session,
            f"{_SELECT} AND (i.expires_at IS NULL OR i.expires_at > ?) AND i.no IN (:some)",
            now_ms,
            some=numbers,
        )
        return {int(row[0]): _item(row) for row in rows}

    def by_names(
        self, session: Session, framework: str, names: Sequence[str], now_ms: int
    ) -> list[Item]:
        """Return items that have not expired by their names, in any namespace."""
        rows = self.rows(
            session,
            f"{_SELECT}{_LIVE} AND i.name IN (:some)",
            framework,
            now_ms,
            some=[to_storable(name) for name in names],
        )
        return [_item(row) for row in rows]

    def count(self, session: Session) -> int:
        """Return how many items the project has."""
        return self.number(
            session, "SELECT count(*) FROM framework_items WHERE project_no = :project"
        )

    def namespaces(
        self, session: Session, framework: str, prefix: Sequence[str], now_ms: int
    ) -> list[tuple[str, ...]]:
        """Return the namespaces that have items, in order."""
        rows = self.rows(
            session,
            f"{_NAMESPACES}{_LIVE}{_BELOW if prefix else ''} ORDER BY i.namespace",
            framework,
            now_ms,
            *_below(prefix),
        )
        return [from_path(row[0]) for row in rows]

    def write(self, session: Session, item: Item, text: str) -> Item:
        """Insert or replace an item; return it as it is then."""
        searched = None if item.fields is None else json.dumps(list(item.fields))
        row = session.one(
            self.sql(
                "INSERT INTO framework_items (project_no, id, framework, namespace, name, item,"
                " searched_fields, revision, ttl_seconds, expires_at, created_at, updated_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, framework, namespace, name) DO UPDATE SET"
                " item = excluded.item, searched_fields = excluded.searched_fields,"
                " revision = framework_items.revision + 1, ttl_seconds = excluded.ttl_seconds,"
                " created_at = CASE WHEN framework_items.expires_at <= excluded.updated_at"
                " THEN excluded.created_at ELSE framework_items.created_at END,"
                " expires_at = excluded.expires_at, updated_at = excluded.updated_at"
                " RETURNING no, id, revision, created_at"
            ),
            (
                item.id,
                item.framework,
                to_path(item.namespace),
                to_storable(item.name),
                text,
                searched,
                item.revision,
                item.ttl_seconds,
                item.expires_at,
                item.created_at,
                item.updated_at,
            ),
        )
        if row is None:
            raise AssertionError("an item that was just written is gone")
        no, item_id, revision, created_at = row
        written = replace(item, no=no, id=item_id, revision=revision, created_at=created_at)
        if revision > 1:
            self._forget_derived(session, [written.no])
        if item.fields is None or item.fields:
            terms = [(written.no, item_terms(written))]
            project_no = self.scope.project_no
            self.database.records.put(session, "item", project_no, terms, is_new=True)
        return written

    def hold(self, session: Session, framework: str, namespace: Sequence[str], name: str) -> None:
        """Lock an item until the transaction ends."""
        self.run(
            session,
            "UPDATE framework_items SET revision = revision WHERE project_no = :project"
            " AND framework = ? AND namespace = ? AND name = ?",
            framework,
            to_path(namespace),
            to_storable(name),
        )

    def delete(self, session: Session, numbers: Sequence[int]) -> None:
        """Delete items with their vectors and terms."""
        self._forget_derived(session, numbers)
        self.run(
            session,
            "DELETE FROM framework_items WHERE project_no = :project AND no IN (:some)",
            some=numbers,
        )

    def expired(self, session: Session, framework: str, now_ms: int) -> list[int]:
        """Return the numbers of items whose time is over."""
        rows = self.rows(
            session,
            "SELECT no FROM framework_items WHERE project_no = :project AND framework = ?"
            " AND expires_at <= ?",
            framework,
            now_ms,
        )
        return [int(row[0]) for row in rows]

    def renew(self, session: Session, items: Iterable[Item], now_ms: int) -> None:
        """Let items live as long again as they were given."""
        self.run_many(
            session,
            "UPDATE framework_items SET expires_at = ? WHERE project_no = :project AND no = ?",
            [
                (now_ms + int(item.ttl_seconds * 1000), item.no)
                for item in items
                if item.ttl_seconds is not None
            ],
        )

    def add_vectors(
        self, session: Session, no: int, space: str, vectors: Sequence[tuple[str, int, bytes]]
    ) -> None:
        """Add the vectors of an item that has none."""
        self.run_many(
            session,
            "INSERT INTO framework_vectors (project_no, item_no, space, field, position, vector)"
            " VALUES (:project, ?, ?, ?, ?, ?)",
            [(no, space, to_storable(field), place, vector) for field, place, vector in vectors],
        )

    def vectors_below(
        self, session: Session, framework: str, prefix: Sequence[str], *, space: str, now_ms: int
    ) -> list[tuple[int, bytes]]:
        """Return the vectors below a prefix, with the items' numbers."""
        rows = self.rows(
            session,
            "SELECT i.no, v.vector FROM framework_items i JOIN framework_vectors v"
            " ON v.item_no = i.no AND v.space = ? WHERE i.project_no = :project"
            f"{_LIVE}{_BELOW if prefix else ''} ORDER BY i.no",
            space,
            framework,
            now_ms,
            *_below(prefix),
        )
        return [(int(row[0]), bytes(row[1])) for row in rows]

    def vectors_of(self, session: Session, numbers: Sequence[int], space: str) -> dict[int, bytes]:
        """Return the vectors of items by number."""
        rows = self.rows(
            session,
            "SELECT item_no, vector FROM framework_vectors WHERE project_no = :project"
            " AND space = ? AND item_no IN (:some)",
            space,
            some=numbers,
        )
        return {int(row[0]): bytes(row[1]) for row in rows}

    def vector_bytes(self, session: Session, space: str) -> int | None:
        """Return the length of a vector of a space."""
        rows = self.rows(
            session,
            "SELECT length(vector) FROM framework_vectors WHERE project_no = :project"
            " AND space = ? LIMIT 1",
            space,
        )
        return int(rows[0][0]) if rows else None

    def without_vectors(
        self,
        session: Session,
        framework: str,
        prefix: Sequence[str],
        *,
        space: str,
        now_ms: int,
        limit: int,
    ) -> list[Item]:
        """Return searchable items that have no vectors in a space."""
        rows = self.rows(
            session,
            f"{_SELECT}{_LIVE}{_BELOW if prefix else ''}{_SEARCHED}"
            " AND NOT EXISTS (SELECT 1 FROM framework_vectors v WHERE v.item_no = i.no"
            " AND v.space = ?) ORDER BY i.no LIMIT ?",
            framework,
            now_ms,
            *_below(prefix),
            space,
            limit,
        )
        return [_item(row) for row in rows]

    def _forget_derived(self, session: Session, numbers: Sequence[int]) -> None:
        self.database.records.remove(session, "item", numbers)
        self.delete_vectors(session, numbers)

    def delete_vectors(self, session: Session, numbers: Sequence[int]) -> None:
        """Delete the vectors of items."""
        self.run(
            session,
            "DELETE FROM framework_vectors WHERE project_no = :project AND item_no IN (:some)",
            some=numbers,
        )


_HOLDING = " AND i.item LIKE ? ESCAPE '~'"
_LONGEST_PATTERN = 500  # SQLite refuses patterns of 50,000 bytes
_BELOW = " AND i.namespace >= ? AND i.namespace < ?"


def _pattern(text: str) -> str:
    """Return the pattern of values that hold a text, or a long one's beginning."""
    literal = to_json(text[:_LONGEST_PATTERN])[1:-1]
    return "%" + re.sub(r"([%_~])", r"~\1", literal) + "%"


def _below(prefix: Sequence[str]) -> tuple[str, ...]:
    begin = to_path(prefix)
    return (begin, begin[:-1] + _AFTER_SEPARATOR) if prefix else ()


def _item(row: Row | Sequence[Any]) -> Item:
    return Item(
        no=int(row[0]),
        id=row[1],
        framework=row[2],
        namespace=from_path(row[3]),
        name=from_storable(row[4]),
        value=json.loads(row[5]),
        fields=None if row[6] is None else tuple(json.loads(row[6])),
        revision=int(row[7]),
        ttl_seconds=row[8],
        expires_at=row[9],
        created_at=row[10],
        updated_at=row[11],
    )
