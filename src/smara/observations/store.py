"""Read and write observations in the database.

SQL and row mapping only; the store decides nothing and calls no model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session, marks, parts
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import ProjectStore
from smara.observations.models import (
    Observation,
    ObservationFailure,
    ObservationRecord,
    ObservationWarning,
    Scope,
)

_COLUMNS = (
    "o.id, o.kind, o.state, o.generation, h.id, o.mode, o.priority, o.category, o.text, "
    "o.details, o.files, o.lines,"
    " o.mode_specific, o.taint, o.said_at, o.refers_to, o.tokens, o.first_seq, o.last_seq, "
    "o.method, o.created_at,"
    " o.reflected_into"
)
_RECORD = (
    "r.no, r.id, r.scope, r.resource_id, h.id, r.version, r.generation, r.observed_tokens, "
    "r.last_observed_at,"
    " r.last_reflected_at"
)


class Cursor(NamedTuple):
    """How far one thread was observed, against how far it goes; token counts are from its
    beginning.
    """

    thread_no: int
    thread_id: str
    last_seq: int
    tokens: int
    observed_seq: int
    observed_tokens: int
    buffered_seq: int
    buffered_tokens: int

    @property
    def covered_seq(self) -> int:
        """The last message that some observation stands for, active or buffered."""
        return max(self.observed_seq, self.buffered_seq)

    @property
    def covered_tokens(self) -> int:
        return max(self.observed_tokens, self.buffered_tokens)


class ObservationBatch(NamedTuple):
    """The messages that were observed in one go."""

    no: int
    thread_no: int
    first_seq: int
    last_seq: int
    message_tokens: int
    current_task: str | None
    suggested_response: str | None
    thread_title: str | None


class StoredRecord(NamedTuple):
    """A record and its number."""

    no: int
    record: ObservationRecord


class ObservationStore(ProjectStore):
    """The tables of observations of one project."""

    # records

    def find_record(self, session: Session, lookup_key: str) -> StoredRecord | None:
        row = session.one(
            self.sql(
                f"SELECT {_RECORD} FROM observation_records r LEFT JOIN threads h ON h.no = "
                "r.thread_no"
                " WHERE r.project_no = :project AND r.lookup_key = ?"
            ),
            (lookup_key,),
        )
        return StoredRecord(int(row[0]), ObservationRecord(*row[1:])) if row else None

    def ensure_record(
        self,
        session: Session,
        record_id: str,
        scope: Scope,
        resource_id: str,
        thread_no: int | None,
        lookup_key: str,
        now_ms: int,
    ) -> StoredRecord:
        session.run(
            self.sql(
                "INSERT INTO observation_records"
                " (project_no, id, lookup_key, scope, resource_id, thread_no, created_at, "
                "updated_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_no, lookup_key) DO "
                "NOTHING"
            ),
            (record_id, lookup_key, scope, resource_id, thread_no, now_ms, now_ms),
        )
        found = self.find_record(session, lookup_key)
        if found is None:  # it was just made
            raise AssertionError(f"no record {lookup_key}")
        return found

    def take_record(self, session: Session, record_no: int, now_ms: int) -> None:
        """Count a new version of what is active, and lock the record until the transaction ends."""
        session.run(
            self.sql(
                "UPDATE observation_records SET version = version + 1, updated_at = ?"
                " WHERE project_no = :project AND no = ?"
            ),
            (now_ms, record_no),
        )

    def hold_record(self, session: Session, record_no: int, now_ms: int) -> None:
        """Lock the record until the transaction ends; what is active stays as it is."""
        session.run(
            self.sql(
                "UPDATE observation_records SET updated_at = ? WHERE project_no = :project AND no "
                "= ?"
            ),
            (now_ms, record_no),
        )

    def note_observed(self, session: Session, record_no: int, tokens: int, now_ms: int) -> None:
        session.run(
            self.sql(
                "UPDATE observation_records SET observed_tokens = observed_tokens + ?, "
                "last_observed_at = ?"
                " WHERE project_no = :project AND no = ?"
            ),
            (tokens, now_ms, record_no),
        )

    def note_reflected(
        self, session: Session, record_no: int, generation: int, now_ms: int
    ) -> None:
        session.run(
            self.sql(
                "UPDATE observation_records SET generation = ?, last_reflected_at = ?"
                " WHERE project_no = :project AND no = ?"
            ),
            (generation, now_ms, record_no),
        )

    def thread_records(self, session: Session, resource_id: str) -> list[tuple[int, int, int]]:
        """(record, thread, generation) of the threads of a resource that have observations of their
        own.
        """
        rows = session.all(
            self.sql(
                "SELECT no, thread_no, generation FROM observation_records"
                " WHERE project_no = :project AND resource_id = ? AND scope = 'thread' AND "
                "thread_no IS NOT NULL"
                " ORDER BY no"
            ),
            (resource_id,),
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def move_thread(self, session: Session, thread_no: int, from_no: int, to_no: int) -> int | None:
        """Give what one record knows of a thread to another; how much, or ``None`` when that knows
        it already.
        """
        known = session.one(
            self.sql(
                "SELECT 1 FROM observation_cursors WHERE project_no = :project AND record_no = ? "
                "AND thread_no = ?"
            ),
            (to_no, thread_no),
        )
        if known is not None:
            return None
        moved = 0
        for name in ("observation_batches", "observation_cursors", "observations"):
            moved = session.run(
                self.sql(
                    f"UPDATE {name} SET record_no = ? WHERE project_no = :project AND record_no = ?"
                ),
                (to_no, from_no),
            )
        return moved

    # cursors

    def cursors(
        self,
        session: Session,
        record_no: int,
        thread_id: str | None,
        resource_id: str | None,
        is_pending_only: bool,
    ) -> list[Cursor]:
        """The cursor of a thread, or of every thread of a resource, those with the oldest
        unobserved messages first.
        """
        where = (
            "t.id = ?" if thread_id is not None else "t.resource_id = ? AND t.kind <> 'compaction'"
        )
        if is_pending_only:
            where += " AND t.last_seq > coalesce(c.observed_seq, 0)"
        rows = session.all(
            self.sql(
                "SELECT t.no, t.id, t.last_seq, t.tokens, coalesce(c.observed_seq, 0), "
                "coalesce(c.observed_tokens, 0),"
                " coalesce(c.buffered_seq, 0), coalesce(c.buffered_tokens, 0), m.created_at FROM "
                "threads t"
                " LEFT JOIN observation_cursors c ON c.thread_no = t.no AND c.record_no = ?"
                " LEFT JOIN messages m ON m.thread_no = t.no AND m.seq = coalesce(c.observed_seq, "
                "0) + 1"
                f" WHERE t.project_no = :project AND {where} ORDER BY m.created_at, t.no"
            ),
            (record_no, thread_id if thread_id is not None else resource_id),
        )
        return [Cursor(*row[:8]) for row in rows]

    def move_cursor(
        self, session: Session, record_no: int, thread_no: int, column: str, seq: int, tokens: int
    ) -> None:
        """Set how far a thread is ``observed`` or ``buffered``."""
        session.run(
            self.sql(
                "INSERT INTO observation_cursors (project_no, record_no, thread_no, "
                f"{column}_seq, {column}_tokens)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (record_no, thread_no) DO UPDATE"
                f" SET {column}_seq = excluded.{column}_seq, {column}_tokens = "
                f"excluded.{column}_tokens"
            ),
            (record_no, thread_no, seq, tokens),
        )

    # batches

    def add_batch(self, session: Session, values: Sequence[Any]) -> int:
        """Insert (record, thread, id, state, first, last, tokens, mode, method, taint, task,
        response, title, extracted, created, warnings); its number.
        """
        row = session.one(
            self.sql(
                "INSERT INTO observation_batches (project_no, record_no, thread_no, id, state, "
                "first_seq, last_seq,"
                " message_tokens, mode, method, taint, current_task, suggested_response, "
                "thread_title, extracted,"
                f" created_at, warnings) VALUES (:project, {marks(16)}) RETURNING no"
            ),
            values,
        )
        return int(row[0]) if row else 0

    def buffered_batches(
        self, session: Session, record_no: int, thread_no: int
    ) -> list[ObservationBatch]:
        rows = session.all(
            self.sql(
                "SELECT no, thread_no, first_seq, last_seq, message_tokens, current_task, "
                "suggested_response,"
                " thread_title FROM observation_batches"
                " WHERE project_no = :project AND record_no = ? AND state = 'buffered' AND "
                "thread_no = ?"
                " ORDER BY first_seq"
            ),
            (record_no, thread_no),
        )
        return [
            ObservationBatch(
                *row[:5], *(None if each is None else from_storable(each) for each in row[5:])
            )
            for row in rows
        ]

    def extracted(self, session: Session, thread_id: str, limit: int) -> list[dict[str, Any]]:
        """The values that extractors found in a thread, batch by batch, newest first."""
        rows = session.all(
            self.sql(
                "SELECT b.extracted FROM observation_batches b JOIN threads h ON h.no = b.thread_no"
                " WHERE b.project_no = :project AND h.id = ? AND b.extracted <> '{}' ORDER BY "
                "b.first_seq DESC LIMIT ?"
            ),
            (thread_id, limit),
        )
        return [json.loads(row[0]) for row in rows]

    def taint_of_thread(self, session: Session, thread_id: str) -> frozenset[str]:
        """What everything that was observed in a thread holds besides people's own words."""
        rows = session.all(
            self.sql(
                "SELECT DISTINCT b.taint FROM observation_batches b JOIN threads h ON h.no = "
                "b.thread_no"
                " WHERE b.project_no = :project AND h.project_no = :project AND h.id = ?"
            ),
            (thread_id,),
        )
        return frozenset(word for row in rows for word in row[0].split())

    def warnings_of(self, session: Session, observation_id: str) -> tuple[str, ...]:
        """What was left out of the batch that an observation came with."""
        row = session.one(
            self.sql(
                "SELECT b.warnings FROM observations o JOIN observation_batches b ON b.no = "
                "o.batch_no"
                " WHERE o.project_no = :project AND o.id = ?"
            ),
            (observation_id,),
        )
        return tuple(from_storable(each) for each in json.loads(row[0])) if row else ()

    def warned(self, session: Session, limit: int) -> list[ObservationWarning]:
        """The batches of which something was left out, newest first."""
        rows = session.all(
            self.sql(
                "SELECT h.id, b.first_seq, b.last_seq, b.warnings, b.created_at FROM "
                "observation_batches b"
                " JOIN threads h ON h.no = b.thread_no WHERE b.project_no = :project AND "
                "b.warnings <> '[]'"
                " ORDER BY b.created_at DESC, b.no DESC LIMIT ?"
            ),
            (limit,),
        )
        return [
            ObservationWarning(
                row[0],
                row[1],
                row[2],
                warnings=tuple(from_storable(each) for each in json.loads(row[3])),
                created_at=row[4],
            )
            for row in rows
        ]

    def activate_batches(self, session: Session, numbers: Sequence[int]) -> int:
        """Make batches and their observations active; how many observations."""
        session.run(
            self.sql(
                "UPDATE observation_batches SET state = 'active'"
                f" WHERE project_no = :project AND no IN ({marks(len(numbers))})"
            ),
            numbers,
        )
        return session.run(
            self.sql(
                "UPDATE observations SET state = 'active'"
                " WHERE project_no = :project AND state = 'buffered' AND batch_no IN "
                f"({marks(len(numbers))})"
            ),
            numbers,
        )

    # observations

    def add(self, session: Session, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows as (record, thread, batch, id, kind, state, generation, mode, priority,
        category, text, details, files, lines, mode specific, taint, said at, refers to, tokens,
        first, last, method, created at).
        """
        session.run_many(
            self.sql(
                "INSERT INTO observations (project_no, record_no, thread_no, batch_no, id, kind, "
                "state, generation,"
                " mode, priority, category, text, details, files, lines, mode_specific, taint, "
                "said_at, refers_to,"
                f" tokens, first_seq, last_seq, method, created_at) VALUES (:project, {marks(23)})"
            ),
            rows,
        )

    def index(self, session: Session, ids: Sequence[str]) -> None:
        """Put observations into the index of records, by which they are found."""
        for part in parts(ids):
            for no, row in self.select(session, f" AND o.id IN ({marks(len(part))})", part):
                self.database.records.put(
                    session, "observation", no, self.scope.project_no, observation_terms(row)
                )

    def select(
        self, session: Session, rest: str, values: Sequence[Any] = ()
    ) -> list[tuple[int, Observation]]:
        """Observations with their numbers, by the rest of a statement."""
        rows = session.all(
            self.sql(
                f"SELECT {_COLUMNS}, o.no FROM observations o LEFT JOIN threads h ON h.no = "
                "o.thread_no"
                f" WHERE o.project_no = :project{rest}"
            ),
            values,
        )
        return [(row[-1], _observation(row)) for row in rows]

    def noted_between(
        self, session: Session, thread_id: str, resource_id: str, first_seq: int, last_seq: int
    ) -> list[Observation]:
        """The observations that begin in a stretch of messages, or reach into its beginning; none
        unless all of the stretch was observed. Condensed ones too: they are the nearest to the
        words.
        """
        row = session.one(
            self.sql(
                "SELECT r.no, t.no, max(b.first_seq) FROM observation_records r JOIN threads t"
                " ON t.project_no = r.project_no AND t.id = ?"
                " JOIN observation_cursors c ON c.record_no = r.no AND c.thread_no = t.no"
                " JOIN observation_batches b ON b.record_no = r.no AND b.thread_no = t.no AND "
                "b.first_seq <= ?"
                " WHERE r.project_no = :project AND r.lookup_key IN (?, ?)"
                " AND (c.observed_seq >= ? OR c.buffered_seq >= ?) GROUP BY r.no, t.no ORDER BY "
                "r.no DESC LIMIT 1"
            ),
            (
                thread_id,
                first_seq,
                f"thread:{thread_id}",
                f"resource:{resource_id}",
                last_seq,
                last_seq,
            ),
        )
        if row is None:
            return []
        rows = self.select(
            session,
            " AND o.thread_no = ? AND o.record_no = ? AND o.kind = 'observation' AND o.first_seq "
            ">= ?"
            " AND o.first_seq <= ? AND o.last_seq >= ? ORDER BY o.first_seq, o.no",
            (row[1], row[0], row[2], last_seq, first_seq),
        )
        within = [each for _, each in rows if each.first_seq >= first_seq]
        # A note belongs to the run it begins in, so that two runs do not tell the same; a run in
        # which none begins is told by those that reach into it.
        return within or [each for _, each in rows]

    def active(self, session: Session, record_no: int) -> list[tuple[int, Observation]]:
        """What is active: reflections first, then observations, each oldest first."""
        return self.select(
            session,
            " AND o.record_no = ? AND o.state = 'active' ORDER BY o.kind DESC, o.said_at, o.no",
            (record_no,),
        )

    def active_tokens(self, session: Session, record_no: int) -> int:
        row = session.one(
            self.sql(
                "SELECT coalesce(sum(tokens), 0) FROM observations"
                " WHERE project_no = :project AND record_no = ? AND state = 'active'"
            ),
            (record_no,),
        )
        return int(row[0]) if row else 0

    def mark_reflected(
        self, session: Session, record_no: int, numbers: Sequence[int], generation: int
    ) -> int:
        """Put observations of a record behind a reflection; how many were still active."""
        done = 0
        for part in parts(numbers):
            done += session.run(
                self.sql(
                    "UPDATE observations SET state = 'reflected', reflected_into = ?"
                    " WHERE project_no = :project AND record_no = ? AND state = 'active'"
                    f" AND no IN ({marks(len(part))})"
                ),
                (generation, record_no, *part),
            )
        return done

    def merged(
        self, session: Session, reflection_id: str, generation: int
    ) -> list[tuple[int, Observation]]:
        """What went into a generation of the record that a reflection belongs to, with the
        numbers.
        """
        return self.select(
            session,
            " AND o.reflected_into = ? AND o.record_no = (SELECT r.record_no FROM observations r "
            "WHERE r.id = ?)",
            (generation, reflection_id),
        )

    def totals(self, session: Session) -> tuple[int, int, int]:
        """How many observations the project has, how many of them are active, and how often it was
        reflected.

        Counted through the records, so that an index is read and no observation.
        """
        counts = session.one(
            self.sql(
                "SELECT count(*), coalesce(sum(CASE WHEN o.state = 'active' THEN 1 ELSE 0 END), 0)"
                " FROM observation_records r JOIN observations o ON o.record_no = r.no WHERE "
                "r.project_no = :project"
            )
        )
        reflections = session.one(
            self.sql(
                "SELECT coalesce(sum(generation), 0) FROM observation_records WHERE project_no = "
                ":project"
            )
        )
        return (
            int(counts[0]) if counts else 0,
            int(counts[1]) if counts else 0,
            int(reflections[0]) if reflections else 0,
        )

    # failures

    def failure(
        self, session: Session, record_no: int, thread_no: int, operation: str, first_seq: int
    ) -> ObservationFailure | None:
        """The failure of one job; thread 0 for what is no thread's own."""
        row = session.one(
            self.sql(
                f"SELECT {_FAILURE} FROM observation_failures f LEFT JOIN threads h ON h.no = "
                "f.thread_no"
                " WHERE f.project_no = :project AND f.record_no = ? AND f.thread_no = ? AND "
                "f.operation = ?"
                " AND f.first_seq = ?"
            ),
            (record_no, thread_no, operation, first_seq),
        )
        return _failure(row) if row else None

    def failures(
        self, session: Session, record_no: int | None, limit: int
    ) -> list[ObservationFailure]:
        where = "" if record_no is None else " AND f.record_no = ?"
        rows = session.all(
            self.sql(
                f"SELECT {_FAILURE} FROM observation_failures f LEFT JOIN threads h ON h.no = "
                "f.thread_no"
                f" WHERE f.project_no = :project{where} ORDER BY f.failed_at DESC, f.no DESC "
                "LIMIT ?"
            ),
            (limit,) if record_no is None else (record_no, limit),
        )
        return [_failure(row) for row in rows]

    def troubles(self, session: Session) -> tuple[int, int]:
        """How many threads wait for a model that cannot be reached, and how many jobs were given
        up.
        """
        row = session.one(
            self.sql(
                "SELECT coalesce(sum(CASE WHEN operation = 'outage' THEN 1 ELSE 0 END), 0), "
                "coalesce(sum(is_dead), 0)"
                " FROM observation_failures WHERE project_no = :project"
            )
        )
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def put_failure(self, session: Session, values: Sequence[Any]) -> None:
        """Insert or replace (record, thread, operation, first, attempts, code, message, is dead,
        failed, retry).
        """
        session.run(
            self.sql(
                "INSERT INTO observation_failures (project_no, record_no, thread_no, operation, "
                "first_seq, attempts,"
                f" code, message, is_dead, failed_at, retry_at) VALUES (:project, {marks(10)})"
                " ON CONFLICT (record_no, thread_no, operation, first_seq) DO UPDATE SET attempts "
                "= excluded.attempts,"
                " code = excluded.code, message = excluded.message, is_dead = excluded.is_dead,"
                " failed_at = excluded.failed_at, retry_at = excluded.retry_at"
            ),
            values,
        )

    def clear_failure(
        self, session: Session, record_no: int, thread_no: int, operation: str, first_seq: int
    ) -> None:
        """Forget a failure that was overcome; a dead letter stays to be seen."""
        session.run(
            self.sql(
                "DELETE FROM observation_failures WHERE project_no = :project AND record_no = ? "
                "AND thread_no = ?"
                " AND operation = ? AND first_seq = ? AND is_dead = 0"
            ),
            (record_no, thread_no, operation, first_seq),
        )


_FAILURE = (
    "f.operation, h.id, f.first_seq, f.attempts, f.code, f.message, f.is_dead, "
    "f.failed_at, f.retry_at"
)


def _failure(row: Row) -> ObservationFailure:
    return ObservationFailure(
        row[0],
        row[1],
        row[2],
        attempts=row[3],
        code=row[4],
        message=from_storable(row[5]),
        is_dead=bool(row[6]),
        failed_at=row[7],
        retry_at=row[8],
    )


def _observation(row: Row) -> Observation:
    (
        id_,
        kind,
        state,
        generation,
        thread_id,
        mode,
        priority,
        category,
        text,
        details,
        files,
        lines,
        specific,
        taint,
        said_at,
        refers_to,
        tokens,
        first,
        last,
        method,
        created_at,
        reflected_into,
        _,
    ) = row
    return Observation(
        id_,
        kind,
        state,
        generation=generation,
        thread_id=thread_id,
        mode=mode,
        priority=priority,
        category=category,
        text=from_storable(text),
        details=tuple(json.loads(details)),
        files=tuple(json.loads(files)),
        lines=tuple(json.loads(lines)),
        mode_specific=json.loads(specific),
        taint=tuple(taint.split()),
        said_at=said_at,
        refers_to=refers_to,
        tokens=tokens,
        first_seq=first,
        last_seq=last,
        method=method,
        created_at=created_at,
        reflected_into=reflected_into,
    )


def observation_terms(row: Observation) -> RecordTerms:
    """What an observation is found by."""
    return terms_of("", "\n".join((row.text, *row.details, " ".join(row.files))))


def indexed_observations(session: Session) -> Iterator[tuple[int, int, Observation]]:
    """Every observation of every project, as (number, project, observation), for the index that all
    projects share.
    """
    after = 0
    while True:
        rows = session.all(
            f"SELECT {_COLUMNS}, o.no, o.project_no FROM observations o LEFT JOIN threads h ON "
            "h.no = o.thread_no"
            " WHERE o.no > ? ORDER BY o.no LIMIT 500",
            (after,),
        )
        if not rows:
            return
        yield from ((row[-2], row[-1], _observation(row[:-1])) for row in rows)
        after = rows[-1][-2]


def stored_text(text: str | None) -> str | None:
    """A text as it is written to the database."""
    return None if text is None else to_storable(text)
