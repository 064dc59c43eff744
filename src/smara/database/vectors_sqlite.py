"""Vectors on SQLite. There is one writer at a time, so nothing has to be locked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from smara.database.database import Session
from smara.database.vectors import Shelf, vector_code
from smara.database.vectors_tables import TableVectors, table_of


class SqliteVectors(TableVectors):
    """Rows asked for by a list in JSON, which is one statement however many they are."""

    stamps_removals = True

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        table = table_of(shelf.kind)
        statement = (
            f"SELECT no FROM {table} WHERE project_no = ? AND no IN (SELECT value FROM "
            "json_each(?))"
        )
        rows = session.all(statement, (shelf.project_no, json.dumps(list(records))))
        return {row[0] for row in rows}, set()

    def settle(
        self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]
    ) -> set[int]:
        taken = set()
        for space_no, no, stamp in entries:
            if session.run(
                "DELETE FROM embedding_queue"
                " WHERE project_no = ? AND space_no = ? AND kind = ? AND no = ? AND stamp = ?",
                (shelf.project_no, space_no, vector_code(shelf.kind), no, stamp),
            ):
                taken.add(no)
        return taken

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        # In the order of the table, in which neighbors lie on the same page.
        wanted = json.dumps([shelf.base + row for row in sorted(rows)])
        found = session.all(
            "SELECT v.no, v.vector FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.no = "
            "wanted.value",
            (wanted,),
        )
        return {no - shelf.base: stored for no, stored in found if stored}
