"""A database's schema as a value that can be compared."""

from __future__ import annotations

from typing import Any

from smara.database.database import Database

_POSTGRES = {
    "columns": "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, "
    "column_default, is_identity"
    " FROM information_schema.columns WHERE table_schema = current_schema()",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM "
    "pg_constraint"
    " WHERE connamespace = current_schema()::regnamespace",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = "
    "current_schema()",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = "
    "current_schema()::regnamespace",
}


def schema_of(database: Database) -> dict[str, Any]:
    """Everything the migrations make: tables, columns, indexes, constraints."""
    with database.read() as session:
        if database.kind == "sqlite":
            return {
                "objects": sorted(
                    session.all("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
                ),
                "header": [
                    session.one(f"PRAGMA {name}")
                    for name in ("application_id", "user_version", "encoding")
                ],
            }
        name = session.one("SELECT current_schema()")[0]
        return {
            what: sorted(repr(row).replace(name, "SCHEMA") for row in session.all(sql))
            for what, sql in _POSTGRES.items()
        }
