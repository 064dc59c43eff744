"""Store reflections made ahead until a record needs them.

A record has at most one. A digest of the replaced observations and of the new notes is
stored with it; if either has changed by the time of activation, the reflection is stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smara.core import log
from smara.core.startup.record import dataclass
from smara.database.database import Session, marks, parts
from smara.errors import LeaseLostError
from smara.observations.models import Observation
from smara.observations.store import FailureKey, ObservationStore

OPERATION = "buffer_reflection"
CODE = "stale_reflection"


class BufferedReflection(NamedTuple):
    """A reflection made ahead: what it replaces, and both sizes."""

    record_no: int
    generation: int
    sources: tuple[int, ...]
    source_tokens: int
    notes: int
    tokens: int
    digest: str
    created_at: int


_COLUMNS = ", ".join(BufferedReflection._fields)


@dataclass(frozen=True, eq=False)
class BufferedReflections:
    """The buffered reflections of one project.

    Every change is part of the caller's transaction.
    """

    store: ObservationStore

    def find(self, session: Session, record_no: int) -> BufferedReflection | None:
        row = session.one(
            self.store.sql(
                f"SELECT {_COLUMNS}"
                " FROM buffered_reflections WHERE project_no = :project AND record_no = ?"
            ),
            (record_no,),
        )
        if row is None:
            return None
        values = dict(zip(BufferedReflection._fields, row, strict=True))
        return BufferedReflection(**{**values, "sources": tuple(json.loads(values["sources"]))})

    def sources(
        self, session: Session, buffered: BufferedReflection
    ) -> list[tuple[int, Observation]]:
        """Return the observations it replaces that are still active, with numbers."""
        return sorted(
            row
            for part in parts(buffered.sources)
            for row in self.store.select(
                session,
                f" AND o.record_no = ? AND o.state = 'active' AND o.no IN ({marks(len(part))})",
                (buffered.record_no, *part),
            )
        )

    def sources_of(self, session: Session, note_id: str) -> list[tuple[int, Observation]]:
        """Return the observations that a buffered note's reflection replaces, oldest first."""
        row = session.one(
            self.store.sql(
                "SELECT record_no FROM observations WHERE project_no = :project AND id = ?"
            ),
            (note_id,),
        )
        buffered = self.find(session, int(row[0])) if row else None
        found = self.sources(session, buffered) if buffered else []
        return sorted(found, key=lambda each: (each[1].said_at, each[0]))

    def add(
        self,
        session: Session,
        record_no: int,
        generation: int,
        *,
        sources: Sequence[tuple[int, Observation]],
        rows: Sequence[Mapping[str, Any]],
        now_ms: int,
    ) -> None:
        """Keep a generation aside.

        Raises:
            LeaseLostError: What it stands for has changed while it was thought.
        """
        self.store.add(session, rows)
        numbers = tuple(sorted(no for no, _ in sources))
        tokens = sum(row.tokens for _, row in sources)
        new = BufferedReflection(
            record_no,
            generation,
            numbers,
            source_tokens=tokens,
            notes=len(rows),
            tokens=0,
            digest="",
            created_at=now_ms,
        )
        now_there = self.sources(session, new)
        if _contents(now_there) != _contents(sorted(sources)):
            raise LeaseLostError(
                "Another process changed the observations meanwhile; nothing was written."
            )
        notes = self._notes(session, new)
        session.run(
            self.store.sql(
                "INSERT INTO buffered_reflections (project_no, record_no, generation, sources, "
                "source_tokens, notes,"
                f" tokens, digest, created_at) VALUES (:project, {marks(8)})"
            ),
            (
                record_no,
                generation,
                json.dumps(numbers),
                tokens,
                len(notes),
                sum(row.tokens for _, row in notes),
                _digest(now_there, notes),
                now_ms,
            ),
        )

    def is_as_it_was(self, session: Session, buffered: BufferedReflection) -> bool:
        """Return True if its notes and its sources are unchanged."""
        return (
            _digest(self.sources(session, buffered), self._notes(session, buffered))
            == buffered.digest
        )

    def activate(self, session: Session, buffered: BufferedReflection) -> None:
        """Show it in the place of what it stands for."""
        self.store.mark_reflected(
            session, buffered.record_no, buffered.sources, generation=buffered.generation
        )
        session.run(
            self.store.sql(
                "UPDATE observations SET state = 'active' WHERE project_no = :project AND "
                "record_no = ?"
                " AND kind = 'reflection' AND state = 'buffered'"
            ),
            (buffered.record_no,),
        )
        self._forget(session, buffered)

    def remove(self, session: Session, buffered: BufferedReflection) -> None:
        """Remove it with its notes; its sources stay as they are."""
        numbers = [no for no, _ in self._notes(session, buffered)]
        self.store.database.records.remove(session, "observation", numbers)
        session.run(
            self.store.sql(
                "DELETE FROM observations WHERE project_no = :project AND record_no = ?"
                " AND kind = 'reflection' AND state = 'buffered'"
            ),
            (buffered.record_no,),
        )
        self._forget(session, buffered)

    def drop(self, session: Session, buffered: BufferedReflection, why: str, now_ms: int) -> str:
        """Remove one that is stale, and record why; return the message."""
        self.remove(session, buffered)
        message = (
            f"A reflection that was made ahead was dropped: {why}. What it stood for is as it "
            "was; another is made."
        )
        key = FailureKey(buffered.record_no, 0, OPERATION, first_seq=buffered.generation)
        self.store.put_failure(
            session, key, code=CODE, message=message, now_ms=now_ms, is_dead=True
        )
        log.warning("reflections.dropped", generation=buffered.generation, why=why)
        return message

    def _notes(
        self, session: Session, buffered: BufferedReflection
    ) -> list[tuple[int, Observation]]:
        return self.store.select(
            session,
            " AND o.record_no = ? AND o.kind = 'reflection' AND o.state = 'buffered' ORDER BY o.no",
            (buffered.record_no,),
        )

    def _forget(self, session: Session, buffered: BufferedReflection) -> None:
        session.run(
            self.store.sql(
                "DELETE FROM buffered_reflections WHERE project_no = :project AND record_no = ?"
            ),
            (buffered.record_no,),
        )


def _contents(rows: Sequence[tuple[int, Observation]]) -> list[tuple[int, str, tuple[str, ...]]]:
    return [(no, row.text, row.details) for no, row in rows]


def _digest(
    sources: Sequence[tuple[int, Observation]], notes: Sequence[tuple[int, Observation]]
) -> str:
    text = json.dumps([_contents(sources), _contents(notes)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
