"""Rows in every table that is exported, whatever the schema is: for what must leave none out."""

from __future__ import annotations

import random
from typing import Any

from smara.database.database import Session, marks
from smara.database.session import Column
from smara.privacy.rows import NUMBERS
from smara.privacy.tables import BY_NAME, JSON_COLUMNS, RECORDS, TableSpec

ALLOWED = {
    "role": "user", "status": "closed", "relation": "output", "visibility": "project",
    "deprecated_because": "superseded", "acted_as": "person", "trust_level": 2, "priority": 3,
    "level": 1, "scope": "thread", "format": "markdown", "kind": "observation",
    "state": "active", "arm": "full", "outcome": "used", "mode": "weekly", "owner": "memory",
}  # fmt: skip
OF_TABLE: dict[tuple[str, str], Any] = {
    ("observations", "priority"): "high",
    ("code_anchors", "kind"): "file",
    ("task_dependencies", "type"): "related",
    ("memory_relations", "type"): "validates",
    ("memory_relations", "path"): None,
    ("behavior_sessions", "state"): "final",
}
OBJECTS = {
    "metadata", "data", "before", "after", "mode_specific", "extracted", "schema",
    "task_type_breakdown",
}  # fmt: skip
ODD = ("重跑", "a\nb", '{"not": json', "[1,2]", "\ufdd00000", "", "'; --", "tab\t")


def fill(memory: Any, rounds: int = 3, seed: int = 7) -> None:
    """Put rows into every table of a project that is exported."""
    database, scope = memory.internals.database, memory.internals.scope
    chance = random.Random(seed)
    with database.write() as session:
        columns = database.tables(session)
        for round in range(rounds):
            for table in RECORDS:
                if table.key or round == 0:
                    _insert(session, table, columns[table.name], scope.project_no, chance)


def _insert(
    session: Session,
    table: TableSpec,
    columns: tuple[Column, ...],
    project_no: int,
    chance: random.Random,
) -> None:
    row: dict[str, Any] = {"project_no": project_no}
    for column in columns:
        if column.name in (*NUMBERS, *table.omitted):
            continue
        target = table.refs.get(column.name)
        if target is not None:
            name = target if isinstance(target, str) else target["memory"]
            row[column.name] = _newest(session, BY_NAME[name], project_no)
        else:
            row[column.name] = _value(table, column, chance)
    session.run(
        f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({marks(len(row))})"
        " ON CONFLICT DO NOTHING",
        list(row.values()),
    )


def _newest(session: Session, table: TableSpec, project_no: int) -> int | None:
    found = session.one(f"SELECT max(no) FROM {table.name} WHERE project_no = ?", (project_no,))
    return found[0] if found else None


def _value(table: TableSpec, column: Column, chance: random.Random) -> Any:
    known = OF_TABLE.get((table.name, column.name), ALLOWED.get(column.name))
    is_free = (table.name, column.name) in {
        ("memories", "scope"), ("moment_items", "kind"), ("behavior_signals", "kind"),
        ("behavior_findings", "outcome"), ("task_events", "kind"), ("memory_events", "kind"),
        ("memory_keys", "kind"), ("threads", "kind"), ("tasks", "priority"),
    }  # fmt: skip
    if (table.name, column.name) in OF_TABLE or (known is not None and not is_free):
        return known
    if not column.is_required and chance.random() < 0.3:
        return None
    if column.type == "bytes":
        return chance.randbytes(5)
    if column.type == "number":
        return chance.random()
    if column.type == "integer":
        return chance.randrange(5)
    if column.name in ("parts", "work_unit"):
        return None
    if column.name in JSON_COLUMNS:
        texts = (
            ("{}", '{"重": 1}', '{"a":1}') if column.name in OBJECTS else ("[]", '["重"]', '["a" ]')
        )
        return "[]" if column.name in ("evidence", "lines", "renames") else chance.choice(texts)
    is_named = column.name in (*table.key, "id", "key", "short_id", "lookup_key", "bare_key")
    return f"{table.name}-{chance.randrange(10**9)}" if is_named else chance.choice(ODD)
