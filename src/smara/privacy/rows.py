"""Read the rows of a project as JSON values.

Numbers of rows never leave the store: a reference is written as the key of the row it names. So
two stores with the same records give the same lines.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from smara.core.scope import Scope
from smara.core.startup.record import dataclass
from smara.database.database import Database, Session
from smara.database.session import Column, number
from smara.privacy.tables import BY_NAME, JSON_COLUMNS, RECORDS, TableSpec

NUMBERS = ("no", "project_no")
"""The columns that no row is exported with."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that are meant: whose, and of which time."""

    person: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    viewer: str | None = None
    """Who looks: personal memories of others are left out. ``None`` sees all."""


EVERYTHING = Selection()


class RowReader:
    """Reads the rows of one project within one transaction."""

    def __init__(self, database: Database, session: Session, scope: Scope) -> None:
        self._session = session
        self._scope = scope
        self._is_postgres = database.kind == "postgres"
        self.columns = database.tables(session)

    def exported(self, table: TableSpec) -> list[Column]:
        """Return the columns that a table is exported with."""
        left_out = {*NUMBERS, *table.omitted}
        return [each for each in self.columns[table.name] if each.name not in left_out]

    def rows(self, table: TableSpec, selection: Selection = EVERYTHING) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, in an order imports keep."""
        statement, values, widths = self.statement(table, selection)
        columns = self.exported(table)
        for row in self._session.each(statement, values):
            at, line = 0, {}
            for column, width in zip(columns, widths, strict=True):
                name = exported_name(table, column.name)
                line[name] = _json_value(table, column, row[at : at + width])
                at += width
            yield line

    def names(self, table: TableSpec, where: str, values: Sequence[Any]) -> Iterator[str]:
        """Yield the names, for tombstones, of rows by a condition on ``t``."""
        joins: list[str] = []
        found = [
            self._expressions(table, column, number, joins)
            for number, column in enumerate(table.key)
        ]
        shown = ", ".join(each for expressions in found for each in expressions)
        statement = (
            f"SELECT {shown} FROM {table.name} t{''.join(joins)}"
            f" WHERE t.project_no = {int(self._scope.project_no)} AND {where}"
        )
        for row in self._session.each(statement, values) if table.key else ():
            at, key = 0, []
            for expressions in found:
                part = row[at : at + len(expressions)]
                key.append(part[0] if len(part) == 1 else list(part))
                at += len(expressions)
            yield row_name(key)

    def statement(
        self, table: TableSpec, selection: Selection
    ) -> tuple[str, list[Any], Sequence[int]]:
        """Return the query for a table: text, values, widths of columns."""
        shown: list[str] = []
        joins: list[str] = []
        widths: list[int] = []
        for position, column in enumerate(self.exported(table)):
            found = self._expressions(table, column.name, position, joins)
            shown += found
            widths.append(len(found))
        values: list[Any] = []
        where = self.condition(table, selection, values)
        order = self._order(table)
        statement = (
            f"SELECT {', '.join(shown)} FROM {table.name} t{''.join(joins)} WHERE {where}{order}"
        )
        return statement, values, widths

    def _expressions(
        self, table: TableSpec, column: str, number: int, joins: list[str]
    ) -> list[str]:
        """Return what stands for a column: itself, or the key of the row it names."""
        target = table.refs.get(column)
        if target is None:
            return [f"t.{column}"]
        if isinstance(target, str):
            joins.append(
                f" LEFT JOIN {target} r{number} ON r{number}.no = t.{column}"
                f" AND r{number}.project_no = t.project_no"
            )
            return [f"r{number}.{key}" for key in BY_NAME[target].key]
        names = []
        for owner, name in target.items():
            alias = f"r{number}{owner}"
            joins.append(
                f" LEFT JOIN {name} {alias} ON t.owner = '{owner}' AND {alias}.no = t.{column}"
                f" AND {alias}.project_no = t.project_no"
            )
            names.append(f"{alias}.{BY_NAME[name].key[0]}")
        return [f"coalesce({', '.join(names)})"]

    def _order(self, table: TableSpec) -> str:
        columns = {each.name: each for each in self.columns[table.name]}
        names = ("no",) if "no" in columns else table.key
        # Texts in the order of their bytes: that of a server depends on its language.
        byte_order = ' COLLATE "C"' if self._is_postgres else ""
        terms = (
            f"t.{name}{byte_order if columns[name].type == 'string' else ''}" for name in names
        )
        return f" ORDER BY {', '.join(terms)}" if names else ""

    def condition(
        self, table: TableSpec, selection: Selection, values: list[Any], alias: str = "t"
    ) -> str:
        """Return the condition for the selected rows.

        Its values are added to ``values``.
        """
        # A plus keeps SQLite from reading by an index and sorting all rows in memory.
        conditions = [f"+{alias}.project_no = {int(self._scope.project_no)}"]
        if table.only:
            conditions.append(table.only.replace("t.", f"{alias}."))
        if table.name == "memories" and selection.viewer is not None:
            conditions.append(f"({alias}.visibility <> 'personal' OR {alias}.created_by = ?)")
            values.append(selection.viewer)
        if table.times and selection.since_ms is not None:
            conditions.append(f"{alias}.{table.times[-1]} >= ?")
            values.append(selection.since_ms)
        if table.times and selection.until_ms is not None:
            conditions.append(f"{alias}.{table.times[0]} < ?")
            values.append(selection.until_ms)
        if selection.person is not None and table.people:
            conditions.append(f"? IN ({', '.join(f'{alias}.{name}' for name in table.people)})")
            values.append(selection.person)
        elif selection.person is not None and table.owner is None:
            conditions.append("1 = 0")  # it is nobody's in particular
        if table.owner is not None:
            target = table.refs[table.owner]
            column, inner = f"{alias}.{table.owner}", f"{alias}x"
            owners = {"": target} if isinstance(target, str) else target
            choices = []
            for owner, name in owners.items():
                above = self.condition(BY_NAME[name], selection, values, inner)
                is_in = f"+{column} IN (SELECT {inner}.no FROM {name} {inner} WHERE {above})"
                choices.append(f"({alias}.owner = '{owner}' AND {is_in})" if owner else is_in)
            conditions.append(f"({' OR '.join(choices)})")
        return " AND ".join(conditions)


def exported_name(table: TableSpec, column: str) -> str:
    """Return the name of a column in an archive.

    A reference is an id there.

    >>> exported_name(BY_NAME["messages"], "thread_no")
    'thread_id'
    """
    return f"{column.removesuffix('_no')}_id" if column in table.refs else column


def row_name(key: Sequence[Any]) -> str:
    """Return the name of a row, by which its tombstone is found.

    >>> row_name(["m1"]), row_name(["t1", "blocks"])
    ('m1', '["t1", "blocks"]')
    """
    return str(key[0]) if len(key) == 1 else json.dumps(key)


def _json_value(table: TableSpec, column: Column, values: tuple[Any, ...]) -> Any:
    if len(values) > 1:
        return None if values[0] is None else list(values)
    value = values[0]
    if column.type == "bytes" and value is not None:
        return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, str) and column.name in JSON_COLUMNS and value[:1] in ("[", "{"):
        try:
            parsed = json.loads(value)
        except ValueError:
            return value
        # As a value only if it comes back as the same text.
        return parsed if table.json_text(parsed) == value else value
    return value


def stored_value(table: TableSpec, column: Column, value: Any) -> Any:
    """Return a value of an archive as its column stores it.

    Raises:
        ValueError: If it is not of the column's type.
    """
    if value is None and not column.is_required:
        return None
    if column.type == "bytes" and isinstance(value, Mapping):
        return base64.b64decode(value["base64"], validate=True)
    if isinstance(value, (list, dict)) and column.name in JSON_COLUMNS:
        return table.json_text(value)
    types: dict[str, tuple[type, ...]] = {
        "integer": (int,),
        "number": (int, float),
        "string": (str,),
        "bytes": (),
        "other": (),
    }
    if not isinstance(value, types[column.type]) or isinstance(value, bool):
        raise ValueError(f"{column.name} is not of type {column.type}")
    return value


def record_counts(session: Session) -> dict[str, int]:
    """Count the rows of each table of records that has any."""
    counts = {
        table.name: number(session, f"SELECT count(*) FROM {table.name}") for table in RECORDS
    }
    return {name: count for name, count in counts.items() if count}
