"""Store working-memory pages and versions: SQL and row mapping, no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import ProjectStore
from smara.working.models import PageDraft, PageKey, WorkingMemory, WorkingVersion

_MEMORIES = (
    "SELECT w.no, w.id, w.scope, w.resource_id, w.thread_id, w.format, w.content, w.template, "
    "w.schema, w.version,"
    " w.created_at, w.updated_at, v.actor FROM working_memory w"
    " LEFT JOIN working_memory_versions v ON v.memory_no = w.no AND v.version = w.version"
    " WHERE w.project_no = :project"
)
_VERSIONS = (
    "SELECT v.version, v.content, v.format, v.actor, v.reason, v.created_at, v.template, v.schema"
    " FROM working_memory w JOIN working_memory_versions v ON v.memory_no = w.no WHERE "
    "w.project_no = :project"
)
_OF = {
    "resource": "scope = 'resource' AND resource_id = ?",
    "thread": "scope = 'thread' AND thread_id = ?",
}


class WorkingStore(ProjectStore):
    """The tables ``working_memory`` and ``working_memory_versions`` of one project."""

    def find(self, session: Session, place: PageKey) -> tuple[int, WorkingMemory] | None:
        """Return the page with its number."""
        where = _OF[place.scope]
        row = session.one(self.sql(f"{_MEMORIES} AND {where}"), (place.key,))
        return (int(row[0]), _memory(row)) if row else None

    def hold(self, session: Session, place: PageKey) -> tuple[int, WorkingMemory] | None:
        """Lock and return the page with its number."""
        where = _OF[place.scope]
        is_there = session.run(
            # SQLite has locked everything already; on PostgreSQL this locks the row.
            self.sql(
                "UPDATE working_memory SET version = version WHERE project_no = :project AND "
                f"{where}"
            ),
            (place.key,),
        )
        # A page that another process begins between the two statements would be seen, but not held.
        return self.find(session, place) if is_there else None

    def insert(self, session: Session, memory_id: str, place: PageKey, now_ms: int) -> None:
        """Insert a page at version 0, unless it exists."""
        session.run(
            self.sql(
                "INSERT INTO working_memory (project_no, id, scope, resource_id, thread_id, "
                "format, content, version,"
                " created_at, updated_at) VALUES (:project, ?, ?, ?, ?, 'markdown', '', 0, ?, ?)"
                " ON CONFLICT DO NOTHING"
            ),
            (memory_id, place.scope, place.resource_id, place.thread_id or "", now_ms, now_ms),
        )

    def save(
        self,
        session: Session,
        no: int,
        version: int,
        draft: PageDraft,
        actor: str,
        reason: str | None,
        now_ms: int,
    ) -> None:
        """Write a draft as the page's next version."""
        values = (
            draft.format,
            draft.template and to_storable(draft.template),
            # ASCII, so that nothing in it needs escaping.
            None if draft.schema is None else json.dumps(draft.schema),
            to_storable(draft.content),
        )
        session.run(
            self.sql(
                "UPDATE working_memory SET format = ?, template = ?, schema = ?, content = ?, "
                "version = ?,"
                " updated_at = ? WHERE project_no = :project AND no = ?"
            ),
            (*values, version, now_ms, no),
        )
        session.run(
            self.sql(
                "INSERT INTO working_memory_versions (project_no, memory_no, version, format, "
                "template, schema,"
                " content, actor, reason, created_at) VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ),
            (no, version, *values, to_storable(actor), reason and to_storable(reason), now_ms),
        )
        self.index(session, no, draft.content)

    def index(self, session: Session, no: int, content: str) -> None:
        """Make a page findable by the words it now holds."""
        self.database.records.put(
            session, "working", self.scope.project_no, [(no, terms_of("", content))]
        )

    def count(self, session: Session) -> int:
        """Count this project's pages."""
        return self.number(
            session, "SELECT count(*) FROM working_memory WHERE project_no = :project"
        )

    def by_numbers(self, session: Session, numbers: Sequence[int]) -> dict[int, WorkingMemory]:
        """Pages by number."""
        rows = self.rows(session, f"{_MEMORIES} AND w.no IN (:some)", some=numbers)
        return {int(row[0]): _memory(row) for row in rows}

    def versions(
        self, session: Session, place: PageKey, before: int, limit: int
    ) -> list[WorkingVersion]:
        """Versions below ``before``, newest first."""
        where = _OF[place.scope]
        rows = session.all(
            self.sql(f"{_VERSIONS} AND {where} AND v.version < ? ORDER BY v.version DESC LIMIT ?"),
            (place.key, before, limit),
        )
        return [
            WorkingVersion(
                version=row[0],
                content=from_storable(row[1]),
                format=row[2],
                actor=from_storable(row[3]),
                reason=row[4] and from_storable(row[4]),
                created_at=row[5],
                template=row[6] and from_storable(row[6]),
                schema=row[7] and json.loads(row[7]),
            )
            for row in rows
        ]


def indexed_pages(session: Session, after: int = 0) -> Iterator[tuple[int, int, RecordTerms]]:
    """Yield every project's pages above a number, with terms for the index."""
    for no, project_no, content in session.all(
        "SELECT no, project_no, content FROM working_memory WHERE no > ? ORDER BY no", (after,)
    ):
        yield no, project_no, terms_of("", from_storable(content))


def _memory(row: Row) -> WorkingMemory:
    return WorkingMemory(
        id=row[1],
        scope=row[2],
        resource_id=row[3],
        thread_id=row[4] or None,
        format=row[5],
        content=from_storable(row[6]),
        template=row[7] and from_storable(row[7]),
        schema=row[8] and json.loads(row[8]),
        version=row[9],
        created_at=row[10],
        updated_at=row[11],
        updated_by=row[12] and from_storable(row[12]),
    )
